"""Read the rows of tables and the records of JSON of any structure as one stream, with no value changed."""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText, without_surrogates
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.files import parse_json

LONGEST_CELL = 2**24
LONGEST_RECORD = 2**26
# Reason in a tally.
NOT_JSON = N_("lines that are not JSON")
# Some tables have signs such as _!_ or || between columns; at least this many lines must show it.
_SEPARATOR = re.compile(r"(?!__)[_!|#@$^*+=~]{2,}")
_LEAST_LINES, _MOST_LINES = 10, 200
_LIST_OF_OBJECTS = re.compile(r"\s*\[\s*\{")

Cells = list[str]


class Row(NamedTuple):
    """A row of a table, or a record of JSON: its number in the file, from 1, and its values by column.

    The values of a table are strings. JSON values may nest, and a record that is no object has its value under "".
    """

    number: int
    values: Mapping[str, Any]


class Table:
    """The rows of CSV or TSV; `sample` has the first non-blank ones, so that columns can be chosen by content."""

    def __init__(self, text: DecodedText, rows: Iterator[Cells], size: int, *, skips_empty: bool = False) -> None:
        """Read the first rows; raise CorpusError if the file turns out not to be CSV, now or when more is read."""
        self.name = text.name
        numbered = enumerate(rows, start=1)
        self._rest = ((n, row) for n, row in numbered if (any(map(str.strip, row)) if skips_empty else row))
        self._first = list(islice(self._rest, size))
        self.sample = [row for _number, row in self._first]
        self.width = max(map(len, self.sample), default=0)

    def names(self, *, has_header: bool) -> list[str]:
        """Return a name for each column: its name in the first row if that is unique, otherwise `column N`."""
        names: list[str] = []
        for place in range(self.width):
            name = self.sample[0][place].strip() if has_header and place < len(self.sample[0]) else ""
            names.append(name if name and name not in names else f"column {place + 1}")
        return names

    def rows(self, *, has_header: bool) -> Iterator[Row]:
        """Yield the rows below the header; short rows have fewer values."""
        names = self.names(has_header=has_header)
        for number, cells in chain(self._first[has_header:], self._rest):
            values = dict(zip(names, cells, strict=False))
            for place in range(len(names), len(cells)):
                values[f"column {place + 1}"] = cells[place]
            yield Row(number, values)


class Objects:
    """The records of JSON, whose fields are named by the first ones."""

    def __init__(self, name: str, rows: Iterator[Row], size: int) -> None:
        """Read the first records."""
        self.name = name
        self.first = list(islice(rows, size))
        self._rest = rows

    @property
    def sample(self) -> Sequence[Cells]:
        """The names of the fields, then the cells of the first records."""
        names = self.names(has_header=True)
        cells = ([text_of(row.values.get(name)) or "" for name in names] for row in self.first)
        return [names, *cells] if self.first else []

    def names(self, *, has_header: bool) -> list[str]:  # noqa: ARG002  # fields always have names
        """Return the names of the fields of the first records."""
        return list(dict.fromkeys(name for row in self.first for name in row.values))

    def rows(self, *, has_header: bool) -> Iterator[Row]:  # noqa: ARG002
        """Yield all records."""
        return chain(self.first, self._rest)


def iter_rows(text: DecodedText, kind: str, *, bad: Tally | None = None, size: int = 1) -> Iterator[Row]:
    """Return the records of a JSON file, or the rows of a table whose first row names the columns."""
    return open_rows(text, kind, size, bad=bad).rows(has_header=True)


def open_rows(text: DecodedText, kind: str, size: int, *, bad: Tally | None = None) -> "Table | Objects":
    """Open a table or JSON with a sample of this many rows; `bad` counts lines that are not JSON."""
    if kind in ("csv", "tsv"):
        return Table(text, cells_of(text, kind), size)
    return Objects(text.name, _json_rows(text, kind, bad), size)


