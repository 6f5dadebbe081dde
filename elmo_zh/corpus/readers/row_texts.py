"""Read the text in the rows of CSV, TSV, JSON and JSON lines; a JSON field is named by its keys, joined by dots."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import without_variants
from elmo_zh.corpus.content import CORRECT, UnsuitableError
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.corpus.readers.columns import known_field, no_column, num_han_of, shown_names, text_column
from elmo_zh.corpus.readers.formats import CorpusFormat, Record
from elmo_zh.corpus.readers.rows import (
    NO_JSON,
    Cells,
    Row,
    as_values,
    items_in,
    iter_rows,
    load_json,
    open_rows,
    other_columns,
    starts_as_json,
    starts_as_json_lines,
    texts_with_paths,
    values_with_paths,
)
from elmo_zh.corpus.text_files import lines_of
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import first_ten
from elmo_zh.text.script import count_han

# Reason in a tally.
WITHOUT_FIELD = N_("records without the text field")
_SAMPLE_ROWS, _SAMPLE_RECORDS, _SAMPLE_TEXTS = 200, 50, 2000
# The fields of wikiextractor --json, whose texts have the language variants of the Chinese Wikipedia.
_WIKI_FIELDS = {"id", "url", "title", "text"}


def other_fields_note(others: Mapping[str, int]) -> str:
    """Return a message that names the fields and columns that contain Chinese text but were not read."""
    names = first_ten([name.removeprefix("column ") for name, _count in Counter(others).most_common()])
    message = _(
        "These fields also contain Chinese text but were not read: {names}. To choose the fields to read: --field NAME"
    )
    return message.format(names=names)


def parse_fields(field: str) -> tuple[str, ...]:
    """Parse a list of names such as "title, body.text"."""
    return tuple(name.strip() for name in field.split(",") if name.strip())


def listed(paths: Iterable[str]) -> str:
    """Join the first eight paths in sorted order, leaving out the empty path of a bare text."""
    names = sorted(filter(None, set(paths)))
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


class _Opened(NamedTuple):
    """The rows of a file, the paths of their text, and the error, if any, to raise if no row has text."""

    rows: Iterator[Row]
    paths: Sequence[str]
    no_text: CorpusError | None = None

    def iter_texts(self, tally: Tally) -> Iterator[tuple[list[str], Row]]:
        """Yield each row's texts, and the row; count rows without text; raise `no_text` (if set) if all lack it."""
        has_text = False
        for row in self.rows:
            texts = texts_at(row.values, self.paths)
            if not texts:
                tally.drop(WITHOUT_FIELD, sum(len(value) for _path, value in texts_with_paths(row.values)))
            has_text = has_text or bool(texts)
            is_wiki = row.values.keys() >= _WIKI_FIELDS
            yield [without_variants(text) for text in texts] if is_wiki else texts, row
        if not has_text and self.no_text is not None:
            raise self.no_text

    def lines(self, tally: Tally) -> Iterator[Record]:
        """Yield the lines of the texts."""
        for texts, _row in self.iter_texts(tally):
            for text in texts:
                yield from map(Record, lines_of(text))

    def numbered(self, tally: Tally) -> Iterator[Record]:
        """Yield each row as one line with its other columns; spaces replace line ends so that positions stay valid."""
        for texts, row in self.iter_texts(tally):
            line = " ".join(texts).replace("\n", " ").replace("\r", " ")
            yield Record(line, other_columns(values_with_paths(row.values), self.paths))


def texts_at(values: Any, paths: Sequence[str]) -> list[str]:
    """Return a row's texts at the given paths, path by path."""
    if len(paths) == 1 and "." not in paths[0]:
        # A fast path for the common case: one key whose value is a text.
        values = {paths[0]: values.get(paths[0])}
        if isinstance(value := values[paths[0]], str):
            return [value]
    found = [(path, text) for path, text in texts_with_paths(values) if path in paths]
    return [text for wanted in paths for path, text in found if path == wanted]


