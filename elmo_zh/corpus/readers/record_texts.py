"""Read the text in records of CSV, TSV and JSON lines. The name of a field is its path of keys, joined by dots."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.lines import lines_of
from elmo_zh.corpus.readers.columns import known_field, num_han_of, text_column
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents, Record
from elmo_zh.corpus.readers.records import (
    BLANK_LINES,
    Row,
    Table,
    json_records,
    other_columns,
    rows_of,
    starts_as_json_lines,
    values_with_paths,
)
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError
from elmo_zh.text.han import count_han

# Reasons in a tally.
SHORT_ROWS = "rows without the text column"
WITHOUT_FIELD = "records without the text field"
# How many names a message shows at most.
_NOTED_FIELDS, _LISTED_PATHS = 5, 8
_SAMPLE_RECORDS = 50


def num_without_field(tally: Tally) -> int:
    """Return the number of records and rows that lacked the field or column."""
    return tally.dropped_items[SHORT_ROWS] + tally.dropped_items[WITHOUT_FIELD]


def other_fields_note(others: Counter[str]) -> str:
    """Return a message that names the fields and columns that contain Chinese text but were not read."""
    found, number = ", ".join(name for name, _ in others.most_common(_NOTED_FIELDS)), len(others) - _NOTED_FIELDS
    names = f"{found} and {number:,} more" if number > 0 else found
    return f"Fields with Chinese text that were not read: {names}. To choose the fields to read: --field NAME"


def parse_fields(field: str) -> tuple[str, ...]:
    """Parse a list of names such as "title, body.text"."""
    return tuple(name.strip() for name in field.split(",") if name.strip())


def listed(paths: Iterable[str]) -> str:
    """List the first paths for a message, leaving out the empty path of a bare text."""
    names = sorted(filter(None, set(paths)))
    return ", ".join(names[:_LISTED_PATHS]) + (", ..." if len(names) > _LISTED_PATHS else "") if names else ""


def shown_row(row: Sequence[str]) -> str:
    """Return the first cells of a row on one line."""
    cells = ", ".join(" ".join(cell.split())[:20] or "(empty)" for cell in row[:8])
    number = len(row)
    return f"{cells}, ... ({number} columns)" if number > 8 else cells


def choose_fields(named: str, texts: Iterable[tuple[str, str]], tally: Tally) -> list[str]:
    """Return the fields that the user named, or else the one that clearly holds the text; note them in the tally."""
    paths = list(parse_fields(named))
    if not paths:
        num_han: dict[str, int] = {}
        for path, text in texts:
            num_han[path] = num_han.get(path, 0) + count_han([text])
        chosen = "" if num_han.keys() == {""} else known_field(num_han)
        if chosen is None:
            return []
        paths = [chosen]
        tally.other_fields.update(path for path, count in num_han.items() if count and path not in ("", chosen))
    tally.read_field = listed(paths)
    return paths


def strings_with_paths(record: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and value of every text in a record, in order."""
    return ((path, value) for path, value in values_with_paths(record) if isinstance(value, str))


def texts_at(record: Any, paths: Sequence[str]) -> list[str]:
    """Return a record's texts at the given paths, path by path; the path of a bare text is empty."""
    if len(paths) == 1 and isinstance(record, dict) and "." not in paths[0]:
        # A fast path for the common case: one key whose value is a text.
        record = {paths[0]: record.get(paths[0])}
        if isinstance(value := record[paths[0]], str):
            return [value]
    found = [(path, text) for path, text in strings_with_paths(record) if path in paths]
    return [text for wanted in paths for path, text in found if path == wanted]


def joined_line(texts: Sequence[str]) -> str:
    """Return the texts of a record as one line; each line end becomes a space, so that positions stay valid."""
    return " ".join(texts).replace("\n", " ").replace("\r", " ")


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """The records of a file, the paths of their text, and the error to raise if no record has text."""

    records: Iterable[Any]
    paths: list[str]
    without_text: str
    no_text: CorpusError | None = None

    def texts(self, tally: Tally) -> Iterator[tuple[list[str], Any]]:
        """Yield the texts of each record, and the record; records without text are counted but still yielded."""
        found = False
        for record in self.records:
            texts = texts_at(record, self.paths)
            if not texts:
                tally.drop(self.without_text, sum(len(value) for _, value in strings_with_paths(record)))
            found = found or bool(texts)
            yield texts, record
        if not found and self.no_text is not None:
            raise self.no_text


# Opens a file. The last argument says to keep every record and count blank lines, for commands that number the lines.
_Open = Callable[[DecodedText, TextConfig, Tally, bool], _Opened]


