"""The tokens of an index or of other texts, queries for them, and conditions on the columns of their lines."""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import (
    COLUMN,
    NAMES_OF_TYPES,
    Column,
    ColumnBuilder,
    IndexedLine,
    require_column,
    with_source,
)
from elmo_zh.corpus.cell_types import ORDERING, as_date, as_number, column_type, compare
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.errors import ConfigError
from elmo_zh.language import _
from elmo_zh.run.reporter import Hints, Reporter, SilentReporter, first_ten
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation, TokenisedLine, find_tokens
from elmo_zh.text.sentences import LONGEST_SENTENCE, describe_cuts, iter_pieces

Matches = tuple[NDArray[np.int64], NDArray[np.int64]]

_BORDER = " "
ANY, ONE = "*", "?"

_NAME = r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|“[^”]*”"
_CONDITION = re.compile(
    rf"\s*(?P<name>{_NAME}|[^=!<>~\"'“]+?)\s*(?P<sign>==|=|!=|<=|>=|<|>|~)\s*"
    rf"(?P<value>{_NAME}|[^\"'“\s].*?)(?:\s*$|\s+and\s+)"
)
_KEY = re.compile(rf"\s*(-?)({_NAME}|[^,]*)\s*(?:,|$)")
# Stands for lines that are not selected; their text would fill the memory.
_UNREAD = IndexedLine("", "", 0)


