"""Find texts and labels in tables and JSON: their columns or fields, and the part of the data each record is in."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.names import suffix_of
from elmo_zh.corpus.readers.columns import (
    Columns,
    Sample,
    cells_in,
    guessed_columns,
    has_header,
    known_columns,
    pair_in,
    part_named,
)
from elmo_zh.corpus.readers.rows import (
    Objects,
    Row,
    Table,
    cells_between_signs,
    cells_of,
    first_object,
    iter_objects,
    text_of,
)
from elmo_zh.errors import CorpusError
from elmo_zh.language import _, ngettext

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


def labelled_records(
    text: DecodedText, kind: str, reading: Reading, left_out: Counter[str] | None = None, *, with_label: bool = True
) -> LabelledRecords:
    """Return the records of a table or of JSON, from the columns that the settings name, or else the detected ones.

    `left_out` counts the records that annotators did not accept, by reason.
    """
    rows = _open(text, kind, Counter() if left_out is None else left_out)
    is_table = isinstance(rows, Table)
    if isinstance(rows, Table):
        _refuse_prose(text, rows, reading, with_label=with_label)
    fields, has_names = _choose(rows, reading, with_label=with_label)
    names = _names(rows, has_names=has_names)
    shown = _shown(rows, names, has_names=has_names)
    part = _field_of_parts(rows.sample[has_names:], names, fields) if with_label else None
    told = ", ".join(shown.get(field, field) for field in fields)
    notes = [_("columns {names}") if has_names else _("columns {names}, no header")]
    notes = [notes[0].format(names=told)]
    if part:
        notes.append(_("parts (train, dev, test) in {name}").format(name=shown[part]))

    def record(row: Row) -> LabelledRecord:
        what = _("row {number}") if is_table else _("record {number}")
        if is_table and has_names:
            what = _("row {number} (the header is row 1)")
        what = what.format(number=row.number)
        where = f"{text.name}: {what}"
        cells = _cells(where, row.values, names, fields, None if is_table else reading.num_texts)
        return LabelledRecord(what=what, cells=cells, part=_part_of(where, row.values, part) if part else "")

    used = tuple(_name_or_number(rows, field, names, has_names=has_names) for field in fields)
    return LabelledRecords(map(record, rows.rows(has_header=has_names)), ", ".join(notes), used)


# A record says in these fields that a person rejected or skipped it: in Prodigy's exports and in Label Studio's.
_ANSWERS, _REJECTED = "answer", ("reject", "ignore")
_SKIPPED = ("was_cancelled", "cancelled", "is_skipped", "skipped")
STATES = (_ANSWERS, *_SKIPPED)


def iter_accepted(text: DecodedText, left_out: Counter[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON records that annotators accepted with their numbers; count the others by reason."""
    for number, record in enumerate(iter_objects(text), start=1):
        answer = record.get(_ANSWERS)
        skipped = next((name for name in _SKIPPED if record.get(name) is True), None)
        if isinstance(answer, str) and answer in _REJECTED:
            left_out[_("left out because of {field}").format(field=f"{_ANSWERS}: {answer}")] += 1
        elif skipped:
            left_out[_("left out because of {field}").format(field=skipped)] += 1
        else:
            yield number, record


def _names(rows: Table | Objects, *, has_names: bool) -> list[str]:
    """Return the names of the columns, as many as a header has."""
    names = rows.names(has_header=has_names)
    return names[: len(rows.sample[0])] if has_names and isinstance(rows, Table) else names


def _open(text: DecodedText, kind: str, left_out: Counter[str]) -> Table | Objects:
    """Open a file; raise CorpusError if it has no rows or no text at all."""
    rows: Table | Objects
    if kind in ("csv", "tsv"):
        rows = Table(text, cells_between_signs(text) or cells_of(text, kind), _SAMPLE_RECORDS, skips_empty=True)
    else:
        objects = (Row(number, record) for number, record in iter_accepted(text, left_out))
        rows = Objects(text.name, objects, _SAMPLE_RECORDS)
    if not rows.sample:
        raise CorpusError(_("{name} has no rows. Give a text and a label in each row.").format(name=text.name))
    return rows


def _refuse_prose(text: DecodedText, table: Table, reading: Reading, *, with_label: bool) -> None:
    counts = Counter(map(len, table.sample))
    usual, number = counts.most_common(1)[0]
    is_prose = len(counts) > 1 and (usual == 1 or number < _ALIKE_FRACTION * len(table.sample))
    if with_label and is_prose and suffix_of(text.content.file_name) == ".txt" and not any(reading.columns()):
        raise UnlabelledError(
            _("{name} is plain text without labels. Give a table with a text and a label in each row.").format(
                name=text.name
            )
        )


def _shown(rows: Table | Objects, names: Sequence[str], *, has_names: bool) -> dict[str, str]:
    """Return how messages show each column: by its name or, in a table, its number and its name."""
    if isinstance(rows, Objects):
        return {name: name for name in names}
    header = [f" ({cell.strip()})" for cell in rows.sample[0]] if has_names else []
    header += [""] * (len(names) - len(header))
    return {name: f"{place + 1}{header[place]}" for place, name in enumerate(names)}