def _json_rows(text: DecodedText, kind: str, bad: Tally | None) -> Iterator[Row]:
    if kind == "json" or _LIST_OF_OBJECTS.match(text.head(2**10)):
        yield from (Row(number, as_values(item)) for number, item in enumerate(iter_items(text), start=1))
        return
    decode = json.JSONDecoder(object_pairs_hook=_joined_pairs).decode
    number = 0
    for line_number, line in enumerate(text.whole_lines(LONGEST_RECORD), start=1):
        stripped = line.strip()
        if not stripped:
            continue
        number += 1
        try:
            record = parse_json(stripped, decode)
        except ValueError as error:
            if bad is None:
                raise CorpusError(
                    _(
                        "{name}: line {number} is not JSON ({error}). Give one JSON object per line, or read the file"
                        " as plain text: --input-format text"
                    ).format(name=text.name, number=line_number, error=error)
                ) from None
            bad.drop(NOT_JSON, len(line))
        else:
            yield Row(number, as_values(record))


def as_values(record: Any) -> Mapping[str, Any]:
    """Return an object as it is, and any other JSON value under an empty name."""
    return record if isinstance(record, dict) else {"": record}


def cells_of(text: DecodedText, kind: str) -> Iterator[Cells]:
    """Return the rows of CSV, whose first line shows the separator, or of TSV; a blank line becomes an empty row."""
    if kind == "tsv":
        yield from (line.split("\t") if line else [] for line in text.whole_lines(LONGEST_CELL))
        return
    num_characters = 0

    def lines() -> Iterator[str]:
        nonlocal num_characters
        # A quoted cell keeps its line ends, so that positions in it are the same as in other programs.
        for line in text.whole_lines(LONGEST_CELL, keeps_ends=True):
            num_characters += len(line)
            if num_characters > LONGEST_CELL:
                raise csv.Error(f"a row is longer than {LONGEST_CELL:,} characters")
            yield line
        # The last row is unfinished: everything after its open quote, perhaps all other rows, would be one cell.
        if num_characters:
            raise csv.Error("the file ends inside a quoted cell")

    csv.field_size_limit(LONGEST_CELL)
    first = text.head(2**16).partition("\n")[0]
    sign = max(",\t;|", key=lambda sign: (first.count(sign), sign == ","))
    try:
        for row in csv.reader(lines(), delimiter=sign):
            num_characters = 0
            yield row
    except csv.Error as error:
        raise CorpusError(
            _(
                "{name} is not CSV ({error}); perhaps a quote is not closed. Correct the file or, if the columns"
                " are separated by tabs, add --input-format tsv, which treats quotes as ordinary characters."
            ).format(name=text.name, error=error)
        ) from None


def cells_between_signs(text: DecodedText) -> Iterator[Cells] | None:
    """Return a table's rows if a separator such as _!_ occurs equally often in each of the first lines, or None."""
    lines = [line for line in islice(text.whole_lines(LONGEST_CELL), _MOST_LINES) if line.strip()]
    if len(lines) < _LEAST_LINES or "\t" in lines[0]:
        return None
    separators = sorted(set(_SEPARATOR.findall(lines[0])), key=lambda signs: (-len(signs), signs))
    separator = next((signs for signs in separators if len({line.count(signs) for line in lines}) == 1), "")
    return (line.split(separator) for line in text.whole_lines(LONGEST_CELL)) if separator else None


def _joined_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a repeated key has a list of all its values, so that none is lost."""
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    joined = _Object()
    for key, value in pairs:
        joined[key] = value
    return joined


def values_with_paths(values: Mapping[str, Any]) -> Iterator[tuple[str, str | int | float]]:
    """Yield the path and value of every text and number in a row, in order; lists do not appear in paths."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), values)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((path, item) for item in reversed(value))
        elif isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in reversed(value.items()))
        elif value is not None and not isinstance(value, bool):
            yield ".".join(path), value


