"""Columns of values for lines of text, such as year and author."""

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from elmo_zh.corpus.cell_types import ColumnType, column_type, sort_key
from elmo_zh.errors import ConfigError
from elmo_zh.language import _, ngettext
from elmo_zh.run.reporter import Reporter

COLUMN = np.dtype("<i4")
# Longer values are cut off, so that a column of texts does not double an index.
_LONGEST_VALUE = 200


@dataclass(frozen=True, eq=False)
class Column:
    """A column of values for L lines: the distinct values, and each line's place among them, int32, shape (L,)."""

    values: Sequence[str]
    codes: NDArray[np.int32]

    @cached_property
    def counts(self) -> list[tuple[str, int]]:
        """The distinct values, each with its number of lines."""
        numbers = np.bincount(self.codes, minlength=len(self.values)).tolist()
        return list(zip(self.values, numbers, strict=True))

    @cached_property
    def type(self) -> ColumnType:
        """The type that most of the filled cells have: numbers, dates or text."""
        return column_type(self.counts)

    def ranks(self) -> NDArray[np.float64]:
        """Return each value's rank by the column's type, float64, shape (V,): empty cells first, others by spelling."""
        parse = self.type.parse
        keys = [
            (0, sort_key(parsed), "") if (parsed := parse(value)) is not None else (-1 + 2 * bool(value), (), value)
            for value in self.values
        ]
        places = {key: place for place, key in enumerate(sorted({*keys}))}
        return np.array([places[key] for key in keys], np.float64)


def require_column(columns: Mapping[str, Column], name: str, option: str) -> Column:
    """Return a column; if there is no such column, raise a ConfigError that lists the columns."""
    if name not in columns:
        close = get_close_matches(name, columns, 1, cutoff=0.5)
        meant = _("Did you mean {close}? ").format(close=close[0]) if close else ""
        raise ConfigError(
            _("{option}: the texts have no column {name}. {meant}Their columns are: {columns}").format(
                option=option, name=name, meant=meant, columns=", ".join(columns)
            )
        )
    return columns[name]


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a user's column that no column of ours has: the name itself or, say, line_2."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def with_source(source: Column, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns with the file of each line in front as `source`; another column of that name is renamed."""
    new_name = free_name("source", {"source", *columns})
    return {"source": source, **{new_name if name == "source" else name: values for name, values in columns.items()}}


def note_type(name: str, column: Column, reporter: Reporter) -> None:
    """Say how a column is compared and sorted, if it holds dates or if some cells are of another type."""
    count, example = column.type.num_others, column.type.example
    if column.type.name == "dates" and not count:
        reporter.note(_("{name}: compared as dates").format(name=name))
    elif column.type.name == "dates":
        reporter.note(
            ngettext(
                "{name}: compared as dates; {count:,} cell is not a date, such as {example!r}",
                "{name}: compared as dates; {count:,} cells are not dates, such as {example!r}",
                count,
            ).format(name=name, count=count, example=example[:20])
        )
    elif count:
        reporter.note(
            ngettext(
                "{name}: compared as numbers; {count:,} cell is not a number, such as {example!r}",
                "{name}: compared as numbers; {count:,} cells are not numbers, such as {example!r}",
                count,
            ).format(name=name, count=count, example=example[:20])
        )


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
