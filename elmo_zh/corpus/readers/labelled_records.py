"""Find texts and labels in tables and JSON: their columns or fields, and the part of the data each record is in."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.names import suffix_of
from elmo_zh.corpus.readers.columns import (
    Columns,
    Rows,
    cells_of,
    guessed_columns,
    has_header,
    known_columns,
    pair_in,
    part_named,
)
from elmo_zh.corpus.readers.records import (
    Row,
    Table,
    first_object,
    iter_objects,
    rows_between_signs,
    rows_of,
)
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import counted

# Enough that even a file sorted by label shows several labels.
_SAMPLE_RECORDS = 20_000
# How many records to check for a field that names the parts of the data.
_PART_RECORDS = 200
# How many values of a column a message shows.
_SHOWN_VALUES = 3
# How many characters of a line a message shows.
_LONGEST_EXCERPT = 40
# Without a header, at least this fraction of rows must have the same number of columns, if there are this many rows.
_ALIKE_FRACTION, _LEAST_ROWS = 0.95, 10
_QUOTE_CELLS = "Put cells that contain the separator in quotes, or separate the columns with tabs."


class UnlabelledError(CorpusError):
    """A file has texts but no labels, as is common for published test sets."""


@dataclass(frozen=True)
class LabelledRecord:
    """A row or an object: its name in messages, its texts and label, and the part of the data that it names."""

    what: str
    cells: tuple[str, ...]
    part: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of a record that also has a label."""
        return self.cells[:-1]

    @property
    def label(self) -> str:
        """The label of a record; "" if it is empty."""
        return self.cells[-1].strip()


class LabelledRecords(NamedTuple):
    """The records of a file with only the needed cells, a note on the columns used, and the names of these columns."""

    records: Iterator[LabelledRecord]
    note: str
    used_columns: tuple[str, ...]


def labelled_records(text: DecodedText, kind: str, reading: Reading, *, with_label: bool = True) -> LabelledRecords:
    """Return the records of a table or of JSON, from the columns that the settings name, or else the detected ones."""
    open_records = _open_objects if kind == "jsonl" else _open_table
    opened = open_records(text, kind, reading, with_label)
    part_field = opened.find_parts() if with_label else None

    def record(number: int, values: Mapping[str, Any]) -> LabelledRecord:
        what = f"row {number}" if opened.what == "row" else f"record {number}"
        if opened.has_header:
            what = f"row {number} (the header is row 1)"
        where = f"{text.name}: {what}"
        return LabelledRecord(
            what=what,
            cells=opened.cells(where, values),
            part=_part_of(where, values, part_field) if part_field else "",
        )

    notes = [opened.note, *([f"parts (train, dev, test) in {opened.shown[part_field]}"] if part_field else [])]
    return LabelledRecords((record(*each) for each in opened.records), ", ".join(notes), opened.columns)


