"""Read labelled examples, or unlabelled pairs of texts, from a file.

In tables and JSON, texts and labels are in the columns or fields that the user names, or else in detected ones.
Another column may name the part of the data (train, dev or test) that each record belongs to.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import Reading
from elmo_zh.corpus.content import EXCEL_SUFFIX, UnsuitableError, suffix_of
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText, refuse_surrogates
from elmo_zh.corpus.read_source import decoded_files
from elmo_zh.corpus.readers.annotation_tools import (
    iter_accepted,
    labels_in,
    left_out_notes,
    refuse_other_formats,
)
from elmo_zh.corpus.readers.columns import (
    PART_WORDS,
    Columns,
    Sample,
    cells_in,
    find_columns,
    has_header,
    is_number,
    no_column,
    part_named,
    shown_names,
)
from elmo_zh.corpus.readers.examples import (
    NO_EXAMPLES,
    OUTSIDE,
    Example,
    Labelled,
    UnlabelledError,
    marks_span,
    require_same_units,
)
from elmo_zh.corpus.readers.formats import find_format
from elmo_zh.corpus.readers.rows import (
    Row,
    Rows,
    cells_between_signs,
    cells_of,
    open_rows,
    starts_as_objects,
    table,
    text_of,
)
from elmo_zh.corpus.readers.tagged import needs_space, read_tagged
from elmo_zh.corpus.sources import Source, find_sources
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import first_ten, joined

_FORMAT_OF_SUFFIX = {
    ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".conll": "conll",
    ".conllu": "conll", ".bio": "conll", ".bmes": "conll", ".bioes": "conll",
}  # fmt: skip
# Datasets for natural language inference give this label to examples on which the annotators did not agree.
_NO_LABEL = "-"
# fastText's prefix of labels.
_FASTTEXT = "__label__"
# How many records choose the columns, enough that even a file sorted by label shows several labels; and how many show
# whether a column names the parts of the data.
_SAMPLE_RECORDS, _PART_RECORDS = 20_000, 200
# How many values of a column a message shows.
_SHOWN_VALUES = 3
# In a text file that is a table, at least this fraction of the rows has the same number of columns.
_ALIKE_FRACTION = 0.95


def read_labelled(path: Path, reading: Reading) -> Labelled:
    """Return the labelled examples of a file, which may be compressed or an archive; if it has none, raise an error."""
    files: list[Labelled] = []
    for source in find_sources([str(path)]).sources if not path.is_dir() else ():
        for text in decoded_files(source, reading.encoding, Tally()):
            read = read_tagged if reading.kind == "tag" else _read_records
            kind = _format_of(text, reading)
            if kind != "jsonl":
                refuse_other_formats(text.name, text.head(2**16))
            labelled = read(text, kind, reading)
            for number, example in enumerate(labelled.examples, start=1):
                refuse_surrogates(" ".join(example.labels), number, text.name)
            if text.encoding.name != "utf-8":
                labelled = replace(labelled, notes=(text.encoding.name.upper(), *labelled.notes))
            files.append(labelled)
    if not files:
        raise CorpusError(_(NO_EXAMPLES).format(name=path))
    for labelled in files:
        require_same_units(labelled, files[0].scheme, files[0].name, by_words=files[0].by_words)
    examples = [example for labelled in files for example in labelled.examples]
    notes = dict.fromkeys(note for labelled in files for note in labelled.notes)
    return replace(files[0], name=str(path), examples=examples, notes=tuple(notes))


def iter_pairs(source: Source, reading: Reading) -> Iterator[tuple[str, ...]]:
    """Yield the pairs of texts in a table or JSON, ignoring labels."""
    for text in decoded_files(source, reading.encoding, Tally()):
        kind = _format_of(text, reading)
        records, _note, _columns = _open_records(text, kind, reading, Counter(), with_label=False)
        yield from (example.texts for _where, example in records)


def with_field_of_task(source: Source, config: TextConfig, field: str) -> TextConfig:
    """Return settings that read the field a task was trained on, if the source has it.

    Otherwise, or if `config` names a field or `field` is a number, return `config`.
    """
    if config.field or not field or field.isdecimal():
        return config
    try:
        for text in decoded_files(source, config.encoding, Tally()):
            kind = find_format(replace(text, is_numbered=True), config.format)
            if kind in ("csv", "tsv", "json", "jsonl") and field in open_rows(text, kind, 1).names(has_header=True):
                return replace(config, field=field)
    except UnsuitableError:
        pass  # reading the lines raises it again
    return config


def _format_of(text: DecodedText, reading: Reading) -> str:
    if reading.format != "auto":
        return reading.format
    kind = _FORMAT_OF_SUFFIX.get(suffix_of(text.content.file_name))
    if kind is None or (kind == "tsv" and reading.kind == "tag"):
        head = text.head(2**16)
        if starts_as_objects(head):
            return "jsonl"
        if head.lstrip().startswith(_FASTTEXT):
            return "fasttext"
        if reading.kind == "tag":
            return "conll"
        return "tsv" if "\t" in head.partition("\n")[0] else "csv"
    return kind


def _read_records(text: DecodedText, kind: str, reading: Reading) -> Labelled:
    conll = _("{name} looks like CoNLL. Use KIND tag or, for one label per text, add: --input-format tsv").format(
        name=text.name
    )
    if kind == "conll":
        raise CorpusError(conll)
    left_out = Counter[str]()
    iter_records, note, columns = _open_records(text, kind, reading, left_out)
    records = list(iter_records)
    examples = [example for _where, example in records if len(example.labels) == 1]
    several = [where for where, example in records if len(example.labels) > 1]
    empty = [where for where, example in records if not example.labels]
    if not examples and (reading.skips_unlabelled or (len(records) != 1 and not several)):
        raise (UnlabelledError if records else CorpusError)(_(NO_EXAMPLES).format(name=text.name))
    for problem, places in ((_("empty labels"), empty), (_("several labels"), several)):
        if places and not reading.skips_unlabelled:
            raise CorpusError(
                _(
                    "{name}: {problem}: {number}, the first in {first}. Each example needs exactly one label."
                    " Correct these labels, or leave the examples out with --skip-unlabelled"
                ).format(name=text.name, problem=problem, number=f"{len(places):,}", first=places[0])
            )
        left_out[_("left out because of {field}").format(field=problem)] += len(places)
    labels = {example.labels[0] for example in examples}
    if reading.format == "auto" and OUTSIDE in labels and any(map(marks_span, labels)):
        raise CorpusError(conll)
    for where, example in records if reading.regression else ():
        if len(example.labels) == 1 and not is_number(example.labels[0]):
            label = f"{text.name}: {where}: {example.labels[0][:40]!r} (--regression)"
            raise CorpusError.unexpected(label, _("a number"))
    agreed = examples if reading.regression else _with_agreed_label(examples)
    left_out[_("left out because of {field}").format(field=f"label: {_NO_LABEL}")] += len(examples) - len(agreed)
    form = "Excel" if suffix_of(text.content.name) == EXCEL_SUFFIX else kind
    notes = (_("{name}: {value}").format(name=form, value=note), *left_out_notes(left_out))
    return Labelled(name=text.name, examples=agreed, columns=columns, notes=notes)


def _with_agreed_label(examples: Sequence[Example]) -> Sequence[Example]:
    """Leave out examples with `_NO_LABEL` if at least two other labels exist, all starting with a letter or digit."""
    others = {example.labels[0] for example in examples} - {_NO_LABEL}
    if len(others) < 2 or not all(label[0].isalnum() for label in others):
        return examples
    return [example for example in examples if example.labels[0] != _NO_LABEL]


def _iter_fasttext(text: DecodedText) -> Iterator[tuple[str, Example]]:
    """Yield the examples of a file in fastText's format: the words of a text, and labels with a prefix.

    Spaces are kept only between ASCII letters or digits, since the texts to label are not segmented.
    """
    for number, line in enumerate(text.whole_lines(), start=1):
        labels, joined = list[str](), ""
        for word in line.split():
            if word.startswith(_FASTTEXT):
                labels.append(word.removeprefix(_FASTTEXT))
            else:
                joined += f" {word}" if needs_space(joined, word) else word
        if labels or joined:
            where = _("line {number}").format(number=number)
            yield where, Example((joined,), tuple(filter(None, labels)))


def _open_records(
    text: DecodedText, kind: str, reading: Reading, left_out: Counter[str], *, with_label: bool = True
) -> tuple[Iterator[tuple[str, Example]], str, tuple[str, ...]]:
    """Return a file's records, each with its place for messages; a note about the columns used; and their names.

    Columns without a name have a number. `left_out` counts the records that annotators did not accept, by reason.
    """
    if kind == "fasttext":
        return _iter_fasttext(text), _FASTTEXT, ()
    if kind in ("csv", "tsv"):
        cells = cells_between_signs(text) or cells_of(text, kind)
        rows = table(text.name, cells, _SAMPLE_RECORDS, skips_blank=True)
    else:
        rows = Rows(text.name, iter_accepted(text, left_out), _SAMPLE_RECORDS, is_table=False)
    if not rows.sample:
        raise CorpusError(_(NO_EXAMPLES).format(name=text.name))
    if with_label and rows.is_table and _is_prose(rows.sample, suffix_of(text.content.file_name), reading):
        raise UnlabelledError(_(NO_EXAMPLES).format(name=text.name))
    places, has_names = _choose(rows, reading, with_label=with_label)
    usual_width = Counter(map(len, rows.sample)).most_common(1)[0][0]
    width = len(rows.sample[0]) if has_names else max(usual_width, *(place + 1 for place in places))
    names = rows.names(has_header=has_names)[:width]
    fields = [names[place] for place in places]
    columns = tuple(
        fields[n] if has_names and not fields[n].isdecimal() else str(place + 1) for n, place in enumerate(places)
    )
    note = _("columns {names}") if has_names else _("columns {names}, no header")
    note = note.format(names=first_ten(columns))
    part = _field_of_parts(rows.sample[has_names:], names, fields) if with_label else ""
    if part:
        note = joined([note, _("parts (train, dev, test) from column {name}").format(name=part)])
    what = _("row {number}") if rows.is_table else _("record {number}")

    def example(row: Row) -> tuple[str, Example]:
        where = what.format(number=row.number)
        problem_place = f"{text.name}: {where}"
        if rows.is_table:
            _require_width(problem_place, row.values, width)
        texts = (_cell(problem_place, row.values, field) for field in fields[: reading.num_texts])
        labels = (label for field in fields[reading.num_texts :] for label in _labels(problem_place, row.values, field))
        named = _part_of(problem_place, row.values, part) if part else ""
        return where, Example(tuple(texts), tuple(labels), part=named)

    return map(example, rows.rows(has_header=has_names)), note, columns


def _is_prose(sample: Sample, suffix: str, reading: Reading) -> bool:
    """Return whether rows are lines of plain text rather than rows of a table."""
    counts = Counter(map(len, sample))
    usual, number = counts.most_common(1)[0]
    differ = len(counts) > 1 and (usual == 1 or number < _ALIKE_FRACTION * len(sample))
    return not any(reading.columns()) and (max(counts) == 1 or (differ and suffix == ".txt"))


def _choose(rows: Rows, reading: Reading, *, with_label: bool) -> tuple[list[int], bool]:
    """Return the columns of the texts and the label, and whether the columns have names."""
    sample, num_texts, is_table = rows.sample, reading.num_texts, rows.is_table
    header = [cell.strip() for cell in sample[0]]
    guess = find_columns(sample, num_texts, with_label=with_label, numbers=reading.regression, is_table=is_table)
    numbers = () if guess.has_names else map(str, range(1, len(header) + 1))
    wanted = reading.columns_in({*header, *numbers}, with_label=with_label)
    places: list[int] = []
    for column in wanted:
        if not column:
            places.append(_guessed(rows.name, sample, guess, len(places), num_texts))
        elif column in header and not (is_table and column.isdecimal()):
            places.append(header.index(column))
        elif column.isdecimal() and 1 <= int(column) <= len(header):
            places.append(int(column) - 1)
        else:
            raise no_column(rows.name, column, header)
    if len(places) > len(set(places)):
        raise CorpusError(
            _(
                "{name}: {column!r} was chosen twice. Choose a different column for each text and for the label:"
                " --text-column, --label-column"
            ).format(name=rows.name, column=header[Counter(places).most_common(1)[0][0]])
        )
    has_names = guess.has_names or any(column and not column.isdecimal() for column in wanted)
    has_names = has_names or (with_label and len(sample) > 2 and has_header(sample, label=places[-1]))
    return places, has_names


def _guessed(name: str, sample: Sample, guess: Columns, place: int, num_texts: int) -> int:
    """Return the column of text `place`, or of the label if `place` is `num_texts`; raise CorpusError if unclear."""
    is_label = place == num_texts
    columns = guess.labels if is_label else guess.texts[place : place + 1]
    if len(columns) == 1 and columns[0] is not None and columns[0] < len(sample[0]):
        return columns[0]
    shown = _("; ").join(_shown_column(sample, column) for column in columns if column is not None)
    message = _(
        "{name}: cannot tell which of these to use for --{what}-column: {names}. Choose one by name or by number,"
        " counting from 1: --{what}-column NAME"
    )
    what, names = "label" if is_label else "text", shown or shown_names(sample[0])
    kind = UnlabelledError if is_label and not shown else CorpusError
    raise kind(message.format(name=name, what=what, names=names))


def _shown_column(sample: Sample, column: int) -> str:
    """Return a column's name or number together with its most frequent values."""
    first = sample[0][column].strip() if column < len(sample[0]) else ""
    counts = Counter(cells_in(sample, column))
    is_name = bool(first) and counts[first] == 1
    values = [value[:20] for value, _count in counts.most_common() if not (is_name and value == first)]
    more = ", ..." if len(values) > _SHOWN_VALUES else ""
    return f"{first if is_name else column + 1} ({', '.join(values[:_SHOWN_VALUES])}{more})"


