"""Read the rows of tables, and the records of JSON of any structure."""

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from itertools import chain, islice
from typing import Any, NamedTuple

from elmo_zh.corpus.content import CORRECT, UnsuitableError
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText, require_length, without_surrogates
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.files import parse_json

LONGEST_CELL = 2**24
LONGEST_RECORD = 2**26
# A file of JSON is held in memory.
LONGEST_JSON = 2**27
# Reasons in a tally.
NOT_JSON = N_("lines that are not JSON")
NO_JSON = N_("not JSON, or truncated")
# Some tables have signs such as _!_ or || between columns; at least this many lines must show it.
_SEPARATOR = re.compile(r"(?!__)[_!|#@$^*+=~]{2,}")
_LEAST_LINES, _MOST_LINES = 10, 200
_LIST_OF_OBJECTS = re.compile(r"\s*\[\s*\{")

Cells = list[str]


class Row(NamedTuple):
    """A row of a table, or a record of JSON: its number in the file, from 1, and its values by column.

    The values of a table are strings. JSON values may nest, and a record that is not an object has its value under "".
    """

    number: int
    values: Mapping[str, Any]


class Rows:
    """The rows of a table, or the records of JSON, with a sample of the first ones, from which columns are chosen.

    Attributes:
        name: Name of the file.
        is_table: Whether rows are lists of cells; the first row may then name the columns.
        sample: The cells of the first rows; in JSON, the names of their fields come first.
        width: Number of columns of the sample.
    """

    def __init__(self, name: str, rows: Iterable[tuple[int, Any]], size: int, *, is_table: bool) -> None:
        """Read the first `size` rows, which come with their numbers; raise CorpusError if they cannot be read."""
        self.name, self.is_table, self._rest = name, is_table, iter(rows)
        self._first = list(islice(self._rest, size))
        self.sample: list[Cells] = [values for _number, values in self._first]
        if not is_table and self._first:
            names = list(dict.fromkeys(name for _number, values in self._first for name in values))
            cells = ([text_of(values.get(name)) or "" for name in names] for _number, values in self._first)
            self.sample = [names, *cells]
        self.width = max(map(len, self.sample), default=0)

    def names(self, *, has_header: bool) -> list[str]:
        """Return the fields of JSON, or a name per column: its header, or `column N` if that is empty or taken."""
        if not self.is_table:
            return self.sample[0] if self.sample else []
        header = [cell.strip() for cell in self.sample[0]] if has_header and self.sample else []
        names: list[str] = []
        for place in range(self.width):
            name, new = header[place] if place < len(header) else "", f"column {place + 1}"
            while new in header:  # as the name of another column
                new += " (2)"
            names.append(name if name and name not in names else new)
        return names

    def rows(self, *, has_header: bool) -> Iterator[Row]:
        """Yield the records, or the rows of a table (below its header, if it has one); short rows have fewer values."""
        names = self.names(has_header=has_header)
        for number, values in chain(self._first[has_header and self.is_table :], self._rest):
            if self.is_table:
                extra = [f"column {place + 1}" for place in range(len(names), len(values))]
                yield Row(number, dict(zip([*names, *extra] if extra else names, values, strict=False)))
            else:
                yield Row(number, values)


def iter_rows(text: DecodedText, kind: str, *, bad: Tally | None = None, size: int = 1) -> Iterator[Row]:
    """Return the JSON records of a file, or the rows of a table whose first row names the columns."""
    return open_rows(text, kind, size, bad=bad).rows(has_header=True)


def open_rows(text: DecodedText, kind: str, size: int, *, bad: Tally | None = None) -> Rows:
    """Open a table or JSON with a sample of `size` rows; `bad`, if given, counts lines that are not JSON."""
    if kind in ("csv", "tsv"):
        return table(text.name, cells_of(text, kind), size)
    return Rows(text.name, _json_rows(text, kind, bad), size, is_table=False)


def table(name: str, rows: Iterable[Cells], size: int, *, skips_blank: bool = False) -> Rows:
    """Return a table without its empty rows and, with `skips_blank`, without its rows of blank cells."""
    numbered = enumerate(rows, start=1)
    filled = ((number, row) for number, row in numbered if (any(map(str.strip, row)) if skips_blank else row))
    return Rows(name, filled, size, is_table=True)


