"""Read the rows of tables and the records of JSON as one stream, without losing or changing any value."""

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from elmo_zh.corpus.decoding import DecodedText, without_surrogates
from elmo_zh.corpus.readers.json_stream import iter_items
from elmo_zh.corpus.tally import Tally
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
_LIST_OF_OBJECTS, _FIRST_OBJECT = re.compile(r"\s*\[\s*\{"), re.compile(r"\s*(?:\[\s*)?\{")
_LONGEST_FIRST = 2**22

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
        numbered = enumerate(_checked(text, rows), start=1)
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
    """The records of JSON, whose fields are named by the first one."""

    def __init__(self, name: str, rows: Iterator[Row], size: int) -> None:
        """Read the first records."""
        self.name = name
        self._first = list(islice(rows, size))
        self._rest = rows

    @property
    def first(self) -> Sequence[Row]:
        """The first records."""
        return self._first

    @property
    def sample(self) -> Sequence[Cells]:
        """The names of the fields, then the cells of the first records."""
        names = self.names(has_header=True)
        cells = ([text_of(row.values.get(name)) or "" for name in names] for row in self._first)
        return [names, *cells] if self._first else []

    def names(self, *, has_header: bool) -> list[str]:  # noqa: ARG002  # fields always have names
        """Return the names of the fields of the first records."""
        return list(dict.fromkeys(name for row in self._first for name in row.values))

    def rows(self, *, has_header: bool) -> Iterator[Row]:  # noqa: ARG002
        """Yield all records."""
        return chain(self._first, self._rest)


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
    decode = json.JSONDecoder(object_pairs_hook=joined_pairs).decode
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
        return (line.split("\t") if line else [] for line in text.whole_lines(LONGEST_CELL))
    lines = _RowLines(text)
    csv.field_size_limit(LONGEST_CELL)
    first = text.head(2**16).partition("\n")[0]
    return lines.rows(csv.reader(lines, delimiter=max(",\t;|", key=lambda sign: (first.count(sign), sign == ","))))


def cells_between_signs(text: DecodedText) -> Iterator[Cells] | None:
    """Return a table's rows if a separator such as _!_ occurs equally often in each of the first lines, or None."""
    lines = [line for line in islice(text.whole_lines(LONGEST_CELL), _MOST_LINES) if line.strip()]
    if len(lines) < _LEAST_LINES or "\t" in lines[0]:
        return None
    separators = sorted(set(_SEPARATOR.findall(lines[0])), key=lambda signs: (-len(signs), signs))
    separator = next((signs for signs in separators if len({line.count(signs) for line in lines}) == 1), "")
    return (line.split(separator) for line in text.whole_lines(LONGEST_CELL)) if separator else None


class _RowLines:
    """The lines that csv parses into rows, with a limit on the number of characters per row."""

    def __init__(self, text: DecodedText) -> None:
        # A quoted cell keeps its line ends, so that positions in it are the same as in other programs.
        self._lines = text.whole_lines(LONGEST_CELL, keeps_ends=True)
        self._num_characters = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._num_characters += len(line)
            if self._num_characters > LONGEST_CELL:
                raise csv.Error(f"a row is longer than {LONGEST_CELL:,} characters")
            yield line
        # The last row is unfinished: everything after its open quote, perhaps all other rows, would be one cell.
        if self._num_characters:
            raise csv.Error("the file ends inside a quoted cell")

    def rows(self, rows: Iterator[Cells]) -> Iterator[Cells]:
        """Yield the rows, resetting the limit for each."""
        for row in rows:
            self._num_characters = 0
            yield row


def _checked(text: DecodedText, rows: Iterator[Cells]) -> Iterator[Cells]:
    try:
        yield from rows
    except csv.Error as error:
        raise CorpusError(
            _(
                "{name} is not CSV ({error}); perhaps a quote is not closed. Correct the file or, if the columns"
                " are separated by tabs, add --input-format tsv, which treats quotes as ordinary characters."
            ).format(name=text.name, error=error)
        ) from None


def joined_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a repeated key has a list of all its values, so that none is lost."""
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: given if len(given) > 1 else given[0] for key, given in values.items()}


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


def iter_objects(text: DecodedText) -> Iterator[dict[str, Any]]:
    """Yield the objects in JSON lines or in one list; raise CorpusError for anything else."""
    for number, values in iter_rows(text, "jsonl"):
        if "" in values and len(values) == 1:
            raise CorpusError(
                _("{name}: record {number} is not an object. Give one JSON object per line.").format(
                    name=text.name, number=number
                )
            )
        if isinstance(values.get("data"), dict) and isinstance(values.get("annotations"), list):
            raise CorpusError(
                _("{name} is a full Label Studio export, which cannot be read. Export as JSON-MIN instead.").format(
                    name=text.name
                )
            )
        yield dict(values)


def first_object(text: DecodedText) -> dict[str, Any]:
    """Return the first object in JSON lines or in a list of any length, or an empty dict if there is no object."""
    start = text.head(_LONGEST_FIRST)
    match = _FIRST_OBJECT.match(start)
    try:
        return dict(parse_json(start[match.end() - 1 :], json.JSONDecoder().raw_decode)[0]) if match else {}
    except ValueError:
        return {}


def starts_as_json_lines(head: str) -> bool:
    """Return whether the first line of a text is a complete JSON object."""
    first = head.lstrip().partition("\n")[0]
    try:
        return first.startswith("{") and parse_json(first) is not None
    except ValueError:
        return False


def starts_as_objects(head: str) -> bool:
    """Return whether a text starts with a complete object, or with a list of objects."""
    return starts_as_json_lines(head) or bool(_LIST_OF_OBJECTS.match(head))