def _name_or_number(rows: Table | Objects, field: str, names: Sequence[str], *, has_names: bool) -> str:
    """Return the name of a column in its file, or its number from 1 if it has no name."""
    if isinstance(rows, Objects):
        return field
    place = names.index(field)
    name = rows.sample[0][place].strip() if has_names else ""
    return name if name and not name.isdecimal() else str(place + 1)


def _choose(rows: Table | Objects, reading: Reading, *, with_label: bool) -> tuple[list[str], bool]:
    """Return the columns of the texts and the label, and whether the columns have names."""
    if isinstance(rows, Table):
        places, has_names = _columns_of_table(rows.name, rows.sample, reading, with_label)
        _require_alike(rows, places, has_names=has_names)
        names = rows.names(has_header=has_names)
        fields = [names[place] for place in places]
    else:
        fields, has_names = _fields_of_objects(rows, reading, with_label), True
    if twice := next((field for field in fields if fields.count(field) > 1), ""):
        raise CorpusError(
            _(
                "{name}: {column!r} was chosen twice. Choose a different column for each text and for the label:"
                " --text-column, --label-column"
            ).format(name=rows.name, column=twice)
        )
    return fields, has_names


def _require_alike(table: Table, places: Sequence[int], *, has_names: bool) -> None:
    """Raise CorpusError if rows without a header differ in length, or the first one is too short."""
    counts = Counter(map(len, table.sample))
    if (
        not has_names
        and len(table.sample) >= _LEAST_ROWS
        and max(counts.values()) < _ALIKE_FRACTION * len(table.sample)
    ):
        raise CorpusError(
            _(
                "{name}: the rows have from {least} to {most} columns. Put cells that contain the separator in quotes,"
                " or separate the columns with tabs."
            ).format(name=table.name, least=min(counts), most=max(counts))
        )
    if max(places) >= len(table.sample[0]):
        raise _short_row(f"{table.name}: {_('row {number}').format(number=1)}", len(table.sample[0]), max(places) + 1)


def _columns_of_table(name: str, sample: Sample, reading: Reading, with_label: bool) -> tuple[list[int], bool]:
    """Return the columns of the texts and the label, and whether the first row names them."""
    num_texts = reading.num_texts
    header, told = [cell.strip() for cell in sample[0]], list(filter(None, reading.columns()))
    for column in told:
        if not 1 <= int(column) <= len(header) if column.isdecimal() else column not in header:
            raise CorpusError(
                _(
                    "{name} has no column {column!r}. Its first row is: {row}. Give one of these names, or a column"
                    " number, counting from 1."
                ).format(name=name, column=column, row=shown_names(header))
            )
    choice = {"with_label": with_label, "numbers": reading.regression}
    known = known_columns(sample, num_texts, **choice)
    numbers = map(str, range(1, len(header) + 1)) if known is None else ()
    wanted = reading.columns_in({*header, *numbers}, with_label=with_label)
    guess = known or guessed_columns(sample[1:] or sample, num_texts, **choice)
    if guess is None and len(header) == 1 < len(wanted) and not told:
        raise UnlabelledError(
            _(
                "{name}: the first row has one column ({row}); expected {count}, separated by tabs, commas or another"
                " separator. Separate the columns, or specify the format: --input-format csv or tsv"
            ).format(name=name, row=excerpt(header[0]), count=len(wanted))
        )
    places: list[int] = []
    for place, column in enumerate(wanted):
        if column:
            places.append(int(column) - 1 if column.isdecimal() else header.index(column))
        else:
            places.append(_chosen(name, sample, guess, place, num_texts))
    is_named = known is not None or any(column and not column.isdecimal() for column in wanted)
    return places, is_named or (with_label and len(sample) > 2 and has_header(sample, label=places[-1]))


def _fields_of_objects(rows: Objects, reading: Reading, with_label: bool) -> list[str]:
    names = rows.names(has_header=True)
    wanted = reading.columns_in(names, with_label=with_label)
    if not all(wanted) and not any(isinstance(value, str) for row in rows.first for value in row.values.values()):
        raise CorpusError(
            _(
                "{name}: none of the fields {names} contains text. Convert each record to a text and a label, such as"
                ' {{"text": "...", "label": "..."}}.'
            ).format(name=rows.name, names=shown_names(names))
        )
    known = known_columns(rows.sample, reading.num_texts, with_label=with_label, numbers=reading.regression)
    return [
        field or names[_chosen(rows.name, rows.sample, known, place, reading.num_texts)]
        for place, field in enumerate(wanted)
    ]


def _chosen(name: str, sample: Sample, guess: Columns | None, place: int, num_texts: int) -> int:
    """Return the column of a text, or of the label after the texts; raise CorpusError if none or several are found."""
    labels = guess.labels if guess else ()
    if place == num_texts and len(labels) > 1:
        raise CorpusError(
            _("{name}: cannot tell which of these holds the label: {names}. Choose one: --label-column NAME").format(
                name=name, names="; ".join(_shown_column(sample, column) for column in labels)
            )
        )
    column = next(iter(labels), None) if place == num_texts else guess and guess.texts[place]
    if column is None:
        raise _not_found(name, [cell.strip() for cell in sample[0]], place, num_texts)
    return column


