"""The files in the folder of an index (docs/indexes.md), and what is read from them: occurrences, lines and columns."""

import re
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.cell_types import ColumnType, column_type, longer_period, sort_key
from elmo_zh.errors import ConfigError, OutputError
from elmo_zh.invocation import command
from elmo_zh.language import N_, _
from elmo_zh.run.files import read_json
from elmo_zh.run.outputs import require_unchanged
from elmo_zh.run.reporter import Reporter, first_ten

# Bump it when a program that knows the old number would misread the new files.
INDEX_FORMAT = 3
# The texts, model and settings of an index, with the sizes and digests of its other files.
INFO = "index.json"
# A copy of the user dictionary that was given in addition to the model: words that the segmenter kept whole.
USER_DICTIONARY = "user_dictionary.txt"

# `count` is the number of occurrences in the texts; the other two say where a word's spelling and its postings end.
WORD = np.dtype([("end", "<i8"), ("count", "<i8"), ("postings_end", "<i8")])
# `start` is the first character of the text in its raw line, since a sentence may begin anywhere in it.
LINE = np.dtype([("end", "<i8"), ("source", "<i4"), ("number", "<i8"), ("start", "<i4"), ("tokens_end", "<i8")])
# `word` is the number of its word; `start` and `end` delimit its characters in the text of its line.
TOKEN = np.dtype([("word", "<i4"), ("start", "<i4"), ("end", "<i4")])
OCCURRENCE = np.dtype([("word", "<i4"), ("line", "<i4"), ("token", "<i4"), ("start", "<i4"), ("end", "<i4")])
COLUMN, POSTING, VECTOR, NORM = np.dtype("<i4"), np.dtype("<i8"), np.dtype("<f2"), np.dtype("<f4")

Kind = tuple[np.dtype[Any], tuple[int, ...]]


def index_files(counts: Mapping[str, int], layers: Sequence[int], dimension: int) -> dict[str, Kind | None]:
    """Return the names of an index's data files, with dtype and shape for arrays and None for the others."""
    num_lines, num_occurrences = counts["lines"], counts["occurrences"]
    return {
        "words.npy": (WORD, (counts["distinct_words"],)),
        "words.utf8": None,
        "lines.npy": (LINE, (num_lines,)),
        "lines.utf8": None,
        "tokens.npy": (TOKEN, (counts["tokens"],)),
        "columns.npy": (COLUMN, (num_lines, counts["columns"])),
        "columns.json": None,
        "occurrences.npy": (OCCURRENCE, (num_occurrences,)),
        "postings.npy": (POSTING, (num_occurrences,)),
        **{f"layer-{layer}.npy": (VECTOR, (num_occurrences, dimension)) for layer in layers},
        **{f"norms-{layer}.npy": (NORM, (num_occurrences,)) for layer in layers},
    }


