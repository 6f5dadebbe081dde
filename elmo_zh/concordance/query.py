"""Concordance queries: tokens to find, and conditions on the columns of lines."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.concordance.token_table import LINE_END, TokenTable
from elmo_zh.contexts.index_files import Column, as_number, require_column
from elmo_zh.errors import ConfigError
from elmo_zh.run.reporter import first_ten

# Patterns search a string that has a NUL before and after each token.
_GAP = "\0"
_IN_TOKEN = rf"[^{_GAP}{LINE_END}]"
_BLOCK = 2_000_000

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
# Advice for invalid regular expressions.
ESCAPE_SIGNS = "To search for a special character itself, put \\ before it, as in \\( or \\["
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_CONDITION = re.compile(
    r"\s*(?P<name>[^\s=!<>~]+)\s*(?P<sign>==|=|!=|<=|>=|<|>|~)\s*(?P<value>\"[^\"]*\"|'[^']*'|\S+)\s*"
)


def compile_query(query: str) -> re.Pattern[str]:
    r"""Compile a query of tokens separated by spaces; in a token, * stands for any characters and ? for one.

    A string without spaces is found in any segmentation in which it begins and ends at token borders: 高质量发展 finds
    高 质量 发展. A single * stands for one token.

    >>> bool(compile_query("高质量 发*").search("\0高\0质量\0发展\0"))
    True
    """
    elements = query.split()
    if not elements:
        raise ConfigError(
            "The query is empty. Give a word, or words separated by spaces, such as: 苹果, 吃 *, 高质量发展"
        )
    return re.compile(f"(?<={_GAP}){_GAP.join(map(_element, elements))}(?={_GAP})")


def _element(element: str) -> str:
    if not element.strip("*"):
        return f"{_IN_TOKEN}+"
    parts, before = [], ""
    for character in element:
        if before and not {before, character} & set("*?"):
            parts.append(f"{_GAP}?")
        parts.append({"*": f"{_IN_TOKEN}*", "?": _IN_TOKEN}.get(character) or re.escape(character))
        before = character
    return "".join(parts)


def may_match(queries: Iterable[str], fold: Callable[[str], str]) -> Callable[[str], bool]:
    """Return a test of whether any query may match a normalised line without spaces; without queries, any line may."""
    pieces = [[piece for piece in re.split(r"[\s*?]+", query) if piece] for query in queries]
    return lambda text: (
        not pieces or any(all(piece in folded for piece in own) for own in pieces for folded in [fold(text)])
    )


def find_matches(
    table: TokenTable, pattern: re.Pattern[str], fold: Callable[[str], str] = str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find all matches; return the first token of each, and one past its last, both int64, shape (n,)."""
    spellings = [*map(fold, table.spellings), LINE_END]
    lengths = np.array([len(each) + 1 for each in spellings], np.int64)
    found = [np.empty((0, 2), np.int64)]
    for first_line, end_line in _iter_blocks(table.ends):
        first = int(table.ends[first_line - 1]) if first_line else 0
        ends = table.ends[first_line:end_line] - first
        words = np.insert(table.words[first : first + int(ends[-1])], ends, len(spellings) - 1)
        text = f"{_GAP}{_GAP.join([spellings[number] for number in words.tolist()])}{_GAP}"
        places = np.array([match.span() for match in pattern.finditer(text)], np.int64).reshape(-1, 2)
        starts = np.cumsum(lengths[words]) - lengths[words] + 1
        # A match ends before the gap that follows its last token.
        tokens = np.searchsorted(starts, places + np.array([0, 1]))
        line_ends_before = np.searchsorted(ends + np.arange(len(ends)), tokens[:, :1])
        found.append(tokens - line_ends_before + first)
    matches = np.concatenate(found)
    return matches[:, 0], matches[:, 1]


def _iter_blocks(ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of lines with a few million tokens each, or a single line if it is longer."""
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + _BLOCK, side="right")))
        yield start, end
        start = end


def wanted_lines(columns: Mapping[str, Column], num_lines: int, condition: str | None) -> NDArray[np.bool_]:
    """Return a mask of the lines that meet a condition such as `year >= 2020 and source ~ news`, bool, (L,); None: all.

    The operators are = != < <= > >= and ~, which searches for a regular expression. If the given value is a number,
    values are compared as numbers, and empty or non-numeric cells never match; otherwise they are compared as strings.
    """
    found = np.ones(num_lines, np.bool_)
    if condition is None:
        return found
    for part in re.split(r"\s+and\s+", condition.strip()):
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise ConfigError(
                f"--where {condition!r}: cannot read {part!r}. Write conditions as NAME OPERATOR VALUE, joined by"
                " and, such as: year >= 2020 and source ~ news"
            )
        column = require_column(columns, match["name"], "--where")
        holds = _comparison(match["name"], column, match["sign"], match["value"].strip("\"'"))
        before = np.unique(column.codes[found])
        found &= np.array([*map(holds, column.values), False])[column.codes]
        if not found.any():
            values = first_ten([column.values[code] for code in before[np.argsort(column.ranks()[before])]])
            raise ConfigError(f"No line meets the condition {condition!r}. Values of {match['name']}: {values}")
    return found


def _comparison(name: str, column: Column, sign: str, value: str) -> Callable[[str], bool]:
    if sign == "~":
        try:
            pattern = re.compile(value)
        except re.error as error:
            raise ConfigError(f"--where: {value!r} is not a regular expression: {error}. {ESCAPE_SIGNS}") from None
        return lambda cell: pattern.search(cell) is not None
    compare, wanted = _COMPARISONS[sign], as_number(value)
    if wanted is None:
        if _DATE.fullmatch(value):
            try:
                date(*map(int, value.split("-")))
            except ValueError:
                raise ConfigError(f"--where: {value} is not a date. Write YEAR-MONTH-DAY, such as 1998-03-07") from None
        if sign in ("<", "<=", ">", ">=") and all(as_number(cell) is not None for cell in column.values if cell):
            raise ConfigError(
                f"--where: the values of {name} are numbers, but {value!r} is not. Give a number, such as 2020"
            )
        return lambda cell: compare(cell, value)
    return lambda cell: (number := as_number(cell)) is not None and compare(number, wanted)