def _json_rows(text: DecodedText, kind: str, bad: Tally | None) -> Iterator[Row]:
    if kind == "json" or _LIST_OF_OBJECTS.match(text.head(2**10)):
        yield from (Row(number, as_values(item)) for number, item in enumerate(items_in(load_json(text)), start=1))
        return
    number = 0
    for line_number, line in enumerate(text.whole_lines(LONGEST_RECORD), start=1):
        stripped = line.strip()
        if not stripped:
            continue
        number += 1
        try:
            record = parse_json(stripped, _DECODER.decode)
        except ValueError as error:
            if bad is None:
                raise CorpusError(
                    _("{name}: line {number} is not JSON ({error}). Write one JSON object per line.").format(
                        name=text.name, number=line_number, error=error
                    )
                ) from None
            bad.drop(NOT_JSON, len(line))
        else:
            yield Row(number, as_values(record))


def as_values(record: Any) -> Mapping[str, Any]:
    """Return an object as it is, and any other JSON value under an empty name."""
    return record if isinstance(record, dict) else {"": record}


def cells_of(text: DecodedText, kind: str) -> Iterator[Cells]:
    """Return the rows of CSV, whose first line shows the separator, or of TSV; an empty line becomes an empty row."""
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
    """Return a table's rows if a separator such as _!_ occurs equally often in each of the first lines, else None."""
    lines = [line for line in islice(text.whole_lines(LONGEST_CELL), _MOST_LINES) if line.strip()]
    if len(lines) < _LEAST_LINES or "\t" in lines[0]:
        return None
    separators = sorted(set(_SEPARATOR.findall(lines[0])), key=lambda signs: (-len(signs), signs))
    separator = next((signs for signs in separators if len({line.count(signs) for line in lines}) == 1), "")
    return (line.split(separator) for line in text.whole_lines(LONGEST_CELL)) if separator else None


def _joined_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a repeated key has a list of all its values, so that none is lost."""
    record = dict(pairs)
    if len(record) < len(pairs):
        values: dict[str, list[Any]] = {}
        for key, value in pairs:
            values.setdefault(key, []).append(value)
        record = {key: of_key if len(of_key) > 1 else of_key[0] for key, of_key in values.items()}
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_joined_pairs)


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


def texts_with_paths(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path and value of every text in a row."""
    return ((path, value) for path, value in values_with_paths(values) if isinstance(value, str))


def other_columns(values: Iterable[tuple[str, object]], used: Collection[str]) -> dict[str, str]:
    """Return the values at unused paths as text; several values at one path are joined by spaces."""
    cells: dict[str, list[str]] = {}
    for path, value in values:
        if path not in used:
            cells.setdefault(path, []).append(without_surrogates(str(value)))
    return {path: " ".join(parts) for path, parts in cells.items()}


def text_of(value: Any) -> str | None:
    """Return a string or a number as text, or a list of strings joined by spaces; None for anything else."""
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
    """Return whether the first line of a text is a complete object, or the text starts with a list of objects."""
    return starts_as_json_lines(head) or bool(_LIST_OF_OBJECTS.match(head))


def load_json(text: DecodedText) -> Any:
    """Return the value in a JSON file, which is read into memory as a whole.

    Raises:
        UnsuitableError: If the file is too long, or does not begin as JSON.
        CorpusError: If it is damaged after that.
    """
    require_length(text, LONGEST_JSON, "JSON")
    try:
        return parse_json("".join(text.chunks()), _DECODER.decode)
    except ValueError as error:
        line = _("line {number}").format(number=getattr(error, "lineno", 1))
        unsuitable = UnsuitableError(
            text.name,
            NO_JSON,
            _(CORRECT),
            f"{getattr(error, 'msg', error)}, {line}",
        )
        raise CorpusError(*unsuitable.messages) if getattr(error, "pos", 0) > 1 else unsuitable from None


def items_in(value: Any, paths: Collection[str] = ()) -> list[Any]:
    """Return the records of a JSON file: the items of its top-level array or of the outermost arrays on `paths`.

    A path is the keys to a value, joined by dots; arrays do not appear in it. A record found inside objects is wrapped
    in the same keys, so that its paths are the same as in the file. A file without such an array is one record.
    """
    items: list[Any] = []
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        keys, inner = waiting.pop()
        array = ".".join(keys)
        if isinstance(inner, dict):
            waiting.extend(((*keys, key), item) for key, item in reversed(inner.items()))
        elif isinstance(inner, list) and (
            not keys or any(path == array or path.startswith(f"{array}.") for path in paths)
        ):
            items.extend(reduce(lambda item, key: {key: item}, reversed(keys), item) for item in inner)
    return items or ([] if value == [] else [value])


def starts_as_json(head: str) -> bool:
    """Return whether a text starts with an array of objects or texts, or an object that its first line leaves open."""
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