def load_info(folder: Path) -> dict[str, Any]:
    """Return the content of index.json; raise OutputError if it is missing, damaged or from a different version."""
    path = folder / INFO
    if not path.is_file():
        raise OutputError.missing(path, command("index", "TEXT", "--output", folder))
    require_unchanged(path)
    try:
        info = read_json(path)
        number = info["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError.damaged(path, error) from None
    if number != INDEX_FORMAT:
        raise OutputError.of_format(path, number)
    return dict(info)


@dataclass(frozen=True)
class Occurrence:
    """One occurrence of a word: its number in the index, and its place in its line."""

    number: int  # its number in the index, from 0, in the order of the texts
    word: str  # the word as the model reads it
    line: int  # number of its line in the index, for `ContextIndex.line`
    token: int  # its place among the tokens of that line
    start: int  # its first character in the text of that line
    end: int  # one past its last character


@dataclass(frozen=True)
class IndexedLine:
    """One line of an index: its text, and the file it comes from."""

    text: str  # the raw line, one of its sentences if lines were split, or a piece of a very long one
    source: str  # name of its text; for an archive, archive and member, such as texts.zip/old/1.txt
    number: int  # number of the line in that text, from 0
    # The place of the first character of `text` in the raw line: 0 unless the line was split or cut. Add it to the
    # offsets of an `Occurrence` to get offsets in the raw line.
    start: int = 0


@dataclass(frozen=True)
class Neighbour:
    """An occurrence that is similar to a given vector, with the line that contains it."""

    occurrence: Occurrence
    cosine: float  # cosine between its vector and the given one
    line: IndexedLine

    def described(self) -> dict[str, str | int | float]:
        """Return the neighbour as JSON values; `start` and `end` are places in the raw line, and numbers start at 0."""
        return {
            "cosine": round(self.cosine, 6),
            "text": self.line.text,
            "text_start": self.line.start,
            "start": self.line.start + self.occurrence.start,
            "end": self.line.start + self.occurrence.end,
            "source": self.line.source,
            "line": self.line.number,
            "occurrence": self.occurrence.number,
        }


# The types by which columns are compared and sorted, besides text.
NAMES_OF_TYPES = {"numbers": N_("numbers"), "dates": N_("dates")}
# Longer values are cut off, so that a column of texts does not double an index.
_LONGEST_VALUE = 200


@dataclass(frozen=True, eq=False)
class Column:
    """A column of values for L lines: the distinct values, and the index of each line's value, int32, shape (L,)."""

    values: Sequence[str]
    codes: NDArray[np.int32]

    @cached_property
    def counts(self) -> list[tuple[str, int]]:
        """The distinct values, each with its number of lines."""
        numbers = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return list(zip(self.values, numbers, strict=True))

    @cached_property
    def type(self) -> ColumnType:
        """The type that more than half of the cells with a value have, numbers or dates; otherwise text."""
        return column_type(self.counts)

    def ranks(self) -> NDArray[np.float64]:
        """Return each value's rank, float64, (V,): empty values first, then the column's type, then others."""
        parse = self.type.parse
        keys = [
            (0, sort_key(parsed), "")
            if (parsed := parse(value)) is not None
            else (-1 + 2 * bool(value.strip()), (), value)
            for value in self.values
        ]
        places = {key: place for place, key in enumerate(sorted({*keys}))}
        return np.array([places[key] for key in keys], np.float64)

    def grouped(self, unit: str) -> "Column":
        """Return a column with the "year" or "month" of each date, and empty cells for everything else."""
        kind = column_type(self.counts, wants_dates=True)
        periods = [longer_period(kind.parse(value), unit) for value in self.values]
        values = [*dict.fromkeys(periods)]
        return Column(values, np.array([*map(values.index, periods)], COLUMN)[self.codes])


def split_unit(columns: Mapping[str, Column], name: str) -> tuple[str, str]:
    """Split 日期:year or 日期:month into column and unit of time; any other name, or one in `columns`, has unit ""."""
    match = None if name in columns else re.fullmatch(r"(.+)[:：](year|month)", name)
    return (match[1], match[2]) if match else (name, "")


def require_column(columns: Mapping[str, Column], name: str, option: str) -> Column:
    """Return a column, or the years or months of its dates for a name such as 日期:year.

    Raises:
        ConfigError: If there is no such column, or if years or months are requested and the column has no dates.
    """
    name, unit = split_unit(columns, name)
    if unit and name in columns:
        grouped = columns[name].grouped(unit)
        if not any(grouped.values):
            raise ConfigError.unexpected(f"{option} {name}:{unit}", _(NAMES_OF_TYPES["dates"]))
        return grouped
    if name not in columns:
        message = _("{option}: the texts have no column {name}. Their columns are: {columns}")
        raise ConfigError(message.format(option=option, name=name, columns=first_ten([*columns])))
    return columns[name]


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a user's column that is not taken: the name itself or, say, line_2."""
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(free for free in names if free not in taken)


def with_source(source: Column, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns with `source`, the file of each line, in front; another column of that name is renamed."""
    new_name = free_name("source", {"source", *columns})
    return {"source": source, **{new_name if name == "source" else name: values for name, values in columns.items()}}


def note_type(columns: Mapping[str, Column], name: str, reporter: Reporter) -> None:
    """Report how a column is compared and sorted if its type is dates, or numbers with some cells of another type."""
    name, unit = split_unit(columns, name)
    if name not in columns:
        return
    kind = column_type(columns[name].counts, wants_dates=bool(unit))
    if kind.name == "text" or (kind.name == "numbers" and not kind.num_others):
        return
    others = f"{kind.num_others:,} ({kind.example[:20]!r})" if kind.num_others else "0"
    message = _("{name}: compared as {kind}; cells of another type: {others}")
    reporter.note(message.format(name=name, kind=_(NAMES_OF_TYPES[kind.name]), others=others))


class ColumnBuilder:
    """Builds columns from lines that are added one by one; a line without a value gets an empty one."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, int]] = {}
        self._codes: dict[str, array[int]] = {}
        self._num_lines = 0

    def add(self, columns: Mapping[str, str]) -> None:
        """Add the columns of the next line."""
        for name in columns.keys() - self._places.keys():
            self._places[name], self._codes[name] = {"": 0}, array("i", bytes(4 * self._num_lines))
        for name, codes in self._codes.items():
            places = self._places[name]
            codes.append(places.setdefault(columns.get(name, "")[:_LONGEST_VALUE], len(places)))
        self._num_lines += 1

    def columns(self) -> dict[str, Column]:
        """Return the columns by name, sorted by name."""
        return {
            name: Column(list(self._places[name]), np.array(self._codes[name], COLUMN)) for name in sorted(self._codes)
        }
