"""Read the records of CSV, TSV and JSON lines as dicts that map names to values, without losing any value."""

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from elmo_zh.corpus.decoding import DecodedText, without_surrogates
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import parse_json

LONGEST_CELL = 2**24
LONGEST_RECORD = LONGEST_LIST = 2**26
_SAMPLE_ROWS = 200
# Reasons in a tally.
BLANK_LINES = "blank lines between records"
NOT_JSON = "lines that are not JSON"
# Some tables have signs such as _!_ or || between columns; at least this many lines must show it.
_SEPARATOR = re.compile(r"(?!__)[_!|#@$^*+=~]{2,}")
_LEAST_LINES = 10
_LIST_OF_OBJECTS, _FIRST_OBJECT = re.compile(r"\s*\[\s*\{"), re.compile(r"\s*(?:\[\s*)?\{")
_LONGEST_FIRST = 2**22

Row = list[str]


class Table:
    """The rows of a table; `sample` has the first non-blank ones, with their numbers in the file, from 1."""

    def __init__(
        self,
        text: DecodedText,
        rows: Iterator[Row],
        is_blank: Callable[[int, Row], bool] = lambda _, row: not row,
        num_sample_rows: int = _SAMPLE_ROWS,
    ) -> None:
        """Read the first rows; raise CorpusError if the file turns out not to be CSV, now or when more is read."""
        numbered = enumerate(_checked(text, rows), start=1)
        self._rest = ((number, row) for number, row in numbered if not is_blank(number, row))
        self.sample = list(islice(self._rest, num_sample_rows))
        self.width = max((len(row) for _, row in self.sample), default=0)

    def names(self, *, has_header: bool) -> list[str]:
        """Return a name for each column: its name in the first row if that is unique, otherwise `column N`."""
        found: list[str] = []
        for place in range(self.width):
            given = self.sample[0][1][place].strip() if has_header and place < len(self.sample[0][1]) else ""
            found.append(given if given and given not in found else f"column {place + 1}")
        return found

    def records(self, *, has_header: bool) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield each row's number and its cells by column name; short rows have fewer cells."""
        names = self.names(has_header=has_header)
        for number, row in chain(self.sample[has_header:], self._rest):
            record = dict(zip(names, row, strict=False))
            for place in range(len(names), len(row)):
                record[f"column {place + 1}"] = row[place]
            yield number, record


def rows_of(text: DecodedText, kind: str) -> Iterator[Row]:
    """Return the rows of CSV, whose first line shows the separator, or of TSV; a blank line becomes an empty row."""
    if kind == "tsv":
        return (line.split("\t") if line else [] for line in text.whole_lines(LONGEST_CELL))
    lines = _RowLines(text)
    csv.field_size_limit(LONGEST_CELL)
    first = text.head(2**16).partition("\n")[0]
    return lines.rows(csv.reader(lines, delimiter=max(",\t;|", key=lambda sign: (first.count(sign), sign == ","))))


def rows_between_signs(text: DecodedText) -> Iterator[Row] | None:
    """Return a table's rows if a separator such as _!_ occurs equally often in each of the first lines, or None."""
    lines = [line for line in islice(text.whole_lines(LONGEST_CELL), _SAMPLE_ROWS) if line.strip()]
    if len(lines) < _LEAST_LINES or "\t" in lines[0]:
        return None
    found = sorted(set(_SEPARATOR.findall(lines[0])), key=lambda signs: (-len(signs), signs))
    separator = next((signs for signs in found if len({line.count(signs) for line in lines}) == 1), "")
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

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows, resetting the limit for each."""
        for row in rows:
            self._num_characters = 0
            yield row


def _checked(text: DecodedText, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except csv.Error as error:
        raise CorpusError(
            f"{text.name} is not CSV ({error}); perhaps a quote is not closed. Correct the file or, if the columns"
            " are separated by tabs, add --input-format tsv, which treats quotes as ordinary characters."
        ) from None


def json_records(
    text: DecodedText, advice: str, *, bad: Tally | None = None, blank: Tally | None = None
) -> Iterator[Any]:
    """Yield a record for each non-blank line; lines that are not JSON are counted in `bad` or raise an error."""
    decode = json.JSONDecoder(object_pairs_hook=_joined_pairs).decode
    for number, line in enumerate(text.whole_lines(LONGEST_RECORD), start=1):
        stripped = line.strip()
        if not stripped:
            if blank is not None:
                blank.drop(BLANK_LINES, 0)
            continue
        try:
            record = parse_json(stripped, decode)
        except ValueError as error:
            if bad is None:
                raise CorpusError(f"{text.name}: line {number} is not JSON ({error}). {advice}") from None
            bad.drop(NOT_JSON, len(line))
        else:
            yield record


def _joined_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object in which a repeated key has a list of all its values, so that none is lost."""
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    values: dict[str, list[Any]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return {key: found if len(found) > 1 else found[0] for key, found in values.items()}


def values_with_paths(record: Any) -> Iterator[tuple[str, str | int | float]]:
    """Yield the path and value of every text and number in a record, in order; lists do not appear in paths."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting.extend((path, item) for item in reversed(value))
        elif isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in reversed(value.items()))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield ".".join(path), value


def other_columns(values: Iterable[tuple[str, object]], used: Collection[str]) -> dict[str, str]:
    """Return the values at unused paths as text; the values of a list are joined by spaces."""
    found: dict[str, list[str]] = {}
    for path, value in values:
        if path not in used:
            found.setdefault(path, []).append(without_surrogates(str(value)))
    return {path: " ".join(cells) for path, cells in found.items()}


def iter_objects(text: DecodedText) -> Iterator[dict[str, Any]]:
    """Yield the objects in JSON lines or in one list; raise CorpusError for anything else."""
    if _LIST_OF_OBJECTS.match(text.head(2**10)):
        records = iter(_whole_list(text))
    else:
        records = json_records(text, "Give one JSON object per line, or one list of objects.")
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise CorpusError(f"{text.name}: record {number} is not an object. Give one JSON object per line.")
        if isinstance(record.get("data"), dict) and isinstance(record.get("annotations"), list):
            raise CorpusError(
                f"{text.name} is a full Label Studio export, which cannot be read. Export as JSON-MIN instead."
            )
        yield record


def first_object(text: DecodedText) -> dict[str, Any]:
    """Return the first object in JSON lines or in a list of any length, or an empty dict if there is no object."""
    start = text.head(_LONGEST_FIRST)
    found = _FIRST_OBJECT.match(start)
    try:
        return dict(parse_json(start[found.end() - 1 :], json.JSONDecoder().raw_decode)[0]) if found else {}
    except ValueError:
        return {}


def _whole_list(text: DecodedText) -> list[Any]:
    content = text.head(LONGEST_LIST + 1)
    if len(content) > LONGEST_LIST:
        raise CorpusError(
            f"{text.name} is one JSON list of more than {LONGEST_LIST:,} characters. Give one JSON object per line."
        )
    try:
        found: list[Any] = parse_json(content)
    except ValueError as error:
        raise CorpusError(f"{text.name} is not JSON ({error}). Correct it, or give one JSON object per line.") from None
    return found


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
