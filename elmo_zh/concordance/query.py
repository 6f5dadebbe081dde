"""Concordance queries: tokens to find, and conditions on the columns of lines."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.concordance.token_table import TokenTable
from elmo_zh.contexts.index_files import Column, require_column
from elmo_zh.corpus.cell_types import ORDERING, as_date, as_number, column_type, compare
from elmo_zh.errors import ConfigError
from elmo_zh.language import _
from elmo_zh.run.reporter import first_ten

Matches = tuple[NDArray[np.int64], NDArray[np.int64]]

# How many tokens are searched at a time.
_BLOCK = 2_000_000
_BORDER = " "
_ANY, _ONE = "*", "?"

_NAME = r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|“[^”]*”"
_CONDITION = re.compile(
    rf"\s*(?P<name>{_NAME}|[^=!<>~\"'“]+?)\s*(?P<sign>==|=|!=|<=|>=|<|>|~)\s*"
    rf"(?P<value>{_NAME}|[^\"'“\s].*?)(?:\s*$|\s+and\s+)"
)
_KEY = re.compile(rf"\s*(-?)({_NAME}|[^,]*)\s*(?:,|$)")


class Query:
    r"""A query of tokens separated by spaces; in a token, * stands for any characters and ? for one.

    A string without spaces is found in any segmentation in which it begins and ends at token borders: 高质量发展 finds
    高 质量 发展. A single * stands for one token.

    The query is a list of items: characters, the two wildcards, and ends of tokens. A state is the set of places in
    the list, as the bits of a number, where a search may be after some tokens; what a token does to a state is
    computed once for each distinct token, so that the time for a token grows only with its length.
    """

    def __init__(self, query: str) -> None:
        """Raise ConfigError if the query is empty."""
        elements = query.split()
        if not elements:
            raise ConfigError(
                _("The query is empty. Give a word, or words separated by spaces, such as: 苹果, 吃 *, 高质量发展")
            )
        elements = [re.sub(r"\*+", _ANY, element) for element in elements]
        self._items = _BORDER.join(_ONE + _ANY if element == _ANY else element for element in elements)
        self._end = 1 << len(self._items)
        self._literals = {sign: self._places_of(sign) for sign in {*self._items}}
        self._any, self._one = self._places_of(_ANY), self._places_of(_ONE)
        wild = _ANY + _ONE + _BORDER
        pairs = zip(self._items, self._items[1:], strict=False)
        # Where a token may end: between two characters of the query.
        self._joints = sum(2 << place for place, pair in enumerate(pairs) if not set(pair) & set(wild))
        self._ends = self._places_of(_BORDER)

    def _places_of(self, sign: str) -> int:
        return sum(1 << place for place, item in enumerate(self._items) if item == sign)

    @cached_property
    def start(self) -> int:
        """The state before the first token."""
        return self._skipping(1)

    def _skipping(self, state: int) -> int:
        """Return a state with the places that are reached because * may stand for nothing."""
        return state | (state & self._any) << 1

    def after(self, state: int, token: str) -> int:
        """Return the state after a token."""
        for character in token:
            literal = 0 if character in (_ANY, _ONE, _BORDER) else self._literals.get(character, 0)
            state = self._skipping((state & (literal | self._one)) << 1 | state & self._any)
            if not state:
                return 0
        return state & (self._joints | self._end) | self._skipping((state & self._ends) << 1)

    def accepts(self, state: int) -> bool:
        """Return whether a match ends in this state."""
        return bool(state & self._end)


def find_matches(table: TokenTable, query: Query, *, block: int = _BLOCK) -> Matches:
    """Find all matches; return the first token of each, and one past its last, both int64, shape (n,)."""
    states = [0, query.start]
    numbers = {state: number for number, state in enumerate(states)}
    tables: dict[int, NDArray[np.int32]] = {}

    def step(state: int, words: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the number of the state after each word."""
        known = tables.setdefault(state, np.full(len(table.spellings), -1, np.int32))
        for word in np.flatnonzero((np.bincount(words, minlength=len(known)) > 0) & (known < 0)).tolist():
            after = query.after(states[state], table.spellings[word])
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            known[word] = numbers[after]
        return known[words]

    found = [_matches_in(table, query, states, step, first, end) for first, end in _iter_blocks(table.ends, block)]
    matches = np.concatenate([np.empty((0, 2), np.int64), *found])
    return matches[:, 0], matches[:, 1]


def _matches_in(
    table: TokenTable,
    query: Query,
    states: Sequence[int],
    step: Callable[[int, NDArray[np.int32]], NDArray[np.int32]],
    first_line: int,
    end_line: int,
) -> NDArray[np.int64]:
    """Return the first token and the end of each match in some lines, int64, shape (n, 2); matches do not overlap."""
    first, last = (int(table.ends[line - 1]) if line else 0 for line in (first_line, end_line))
    words = np.asarray(table.words[first:last])
    line_ends = np.repeat(table.ends[first_line:end_line], np.diff(table.ends[first_line:end_line], prepend=first))
    starts = np.arange(len(words))
    reached, ends = np.ones(len(words), np.int32), starts
    candidates = [np.empty((0, 2), np.int64)]
    while len(starts):
        after = np.zeros(len(starts), np.int32)
        for state in np.unique(reached).tolist():
            is_here = reached == state
            after[is_here] = step(state, words[ends[is_here]])
        ends = ends + 1
        is_match = np.array([query.accepts(state) for state in states])[after]
        candidates.append(np.stack([starts[is_match], ends[is_match]], axis=1))
        goes_on = ~is_match & (after > 0) & (first + ends < line_ends[starts])
        starts, ends, reached = starts[goes_on], ends[goes_on], after[goes_on]
    ordered = np.concatenate(candidates)
    return _without_overlaps(ordered[np.argsort(ordered[:, 0], kind="stable")]) + first