def _part_of(where: str, values: Mapping[str, Any], field: str) -> str:
    cell = _text_of(values.get(field)) or ""
    part = part_named(cell.strip().lower())
    if not part:
        raise CorpusError(
            f"{where} has {cell[:40]!r} where other records have train, dev or test. Correct the value, or remove"
            " the column."
        )
    return part


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """Records as dicts, with the names of their text and label fields; a row of `sample` is in the order of `shown`."""

    what: str
    shown: Mapping[str, str]
    sample: Rows
    fields: Sequence[str]
    columns: tuple[str, ...]  # Names of the fields in the file, or their numbers from 1
    num_texts: int
    records: Iterator[tuple[int, Mapping[str, Any]]]
    note: str
    has_header: bool = False

    def find_parts(self) -> str | None:
        """Return an unused field whose value in every record is train, dev or test, or None."""
        for place, field in enumerate(self.shown):
            cells = cells_of(self.sample[:_PART_RECORDS], place)
            if field not in self.fields and cells and all(part_named(cell.lower()) for cell in cells):
                return field
        return None

    def cells(self, where: str, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the texts and the label of a record; raise CorpusError if its form differs from the others'."""
        check = _cells_of_row if self.what == "row" else _cells_of_object
        return check(self, where, values)


def _open_table(text: DecodedText, kind: str, reading: Reading, with_label: bool) -> _Opened:
    rows = rows_between_signs(text) or rows_of(text, kind)
    table = Table(text, rows, lambda _, row: not any(cell.strip() for cell in row), num_sample_rows=_SAMPLE_RECORDS)
    sample = [row for _, row in table.sample]
    if not sample:
        raise CorpusError(f"{text.name} has no rows. Give a table with a text and a label in each row.")
    counts = Counter(map(len, sample))
    usual, number = counts.most_common(1)[0]
    is_prose = len(counts) > 1 and (usual == 1 or number < _ALIKE_FRACTION * len(sample))
    if with_label and is_prose and suffix_of(text.content.file_name) == ".txt" and not any(reading.columns()):
        raise UnlabelledError(
            f"{text.name} is plain text without labels. Give a table with a text and a label in each row."
        )
    columns, is_named = _columns_of_table(text.name, sample, reading, with_label)
    if not is_named and len(sample) >= _LEAST_ROWS and max(counts.values()) < _ALIKE_FRACTION * len(sample):
        raise CorpusError(f"{text.name}: the rows have from {min(counts)} to {max(counts)} columns. {_QUOTE_CELLS}")
    names = table.names(has_header=is_named)[: len(sample[0]) if is_named else table.width]
    number, first = table.sample[0]
    shown = {
        name: f"{place + 1} ({first[place].strip()})" if is_named else f"{place + 1}"
        for place, name in enumerate(names)
    }
    if max(columns) >= len(first):
        raise _short_row(f"{text.name}: row {number}", len(first), columns)
    fields = [names[column] for column in columns]
    _require_different(text.name, fields)
    found = ", ".join(shown[field] for field in fields)
    return _Opened(
        what="row",
        shown=shown,
        sample=sample[1:] if is_named else [],
        fields=fields,
        columns=tuple(_name_or_number(first[column].strip() if is_named else "", column) for column in columns),
        num_texts=reading.num_texts,
        records=table.records(has_header=is_named),
        note=f"columns {found}" if is_named else f"columns {found}, no header",
        has_header=is_named,
    )


def _require_different(name: str, fields: Sequence[str]) -> None:
    if twice := next((field for field in fields if fields.count(field) > 1), ""):
        raise CorpusError(
            f"{name}: {twice!r} was chosen twice. Choose a different column for each text and for the label:"
            " --text-column, --label-column"
        )


def _name_or_number(name: str, column: int) -> str:
    return name if name and not name.isdecimal() else str(column + 1)


def _columns_of_table(name: str, sample: Sequence[Row], reading: Reading, with_label: bool) -> tuple[list[int], bool]:
    """Return the columns of the texts and the label, and whether the first row names them."""
    num_texts = reading.num_texts
    header, told = [cell.strip() for cell in sample[0]], list(filter(None, reading.columns()))
    for column in told:
        if not 1 <= int(column) <= len(header) if column.isdecimal() else column not in header:
            raise CorpusError(
                f"{name} has no column {column!r}. Its first row is: {shown_names(header)}."
                " Give one of these names, or a column number, counting from 1."
            )
    choice = {"with_label": with_label, "numbers": reading.regression}
    known = known_columns(sample, num_texts, **choice)
    numbers = map(str, range(1, len(header) + 1)) if known is None else ()
    wanted = reading.columns_in({*header, *numbers}, with_label=with_label)
    guess = known or guessed_columns(sample[1:] or sample, num_texts, **choice)
    if guess is None and len(header) == 1 < len(wanted) and not told:
        raise UnlabelledError(
            f"{name}: the first row has one column ({excerpt(header[0])}); expected {len(wanted)}, separated by tabs,"
            " commas or another separator. Separate the columns, or specify the format: --input-format csv or tsv"
        )
    found: list[int] = []
    for place, column in enumerate(wanted):
        if column:
            found.append(int(column) - 1 if column.isdecimal() else header.index(column))
        else:
            found.append(_chosen(name, "column", sample, guess, place, num_texts))
    is_named = known is not None or any(column and not column.isdecimal() for column in wanted)
    return found, is_named or (with_label and len(sample) > 2 and has_header(sample, label=found[-1]))


def _chosen(name: str, kind: str, sample: Rows, guess: Columns | None, place: int, num_texts: int) -> int:
    """Return the column of a text, or of the label after the texts; raise CorpusError if none or several are found."""
    labels = guess.labels if guess else ()
    if place == num_texts and len(labels) > 1:
        shown = "; ".join(_shown_column(sample, column) for column in labels)
        raise CorpusError(
            f"{name}: cannot tell which of these holds the label: {shown}. Choose one: --label-column NAME"
        )
    column = next(iter(labels), None) if place == num_texts else guess and guess.texts[place]
    if column is None:
        raise _not_found(name, kind, [cell.strip() for cell in sample[0]], place, num_texts)
    return column


def _shown_column(sample: Rows, column: int) -> str:
    """Return a column's name or number together with its most frequent values."""
    first = sample[0][column].strip() if column < len(sample[0]) else ""
    counts = Counter(cells_of(sample, column))
    is_name = bool(first) and counts[first] == 1
    values = [value[:20] for value, _ in counts.most_common() if not (is_name and value == first)]
    more = ", ..." if len(values) > _SHOWN_VALUES else ""
    return f"{first if is_name else column + 1} ({', '.join(values[:_SHOWN_VALUES])}{more})"


def _not_found(name: str, kind: str, names: Sequence[str], place: int, num_texts: int) -> CorpusError:
    what = "label" if place == num_texts else "text"
    pair = pair_in([each.lower() for each in names]) if num_texts == 1 and what == "text" else None
    advice = f"Choose one: --{what}-column NAME"
    if kind == "column":
        advice = (
            f"Choose one, by name: --{what}-column NAME, or by number, counting from 1: --{what}-column {place + 1}"
        )
    if pair:
        advice = f"For pairs of {pair[0]} and {pair[1]}, use task fit pairs. {advice}"
    elif what == "label" and kind == "field":
        advice = f"{advice}. For labelled spans, use task fit tag."
    found = shown_names(names)
    if what == "label":
        return UnlabelledError(f"{name}: cannot tell which of these holds the label: {found}. {advice}")
    return CorpusError(f"{name}: cannot tell which of these holds the text: {found}. {advice}")


def _short_row(where: str, num_columns: int, columns: Sequence[int]) -> CorpusError:
    return CorpusError(
        f"{where} has {counted(num_columns, 'column')}; expected at least {max(columns) + 1}. Correct the row, or"
        " choose the columns: --text-column, --label-column"
    )


def _cells_of_row(opened: _Opened, where: str, values: Mapping[str, str]) -> tuple[str, ...]:
    num_filled = max((place for place, cell in enumerate(values.values(), start=1) if cell.strip()), default=0)
    if num_filled > len(opened.shown):
        raise CorpusError(f"{where} has {counted(num_filled, 'column')}; expected {len(opened.shown)}. {_QUOTE_CELLS}")
    if any(field not in values for field in opened.fields):
        raise _short_row(where, len(values), [[*opened.shown].index(field) for field in opened.fields])
    return tuple(values[field] for field in opened.fields)


def _open_objects(text: DecodedText, _kind: str, reading: Reading, with_label: bool) -> _Opened:
    records = enumerate(iter_objects(text), start=1)
    sample = list(islice(records, _SAMPLE_RECORDS))
    if not sample:
        raise CorpusError(f"{text.name} has no records. Give one JSON object per line.")
    names, num_texts = list(sample[0][1]), reading.num_texts
    cells = [[_text_of(record.get(name)) or "" for name in names] for _, record in sample]
    wanted = reading.columns_in(names, with_label=with_label)
    if not all(wanted) and not any(isinstance(value, str) for _, record in sample for value in record.values()):
        raise CorpusError(
            f"{text.name}: none of the fields {shown_names(names)} contains text. Convert each record to a text and"
            ' a label, such as {"text": "...", "label": "..."}.'
        )
    rows = [names, *cells]
    known = known_columns(rows, num_texts, with_label=with_label, numbers=reading.regression)
    fields = [
        name or names[_chosen(text.name, "field", rows, known, place, num_texts)] for place, name in enumerate(wanted)
    ]
    _require_different(text.name, fields)
    return _Opened(
        what="record",
        shown={name: name for name in names},
        sample=cells,
        fields=fields,
        columns=tuple(fields),
        num_texts=num_texts,
        records=chain(sample, records),
        note=f"fields {', '.join(fields)}",
    )


def _cells_of_object(opened: _Opened, where: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    cells = []
    for place, field in enumerate(opened.fields):
        value, is_label = values.get(field), place == opened.num_texts
        if is_label and isinstance(value, list) and len(value) > 1:
            raise CorpusError(f"{where} has {len(value)} labels in {field}; expected one. Correct the record.")
        # A null label is an empty label; a missing field may be a mistaken name.
        cell = "" if is_label and field in values and value is None else _text_of(value)
        if cell is None:
            missing = f"{where} has no field {field}. Correct the record."
            raise CorpusError(
                missing if value is None else f"{where} has neither text nor a number in {field}. Correct the record."
            )
        cells.append(cell)
    return tuple(cells)


def _text_of(value: Any) -> str | None:
    """Return a string, a number, or a list's strings joined by spaces, as text; None for anything else."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return plain_text(value)


def plain_text(value: Any) -> str | None:
    """Return a JSON string or number as text; None for anything else."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def excerpt(line: str) -> str:
    """Return the start of a line in quotes for use in a message."""
    return repr(line[:_LONGEST_EXCERPT])


def shown_names(names: Sequence[str]) -> str:
    """Return the first names of columns or fields on one line, each truncated to 20 characters."""
    return ", ".join(" ".join(name.split())[:20] for name in names[:8])


def names_in(text: DecodedText, kind: str) -> list[str]:
    """Return the cells in the first row of a table, or the fields of the first JSON object; [] for an empty file."""
    if kind in ("csv", "tsv"):
        return [cell.strip() for cell in next(rows_of(text, kind), [])]
    return list(first_object(text))