@dataclass(frozen=True, eq=False)
class TokenTable:
    """N tokens on L lines, with the columns and the text of each line."""

    spellings: Sequence[str]
    words: NDArray[np.int32]  # the index of each token in `spellings`, int32, shape (N,)
    spans: NDArray[np.int32]  # start and end of each token in the text of its line, int32, shape (N, 2)
    ends: NDArray[np.int64]  # the cumulative number of tokens at the end of each line, int64, shape (L,)
    columns: Mapping[str, Column]  # the columns of the lines by name; always includes `source`
    line: Callable[[int], IndexedLine]  # returns the text of a line and its origin

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of each distinct token in the order of code points, int64, shape (V,)."""
        return np.argsort(np.argsort(np.array(self.spellings, np.str_), kind="stable"))

    def tokens(self, first: int, end: int) -> list[str]:
        """Return the spellings of the tokens in a range."""
        return [self.spellings[number] for number in self.words[first:end].tolist()]

    def lines_of(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the line of each given token, int64, shape (n,)."""
        return np.searchsorted(self.ends, tokens, side="right")

    def first_tokens(self, lines: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the first token of each given line, int64, shape (n,)."""
        return np.where(lines > 0, self.ends[lines - 1], 0)

    @classmethod
    def of_index(cls, index: ContextIndex) -> "TokenTable":
        """Return the tokens of an index, memory-mapped, as a table."""
        tokens, ends = index.tokens()
        return cls(
            spellings=index.distinct_tokens,
            words=tokens["word"],
            spans=tokens.view(np.int32).reshape(len(tokens), -1)[:, 1:],
            ends=ends,
            columns=index.columns,
            line=index.line,
        )

    def folded(self, fold: Callable[[str], str]) -> "TokenTable":
        """Return the table with each line folded as a whole, so that `fold` sees characters in context."""
        numbers: dict[str, int] = {}
        words = np.empty(len(self.words), np.int32)
        for first, end in zip(np.append(0, self.ends[:-1]).tolist(), self.ends.tolist(), strict=True):
            tokens = self.tokens(first, end)
            text = fold("".join(tokens))
            ends = np.cumsum([0, *map(len, tokens)]).tolist()
            words[first:end] = [numbers.setdefault(text[start:stop], len(numbers)) for start, stop in pairwise(ends)]
        return replace(self, spellings=list(numbers), words=words)

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[InputText],
        preparation: TextPreparation | None,
        wanted: Callable[[str], bool] = lambda _: True,
        reporter: Reporter | None = None,
        fold: Callable[[str], str] = str,
    ) -> "TokenTable":
        """Segment the lines that `wanted` accepts once normalised and without spaces; return a table in memory.

        Without a `preparation`, the texts are already segmented, and the tokens are taken as they are.
        With `fold`, which keeps the length of a text, the folded lines are segmented.

        Long lines are cut as in an index. Blank lines are left out. Lines that `wanted` refuses have no tokens and no
        text, only columns, which conditions refer to.
        """
        kept, reporter = _Lines(), reporter or SilentReporter()
        is_segmented = preparation is None or preparation.keeps_tokens
        normalise, prepare = (preparation.normalise, preparation.prepare) if preparation else (str, _read_segmented)
        with reporter.progress("lines", unit="lines") as progress:
            for line, columns in _iter_lines(texts, reporter, segmented=is_segmented):
                if line.text.strip():
                    is_wanted = wanted("".join(normalise(line.text).split()))
                    kept.add(line, columns, prepare(fold(line.text)) if is_wanted else None)
                progress.update(line.start == 0)
        return kept.table()


def _iter_lines(
    texts: Iterable[InputText], reporter: Reporter, *, segmented: bool
) -> Iterator[tuple[IndexedLine, Mapping[str, str]]]:
    """Yield the lines of texts with their columns; long lines are cut as in an index, with one warning."""
    hints = Hints(reporter)
    for text in texts:
        num_cuts = 0
        for number, record in enumerate(text.records_if_text(reporter)):
            cut = iter_pieces(record.line, split=False, longest=LONGEST_SENTENCE, segmented=segmented)
            for start, piece, is_rest in cut:
                num_cuts += is_rest
                yield IndexedLine(piece, *text.place(number), start=start), record.columns
        if num_cuts:
            hints.give("cut lines", describe_cuts(text.name, num_cuts))


def _read_segmented(line: str) -> TokenisedLine:
    tokens = split_segmented(line)
    return TokenisedLine(tokens, find_tokens(line, tokens))


class _Lines:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words, self._ends, self._spans = array("i"), array("q"), [np.empty((0, 2), np.int32)]
        self._columns = ColumnBuilder()
        self._sources: dict[str, int] = {}
        self._codes = array("i")
        self._lines: list[IndexedLine] = []

    def add(self, line: IndexedLine, columns: Mapping[str, str], tokenised: TokenisedLine | None) -> None:
        """Add a line; without tokens, only its source and columns are kept."""
        if tokenised is not None:
            self._words.extend([self._numbers.setdefault(token, len(self._numbers)) for token in tokenised.tokens])
            self._spans.append(tokenised.offsets)
        self._ends.append(len(self._words))
        self._columns.add(columns)
        self._codes.append(self._sources.setdefault(line.source, len(self._sources)))
        self._lines.append(_UNREAD if tokenised is None else line)

    def table(self) -> TokenTable:
        return TokenTable(
            spellings=list(self._numbers),
            words=np.array(self._words, np.int32),
            spans=np.concatenate(self._spans),
            ends=np.array(self._ends, np.int64),
            columns=with_source(Column(list(self._sources), np.array(self._codes, COLUMN)), self._columns.columns()),
            line=self._lines.__getitem__,
        )


class Query:
    r"""A query of tokens separated by spaces; in a token, * stands for any characters and ? for one.

    A string without spaces is found in any segmentation in which it begins and ends at token boundaries:
    高质量发展 finds 高 质量 发展. A * on its own stands for one token.

    The query is a list of items: characters, the two wildcards, and ends of tokens. A state is the set of places in
    the list, as the bits of a number, where a search may be after some tokens. Reading a token takes time
    proportional to its length, and `find_matches` reads distinct tokens rather than every occurrence.
    """

    def __init__(self, query: str) -> None:
        """Raise ConfigError if the query is empty."""
        elements = query.split()
        if not elements:
            raise ConfigError.unexpected('QUERY ""', _("a word or a phrase, such as 苹果 or 吃 *"))
        elements = [re.sub(r"\*+", ANY, element) for element in elements]
        self._items = _BORDER.join(ONE + ANY if element == ANY else element for element in elements)
        self._end = 1 << len(self._items)
        self._literals = {sign: self._places_of(sign) for sign in {*self._items}}
        self._any, self._one = self._places_of(ANY), self._places_of(ONE)
        wild = ANY + ONE + _BORDER
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
        """Add to a state the places that are reached because * may stand for nothing."""
        return state | (state & self._any) << 1

    def after(self, state: int, token: str) -> int:
        """Return the state after a token; 0 if no match is possible any more."""
        for character in token:
            literal = 0 if character in (ANY, ONE, _BORDER) else self._literals.get(character, 0)
            state = self._skipping((state & (literal | self._one)) << 1 | state & self._any)
            if not state:
                return 0
        return state & (self._joints | self._end) | self._skipping((state & self._ends) << 1)

    def accepts(self, state: int) -> bool:
        """Return whether a match ends in this state."""
        return bool(state & self._end)


def find_matches(table: TokenTable, query: Query) -> Matches:
    """Find the non-overlapping matches; return the first token of each, and one past its last, int64, shape (n,)."""
    states, numbers = [0, query.start], {0: 0, query.start: 1}

    def states_after(state: int, words: Iterable[int]) -> NDArray[np.int32]:
        """Return the number of the state after each word, shape (V,); 0 for all but these words."""
        reached = np.zeros(len(table.spellings), np.int32)
        for word in words:
            after = query.after(states[state], table.spellings[word])
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            reached[word] = numbers[after]
        return reached

    by_word = states_after(1, range(len(table.spellings)))
    starts = np.flatnonzero(by_word[table.words])
    reached, ends, line_ends = by_word[table.words[starts]], starts + 1, table.ends[table.lines_of(starts)]
    candidates = [np.empty((0, 2), np.int64)]
    while len(starts):
        is_match = np.array([query.accepts(state) for state in states])[reached]
        candidates.append(np.stack([starts[is_match], ends[is_match]], axis=1))
        goes_on = ~is_match & (ends < line_ends)
        starts, ends, line_ends, reached = starts[goes_on], ends[goes_on], line_ends[goes_on], reached[goes_on]
        after = np.zeros(len(starts), np.int32)
        for state in np.unique(reached).tolist():
            is_here = reached == state
            words = table.words[ends[is_here]]
            after[is_here] = states_after(state, np.flatnonzero(np.bincount(words)).tolist())[words]
        lives = after > 0
        starts, ends, line_ends, reached = starts[lives], ends[lives] + 1, line_ends[lives], after[lives]
    ordered = np.concatenate(candidates)
    matches = _without_overlaps(ordered[np.argsort(ordered[:, 0], kind="stable")])
    return matches[:, 0], matches[:, 1]


def _without_overlaps(matches: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(matches) or (matches[1:, 0] >= matches[:-1, 1]).all():
        return matches
    kept, end = [], 0
    for match in matches.tolist():
        if match[0] >= end:
            kept.append(match)
            end = match[1]
    return np.array(kept, np.int64)


def may_match(queries: Iterable[str], fold: Callable[[str], str]) -> Callable[[str], bool]:
    """Return a function that tests whether any query may match a normalised line without spaces.

    Without queries, it accepts any line.
    """
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
        is_quoted = match is not None and re.match(_NAME, match["value"])
        if match is None or (not is_quoted and re.search(r"\s(or|and)\s", match["value"], re.IGNORECASE)):
            raise ConfigError(
                _(
                    "--where {condition!r}: cannot read {part!r}. Write conditions as NAME OPERATOR VALUE, joined by"
                    " and, such as: year ~ 2019|2020 and source ~ news. Put a name or a value in quotes if it contains"
                    " special characters, 'and' or 'or'."
                ).format(condition=condition, part=condition[place:].strip())
            )
        yield match["name"], match["sign"], match["value"]
        place = match.end()


def wanted_lines(columns: Mapping[str, Column], num_lines: int, condition: str | None) -> NDArray[np.bool_]:
    """Return a mask of the lines that meet a condition such as `year >= 2020 and source ~ news`, bool, shape (L,).

    Without a condition, all lines do. The operators are = (or ==) != < <= > >= and ~, which searches for a regular
    expression. Values are compared by the type of the column: as numbers, as dates, or as text. In a column of text, <
    <= > >= with a number compare only the cells that are numbers. In a column of numbers or dates, cells that cannot be
    parsed meet only ~ and, if the value cannot be parsed either, = and !=. Raise ConfigError if the condition is
    invalid or no line meets it.
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
    """Compile the regular expression given by an option; raise ConfigError if it is invalid."""
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
        raise ConfigError.unexpected(f"--where: {name} {sign} {value!r}", _(NAMES_OF_TYPES[kind.name]))
    if wanted is None or (kind.name == "text" and sign not in ORDERING):
        return lambda cell: (cell == value) == (sign != "!=")
    if kind.name == "text" and as_number(value) is not None:
        kind, wanted = kind._replace(parse=as_number), as_number(value)

    def holds(cell: str) -> bool:
        parsed: Any = kind.parse(cell)
        return parsed is not None and compare(parsed, sign, wanted)

    return holds