def _without_overlaps(matches: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(matches) or (matches[1:, 0] >= matches[:-1, 1]).all():
        return matches
    kept, end = [], 0
    for match in matches.tolist():
        if match[0] >= end:
            kept.append(match)
            end = match[1]
    return np.array(kept, np.int64)


def _iter_blocks(ends: NDArray[np.int64], block: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of lines with up to `block` tokens each, or a single line if it is longer."""
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + block, side="right")))
        yield start, end
        start = end


def may_match(queries: Iterable[str], fold: Callable[[str], str]) -> Callable[[str], bool]:
    """Return a test of whether any query may match a normalised line without spaces; without queries, any line may."""
    pieces = [[piece for piece in re.split(r"[\s*?]+", query) if piece] for query in queries]
    return lambda text: (
        not pieces or any(all(piece in folded for piece in parts) for folded in [fold(text)] for parts in pieces)
    )


def unquoted(name: str) -> str:
    """Return a name or value without the quotes around it."""
    name = name.strip()
    if len(name) > 1 and (name[0], name[-1]) in (('"', '"'), ("'", "'"), ("“", "”")):
        return name[1:-1].replace(name[0] * 2, name[0])
    return name


def parse_keys(given: str) -> list[str]:
    """Return the comma-separated keys of --sort, without quotes around names; a leading - stays."""
    return [match[1] + unquoted(match[2]) for match in _KEY.finditer(given) if match[2].strip()]


def names_in_condition(condition: str | None) -> list[str]:
    """Return the columns that a condition names."""
    return [unquoted(name) for name, _sign, _value in _parts(condition)] if condition else []


def _parts(condition: str) -> Iterator[tuple[str, str, str]]:
    place = 0
    while place < len(condition) or not place:
        match = _CONDITION.match(condition, place)
        if match is None:
            raise ConfigError(
                _(
                    "--where {condition!r}: cannot read {part!r}. Write conditions as NAME OPERATOR VALUE, joined by"
                    " and, such as: year >= 2020 and source ~ news. Put names with special characters in quotes."
                ).format(condition=condition, part=condition[place:].strip())
            )
        yield match["name"], match["sign"], match["value"]
        place = match.end()


def wanted_lines(columns: Mapping[str, Column], num_lines: int, condition: str | None) -> NDArray[np.bool_]:
    """Return a mask of the lines that meet a condition such as `year >= 2020 and source ~ news`, bool, (L,); None: all.

    The operators are = != < <= > >= and ~, which searches for a regular expression. Values are compared by the type of
    the column: as numbers, as dates, or as text. Cells that are not of this type meet only ~, = and !=.
    """
    kept = np.ones(num_lines, np.bool_)
    for quoted, sign, value in _parts(condition) if condition is not None else ():
        name = unquoted(quoted)
        column = require_column(columns, name, "--where")
        holds = _comparison(name, column, sign, unquoted(value))
        before = np.unique(column.codes[kept])
        kept &= np.array([*map(holds, column.values), False])[column.codes]
        if not kept.any():
            values = first_ten([column.values[code] for code in before[np.argsort(column.ranks()[before])]])
            raise ConfigError(
                _("No line meets the condition {condition!r}. Values of {name}: {values}").format(
                    condition=condition, name=name, values=values
                )
            )
    return kept


def compile_expression(expression: str, option: str) -> re.Pattern[str]:
    """Compile the regular expression that an option gives; raise ConfigError if it is not one."""
    try:
        return re.compile(expression)
    except re.error as error:
        raise ConfigError(
            _(
                "{option}: {expression!r} is not a regular expression: {error}. To search for a special character"
                " itself, put \\ before it, as in \\( or \\["
            ).format(option=option, expression=expression, error=error)
        ) from None


def _comparison(name: str, column: Column, sign: str, value: str) -> Callable[[str], bool]:
    if sign == "~":
        pattern = compile_expression(value, "--where")
        return lambda cell: pattern.search(cell) is not None
    kind = column_type(column.counts, wants_dates=as_number(value) is None and as_date(value) is not None)
    wanted = kind.parse(value)
    if wanted is None and sign in ORDERING:
        raise ConfigError(_not_of_type(name, kind.name, value))
    if wanted is None or (kind.name == "text" and sign not in ORDERING):
        return lambda cell: (cell == value) == (sign != "!=")
    if kind.name == "text" and as_number(value) is not None:
        kind, wanted = kind._replace(parse=as_number), as_number(value)

    def holds(cell: str) -> bool:
        parsed: Any = kind.parse(cell)
        return parsed is not None and compare(parsed, sign, wanted)

    return holds


def _not_of_type(name: str, kind: str, value: str) -> str:
    if kind == "dates":
        message = _("--where: the values of {name} are dates, but {value!r} is not. Give a date, such as 1998-03-07")
    else:
        message = _("--where: the values of {name} are numbers, but {value!r} is not. Give a number, such as 2020")
    return message.format(name=name, value=value)