def other_columns(values: Iterable[tuple[str, object]], used: Collection[str]) -> dict[str, str]:
    """Return the values at unused paths as text; the values of a list are joined by spaces."""
    cells: dict[str, list[str]] = {}
    for path, value in values:
        if path not in used:
            cells.setdefault(path, []).append(without_surrogates(str(value)))
    return {path: " ".join(parts) for path, parts in cells.items()}


def text_of(value: Any) -> str | None:
    """Return a string, a number, or a list's strings joined by spaces, as text; None for anything else."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return plain_text(value)


def plain_text(value: Any) -> str | None:
    """Return a JSON string or number as text; None for anything else."""
    return None if isinstance(value, bool | dict | list) or value is None else str(value)


def starts_as_json_lines(head: str) -> bool:
    """Return whether the first line of a text is a complete JSON object."""
    first = head.lstrip().partition("\n")[0]
    return first.startswith("{") and _is_json(first)


def starts_as_objects(head: str) -> bool:
    """Return whether a text starts with a complete object, or with a list of objects."""
    return starts_as_json_lines(head) or bool(_LIST_OF_OBJECTS.match(head))


LONGEST_VALUE_BYTES = 2**26
# About the memory that a value takes, besides its characters.
_VALUE_BYTES = 100
DEEPEST = 1000
# Never a character in Unicode; it replaces a lone surrogate while the text passes through the parser.
_SURROGATE_MARK = "\ufdd1"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPED = re.compile(rf"{_HIGH}|{_LOW}")
# An escape follows an even number of backslashes, since two stand for one.
_PAIR_OR_SURROGATE = re.compile(rf"(?<!\\)((?:\\\\)*)(?:({_HIGH}{_LOW})|{_HIGH}|{_LOW})")
# The start of an escape or of a pair at the end of a chunk, which the next chunk may complete.
_UNFINISHED = re.compile(
    rf"(?<!\\)(?:\\\\)*((?:{_HIGH})?\\(?:u[0-9a-fA-F]{{0,3}})?|{_HIGH})\Z"
)  # fmt: skip
_END_CHARACTERS = 2**10

# The keys of the enclosing objects, and None for each enclosing array, outermost first.
Around = list[str | None]


def iter_items(text: DecodedText, paths: Collection[str] = ()) -> Iterator[Any]:
    """Yield the records of a JSON file: the items of its outermost array or, with `paths`, of the one with these paths.

    A path is the keys to a value, joined by dots; arrays do not appear in it. A record inside objects comes inside the
    same keys, so that the paths in it are those in the file. A file without such an array is one record.
    """

    def is_item(around: Around) -> bool:
        if not around or around[-1] is not None or around.count(None) > 1:
            return False
        array = ".".join(key for key in around if key is not None)
        return not array or any(path == array or path.startswith(f"{array}.") for path in paths)

    has_items = False
    for item in _built(text, is_item):
        has_items = True
        yield item
    if not has_items:
        yield from (value for value in _built(text, lambda around: not around) if value != [])


def iter_texts(text: DecodedText) -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each text in a JSON file."""
    for around, event, value in _events(text):
        if event == "string":
            yield ".".join(key for key in around if key is not None), value


def _built(text: DecodedText, is_wanted: Callable[[Around], bool]) -> Iterator[Any]:
    """Yield the values at the wanted places; no wanted value may be inside another one."""
    from ijson.common import ObjectBuilder

    builder, depth, prefix = None, 0, list[str]()
    num_bytes = 0
    for around, event, value in _events(text):
        if builder is None and event != "map_key" and not event.startswith("end_") and is_wanted(around):
            builder, depth, num_bytes = ObjectBuilder(map_type=_Object), len(around), 0
            prefix = [key for key in around if key is not None]
        if builder is not None:
            builder.event(event, value)
            num_bytes += _VALUE_BYTES + (len(value) if event in ("string", "map_key") else 0)
            _require_size(text, num_bytes)
            if len(around) == depth and not event.startswith("start_"):
                item = builder.value
                for key in reversed(prefix):
                    item = {key: item}
                builder = None
                yield item