def _shown_column(sample: Sample, column: int) -> str:
    """Return a column's name or number together with its most frequent values."""
    first = sample[0][column].strip() if column < len(sample[0]) else ""
    counts = Counter(cells_in(sample, column))
    is_name = bool(first) and counts[first] == 1
    values = [value[:20] for value, _count in counts.most_common() if not (is_name and value == first)]
    more = ", ..." if len(values) > _SHOWN_VALUES else ""
    return f"{first if is_name else column + 1} ({', '.join(values[:_SHOWN_VALUES])}{more})"


def _not_found(name: str, names: Sequence[str], place: int, num_texts: int) -> CorpusError:
    shown = shown_names(names)
    if place == num_texts:
        return UnlabelledError(
            _(
                "{name}: cannot tell which of these holds the label: {names}. Choose one, by name or by number,"
                " counting from 1: --label-column NAME. For labelled spans, use task fit tag."
            ).format(name=name, names=shown)
        )
    pair = pair_in([each.lower() for each in names]) if num_texts == 1 else None
    message = _(
        "{name}: cannot tell which of these holds the text: {names}. Choose one, by name or by number, counting from 1:"
        " --text-column NAME"
    ).format(name=name, names=shown)
    if pair:
        message += _(". For pairs of {first} and {second}, use task fit pairs.").format(first=pair[0], second=pair[1])
    return CorpusError(message)


def _field_of_parts(rows: Sample, names: Sequence[str], used: Sequence[str]) -> str | None:
    """Return an unused column whose value in every row is train, dev or test, or None."""
    for place, name in enumerate(names):
        cells = cells_in(rows[:_PART_RECORDS], place)
        if name not in used and cells and all(part_named(cell.lower()) for cell in cells):
            return name
    return None


def _part_of(where: str, values: Mapping[str, Any], field: str) -> str:
    cell = text_of(values.get(field)) or ""
    part = part_named(cell.strip().lower())
    if not part:
        raise CorpusError(
            _(
                "{where} has {value!r} where other records have train, dev or test. Correct the value, or remove the"
                " column."
            ).format(where=where, value=cell[:40])
        )
    return part


def _short_row(where: str, num_columns: int, needed: int) -> CorpusError:
    return CorpusError(
        ngettext(
            "{where} has {count} column; expected at least {needed}. Correct the row, or choose the columns:"
            " --text-column, --label-column",
            "{where} has {count} columns; expected at least {needed}. Correct the row, or choose the columns:"
            " --text-column, --label-column",
            num_columns,
        ).format(where=where, count=num_columns, needed=needed)
    )


def _cells(
    where: str, values: Mapping[str, Any], names: Sequence[str], fields: Sequence[str], label: int | None
) -> tuple[str, ...]:
    """Return the texts and the label of a row; raise CorpusError if its form differs from the others'.

    `label` is the place of the label among the fields of JSON, where it may be null or a list; None for tables.
    """
    if label is not None:
        return tuple(_cell(where, values, field, is_label=place == label) for place, field in enumerate(fields))
    num_filled = max((place for place, cell in enumerate(values.values(), start=1) if cell.strip()), default=0)
    if num_filled > len(names):
        raise CorpusError(
            _(
                "{where} has {count} columns; expected {expected}. Put cells that contain the separator in quotes, or"
                " separate the columns with tabs."
            ).format(where=where, count=num_filled, expected=len(names))
        )
    if any(field not in values for field in fields):
        raise _short_row(where, len(values), 1 + max(map(names.index, fields)))
    return tuple(values[field] for field in fields)


def _cell(where: str, values: Mapping[str, Any], field: str, *, is_label: bool) -> str:
    value = values.get(field)
    if is_label and isinstance(value, list) and len(value) > 1:
        raise CorpusError(
            _("{where} has {count} labels in {field}; expected one. Correct the record.").format(
                where=where, count=len(value), field=field
            )
        )
    # A null label is an empty label; a missing field may be a mistaken name.
    cell = "" if is_label and field in values and value is None else text_of(value)
    if cell is None:
        raise CorpusError(
            _("{where} has neither text nor a number in {field}. Correct the record.").format(where=where, field=field)
        )
    return cell


def excerpt(line: str) -> str:
    """Return the start of a line in quotes for use in a message."""
    return repr(line[:_LONGEST_EXCERPT])


def shown_names(names: Sequence[str]) -> str:
    """Return the first names of columns or fields on one line, each truncated to 20 characters."""
    return ", ".join(" ".join(name.split())[:20] for name in names[:8])


def names_in(text: DecodedText, kind: str) -> list[str]:
    """Return the cells in the first row of a table, or the fields of the first JSON object; [] for an empty file."""
    if kind in ("csv", "tsv"):
        return [cell.strip() for cell in next(cells_of(text, kind), [])]
    return list(first_object(text))