def _field_of_parts(rows: Sample, names: Sequence[str], used: Sequence[str]) -> str:
    """Return an unused column in which each of the first rows names a part (train, dev or test), or ""."""
    for place, name in enumerate(names):
        cells = cells_in(rows[:_PART_RECORDS], place)
        if name not in used and cells and all(part_named(cell.lower()) for cell in cells):
            return name
    return ""


def _part_of(where: str, values: Mapping[str, Any], field: str) -> str:
    cell = text_of(values.get(field)) or ""
    part = part_named(cell.strip().lower())
    if not part:
        raise CorpusError.unexpected(f"{where}: {field} = {cell[:40]!r}", ", ".join(PART_WORDS))
    return part


def _require_width(where: str, values: Mapping[str, str], width: int) -> None:
    """Raise CorpusError for a row with text beyond the last column, perhaps because a cell contains the separator."""
    num_filled = max((place for place, cell in enumerate(values.values(), start=1) if cell.strip()), default=0)
    if num_filled > width:
        raise CorpusError(
            _(
                "{where} has {count} columns; expected {expected}. If a cell contains the separator, remove it there"
                " or, in CSV, put the cell in quotes."
            ).format(where=where, count=num_filled, expected=width)
        )


def _labels(where: str, values: Mapping[str, Any], field: str) -> Iterator[str]:
    """Yield a record's labels: none if the field is empty or null, several from a list; a missing field is an error."""
    value = labels_in(where, values.get(field), field)
    # A null label is an empty label; a missing field may be a mistaken name.
    if value is None and field in values:
        return
    for each in value if isinstance(value, list) else [value]:
        if label := _cell(where, {field: each}, field).strip():
            yield label


def _cell(where: str, values: Mapping[str, Any], field: str) -> str:
    cell = text_of(values.get(field))
    if cell is None:
        raise CorpusError(
            _("{where} has neither text nor a number in {field}. Correct the record.").format(where=where, field=field)
        )
    return cell