def _read(kind: str, text: DecodedText, config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield the lines of the text in each row or, if rows are numbered, each row as one line."""
    bad = None if text.is_numbered or config.bad_bytes == "strict" else tally
    opened = _open(kind, text, config, tally, bad)
    return opened.numbered(tally) if text.is_numbered else opened.lines(tally)


def _open(kind: str, text: DecodedText, config: TextConfig, tally: Tally, bad: Tally | None) -> _Opened:
    if kind not in ("csv", "tsv"):
        return _open_objects(kind, text, config, tally, bad)
    rows = open_rows(text, kind, _SAMPLE_ROWS)
    if not (sample := rows.sample):
        return _Opened(iter(()), [])
    columns, has_header = _columns(rows.name, config, sample)
    tally.read_field = _described(columns, sample[0], has_header=has_header)
    for place in range(rows.width) if not config.field else ():
        if place not in columns and num_han_of(sample[has_header:], place):
            tally.add_fields([_described([place], sample[0], has_header=has_header, is_read=False)])
    names = rows.names(has_header=has_header)
    return _Opened(rows.rows(has_header=has_header), [names[column] for column in columns])


def _described(columns: Sequence[int], first: Cells, *, has_header: bool, is_read: bool = True) -> str:
    numbers = ", ".join(str(column + 1) for column in columns)
    names = ", ".join(first[column] for column in columns if column < len(first)) if has_header else ""
    if names:
        return f"column {numbers} ({names})"
    return f"column {numbers}, no header" if is_read else f"column {numbers}"


def _columns(name: str, config: TextConfig, sample: Sequence[Cells]) -> tuple[list[int], bool]:
    """Return the named columns or the text column, and whether there is a header; raise CorpusError if none fits."""
    names, header = parse_fields(config.field), [cell.strip() for cell in sample[0]]
    if not names:
        column, has_header = text_column(sample)
        if column is None:
            raise _unclear(name, shown_names(header))
        return [column], has_header
    if all(field in header for field in names):
        return [header.index(field) for field in names], True
    if all(field.isdecimal() and 1 <= int(field) <= len(header) for field in names):
        return [int(field) - 1 for field in names], False
    raise no_column(name, next(field for field in names if field not in header), header)


def _open_objects(kind: str, text: DecodedText, config: TextConfig, tally: Tally, bad: Tally | None) -> _Opened:
    """Open JSON or JSON lines with the fields that the user named, or else the one that clearly holds the text."""
    if kind == "json":
        value = load_json(text)
        all_texts = (pair for item in items_in(value) for pair in texts_with_paths(as_values(item)))
        texts = list(islice(all_texts, _SAMPLE_TEXTS))
    else:
        rows = iter_rows(text, kind, bad=bad)
        first = list(islice(rows, _SAMPLE_RECORDS))
        if not first:
            raise UnsuitableError(text.name, NO_JSON, _(CORRECT))
        texts = [pair for row in first for pair in texts_with_paths(row.values)]
    paths = list(parse_fields(config.field))
    no_text: CorpusError = CorpusError(
        _("{name}: no record has text in the field {field}. Choose fields that have text, such as {names}.").format(
            name=text.name, field=config.field, names=listed(path for path, _text in texts)
        )
    )
    if not paths:
        num_han = Counter[str]()
        for path, part in texts:
            num_han[path] += count_han([part])
        no_text = _unclear(text.name, listed(num_han))
        field = "" if num_han.keys() == {""} else known_field(num_han)
        if field is None:
            raise no_text
        paths = [field]
        tally.add_fields(path for path, count in num_han.items() if count and path not in ("", field))
    tally.read_field = listed(paths)
    if kind == "json":
        items = enumerate(items_in(value, paths), start=1)
        return _Opened((Row(number, as_values(item)) for number, item in items), paths, no_text)
    return _Opened(chain(first, rows), paths, no_text)


def _unclear(name: str, shown: str) -> UnsuitableError:
    advice = _("Choose one or more: --field NAME")
    return UnsuitableError(name, N_("cannot tell which column or field holds the text"), advice, shown)


def _format(kind: str, **others: Any) -> CorpusFormat:
    return CorpusFormat(read=partial(_read, kind), **others)


CSV = _format("csv", suffixes=(".csv",))
TSV = _format("tsv", suffixes=(".tsv",))
JSON = _format("json", suffixes=(".json",), starts=starts_as_json)
JSON_LINES = _format("jsonl", suffixes=(".jsonl", ".ndjson"), starts=starts_as_json_lines)