class _Object(dict[str, Any]):
    """An object in which a repeated key has a list of all its values, so that none is lost."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, [self[key], value] if key in self else value)


def _events(text: DecodedText) -> Iterator[tuple[Around, str, Any]]:
    """Yield each event of the parser with the objects and arrays around its value."""
    # Imported here, so that a machine that only trains does not need it.
    import ijson

    stream = _Utf8(text)
    around: Around = []
    num_events = 0
    try:
        for event, value in ijson.basic_parse(stream, buf_size=2**16, use_float=True):
            num_events += 1
            stream.num_bytes = 0
            if event.startswith("end_"):
                around.pop()
            yield around, event, restore_surrogates(value) if event == "string" else value
            if event == "map_key":
                around[-1] = value
            elif event.startswith("start_"):
                around.append("" if event == "start_map" else None)
                if len(around) > DEEPEST:
                    raise CorpusError(
                        _("{name} contains JSON nested more than {depth} levels deep. Flatten the file.").format(
                            name=text.name, depth=DEEPEST
                        )
                    )
    except (ijson.JSONError, ValueError, SystemError, OverflowError) as error:
        # After a number with thousands of digits, ijson continues with an error set; the next call raises SystemError.
        reason = " ".join(str(error.__cause__ or error).split())[:80]
        unsuitable = UnsuitableError(
            text.name,
            N_("not JSON, or truncated"),
            _("Check the file's format, or download the file again."),
            reason,
        )
        raise (CorpusError(*unsuitable.messages) if num_events > 1 else unsuitable) from None


class _Utf8:
    """The text as a UTF-8 stream that limits how many bytes the parser may read for one value."""

    def __init__(self, text: DecodedText) -> None:
        self._text = text
        self._chunks = mark_surrogates(text.chunks())
        self.num_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Return the next chunk, of any length; nothing for size 0, which ijson uses to test the stream."""
        if size == 0:
            return b""
        data = next(filter(None, self._chunks), "").encode("utf-8", "replace")
        self.num_bytes += len(data)
        _require_size(self._text, self.num_bytes)
        return data


def _require_size(text: DecodedText, num_bytes: int) -> None:
    if num_bytes > LONGEST_VALUE_BYTES:
        raise CorpusError(
            _("{name}: a value or a record is larger than {size} MiB. Split the text into smaller records.").format(
                name=text.name, size=LONGEST_VALUE_BYTES // 2**20
            )
        )


def mark_surrogates(chunks: Iterable[str]) -> Iterator[str]:
    """Yield JSON in chunks that never split an escape, with a mark in place of each escaped lone surrogate."""
    held = ""
    for chunk in chunks:
        text = held + chunk
        held = ""
        if "\\" in text[-12:] and (unfinished := _UNFINISHED.search(text[-_END_CHARACTERS:])):
            held = unfinished[1]
            text = text[: len(text) - len(held)]
        yield _marked(text)
    yield _marked(held)


def _marked(text: str) -> str:
    if not _ESCAPED.search(text):
        return text
    return _PAIR_OR_SURROGATE.sub(lambda match: match[0] if match[2] else match[1] + _SURROGATE_MARK, text)


def restore_surrogates(value: str) -> str:
    """Turn the marks in a text from the parser back into lone surrogates."""
    return value.replace(_SURROGATE_MARK, "\ud800")


def starts_as_json(head: str) -> bool:
    """Return whether a text starts with a value that spans several lines or is longer than this head."""
    start = head.lstrip()
    if start.startswith("{"):
        is_whole = "\n" not in start and len(start) <= 2**15
        first = start.partition("\n")[0]
        return not is_whole and bool(re.match(r'\{\s*"', start)) and not _is_json(first)
    # Wiki links start with [[ too.
    return bool(re.match(r'(?:\[\s*)+[{"]', start))


def _is_json(line: str) -> bool:
    try:
        return parse_json(line) is not None
    except ValueError:
        return False