def _format(open_file: _Open, **others: Any) -> CorpusFormat:
    """Return a format whose records are the documents or the lines of a corpus."""

    def read(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
        return _documents(open_file(text, config, tally, False), tally)

    def read_records(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Iterator[Record]:
        opened = open_file(text, config, tally, True)
        for texts, record in opened.texts(tally):
            yield Record(joined_line(texts), other_columns(values_with_paths(record), opened.paths))

    return CorpusFormat(read=read, read_records=read_records, **others)


def _documents(opened: _Opened, tally: Tally) -> Documents:
    for texts, _ in opened.texts(tally):
        if texts:
            yield lines_of(texts[0]) if len(texts) == 1 else chain.from_iterable(map(lines_of, texts))


def _open_json_lines(text: DecodedText, config: TextConfig, tally: Tally, keeps_all: bool) -> _Opened:
    records = _lines_of_json(text, config, tally, keeps_all)
    sample = list(islice(records, _SAMPLE_RECORDS))
    if not sample:
        raise UnsuitableError(text.name, "no line is JSON", "If the file is plain text, add: --input-format text")
    texts = list(chain.from_iterable(map(strings_with_paths, sample)))
    paths = choose_fields(config.field, texts, tally)
    no_text = no_text_error(text.name, config.field, dict(texts))
    if not paths:
        raise no_text
    return _Opened(records=chain(sample, records), paths=paths, without_text=WITHOUT_FIELD, no_text=no_text)


def _lines_of_json(text: DecodedText, config: TextConfig, tally: Tally, keeps_all: bool) -> Iterator[Any]:
    if keeps_all:
        return json_records(text, "Correct it, or read the file as plain text: --input-format text", blank=tally)
    advice = "Correct it, or leave such lines out: --bad-bytes skip-line"
    return json_records(text, advice, bad=None if config.bad_bytes == "strict" else tally)


def no_text_error(name: str, field: str, paths: Iterable[str]) -> CorpusError:
    """Return the error for a file that has no text in the field that the user named, or has no text field at all."""
    if field:
        return CorpusError(
            f"{name}: no record has text in the field {field}. Choose fields that have text, such as {listed(paths)}."
        )
    return UnsuitableError(
        name, f"cannot tell which field holds the text: {listed(paths)}", "Choose one or more: --field NAME"
    )


def read_part_of_json_lines(text: DecodedText, field: str, config: TextConfig, tally: Tally) -> Documents:
    """Yield the documents in a byte range of JSON lines; `field` names the fields detected in the whole file."""
    records = _lines_of_json(text, config, tally, keeps_all=False)
    paths = list(parse_fields(field)) or [""]
    return _documents(_Opened(records=records, paths=paths, without_text=WITHOUT_FIELD), tally)


def _open_table(kind: str, text: DecodedText, config: TextConfig, tally: Tally, keeps_all: bool) -> _Opened:
    def is_blank(_number: int, row: Row) -> bool:
        if not row and keeps_all:
            tally.drop(BLANK_LINES, 0)
        return not row

    table = Table(text, rows_of(text, kind), is_blank)
    sample = [row for _, row in table.sample]
    if not sample:
        return _Opened(records=[], paths=[], without_text=SHORT_ROWS)
    columns, has_header = _columns(text, config, sample)
    tally.read_field = _described(columns, sample[0], has_header=has_header)
    if not config.field:
        others = [place for place in range(table.width) if place not in columns]
        tally.other_fields.update(
            _described([place], sample[0], has_header=has_header).removesuffix(", no header")
            for place in others
            if num_han_of(sample[has_header:], place)
        )
    names = table.names(has_header=has_header)
    records = (record for _, record in table.records(has_header=has_header))
    return _Opened(records=records, paths=[names[column] for column in columns], without_text=SHORT_ROWS)


def _described(columns: Sequence[int], first: Row, *, has_header: bool) -> str:
    numbers = ", ".join(str(column + 1) for column in columns)
    names = ", ".join(first[column] for column in columns if column < len(first)) if has_header else ""
    return f"column {numbers} ({names})" if names else f"column {numbers}, no header"


def _columns(text: DecodedText, config: TextConfig, sample: Sequence[Row]) -> tuple[list[int], bool]:
    """Return the columns that the user named, else the one that is clearly the text, and whether there is a header."""
    names, header = parse_fields(config.field), [cell.strip() for cell in sample[0]]
    if not names:
        column, has_header = text_column(sample)
        if column is None:
            raise UnsuitableError(
                text.name,
                f"cannot tell which column holds the text: {shown_row(sample[0])}",
                "Choose one or more, by name: --field NAME, or by number, counting from 1: --field 1",
            )
        return [column], has_header
    if all(name in header for name in names):
        return [header.index(name) for name in names], True
    if all(name.isdecimal() and 1 <= int(name) <= len(header) for name in names):
        return [int(name) - 1 for name in names], False
    missing = next(name for name in names if name not in header)
    raise CorpusError(
        f"{text.name} has no column {missing}. Its first row is: {shown_row(sample[0])}. Pass one of these names"
        " to --field or, if the table has no header, a column number, counting from 1."
    )


CSV = _format(partial(_open_table, "csv"), title="CSV", suffixes=(".csv",))
TSV = _format(partial(_open_table, "tsv"), title="TSV", suffixes=(".tsv",))
JSON_LINES = _format(
    _open_json_lines,
    title="JSON lines",
    suffixes=(".jsonl", ".ndjson"),
    starts=starts_as_json_lines,
)
