"""The periods that drift compares, and their documents: parts of one index, divided by a column, or several indexes."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import require_column
from elmo_zh.errors import ElmoZhError
from elmo_zh.run.reporter import counted
from elmo_zh.vocabulary.vocabulary import is_word

Numbers = NDArray[np.int64]

# In a period with fewer documents, raw lines count as documents: there would be too few ways to divide so few.
LEAST_DOCUMENTS = 5
# A word is a fragment if the same token stands directly beside at least this share of its occurrences.
_FRAGMENT_SHARE = 0.8
# A particle beside a word does not make it a fragment: 时候 belongs to no name, though 的 is nearly always before it.
_PARTICLES = frozenset("的地得了着著过過")


@dataclass(frozen=True, eq=False)
class Period:
    """A period of time or a group of texts: a subset of the lines in an index."""

    name: str  # a value of a column, or the name of the index; old and new for two indexes
    index: ContextIndex  # the index with these lines
    lines: NDArray[np.bool_]  # which lines belong to the period, bool, shape (L,)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of occurrences of each indexed word in the period, sampled or not."""
        tokens, ends = self.index.tokens()
        spellings = self.index.distinct_tokens
        own = tokens["word"][np.repeat(self.lines, np.diff(ends, prepend=0))]
        counts = np.bincount(own, minlength=len(spellings)).tolist()
        return {word: count for word in self.index.words if (count := counts[bisect_left(spellings, word)])}

    @cached_property
    def by_lines(self) -> bool:
        """Whether raw lines count as documents because there are fewer than five documents."""
        return len(np.unique(_documents(self.index)[self.lines])) < LEAST_DOCUMENTS

    @cached_property
    def documents(self) -> Numbers:
        """The document number of each line in the index, int64, shape (L,)."""
        return _documents(self.index, by_lines=self.by_lines)

    @cached_property
    def _token_numbers(self) -> Numbers:
        return self.index.token_numbers()

    def occurrences(self, word: str) -> Numbers:
        """Return the numbers of a word's occurrences in the period, ascending, int64, shape (n,)."""
        if word not in self.counts:
            return np.empty(0, np.int64)
        numbers = self.index.occurrences(word)
        return numbers[self.lines[self._lines_of(numbers)]]

    def documents_of(self, numbers: Numbers) -> Numbers:
        """Return the document number of each occurrence, int64, shape (n,)."""
        return self.documents[self._lines_of(numbers)]

    def _lines_of(self, numbers: Numbers) -> Numbers:
        return np.searchsorted(self.index.tokens()[1], self._token_numbers[numbers], side="right")

    def whole_of(self, word: str, numbers: Numbers) -> str | None:
        """Return the longer string that a word is a fragment of, such as 卢 拉 for 拉; None if its neighbours vary.

        At least 80% of its occurrences have the same word, but no particle, directly before or directly after them.
        """
        for place, beside in enumerate(self._words_beside(numbers)):
            found = Counter(beside.tolist()).most_common(1)
            if found and found[0][1] >= _FRAGMENT_SHARE * len(numbers):
                other = self.index.distinct_tokens[found[0][0]]
                if is_word(other) and other not in _PARTICLES:
                    return f"{word} {other}" if place else f"{other} {word}"
        return None

    def _words_beside(self, numbers: Numbers) -> Iterator[NDArray[np.int32]]:
        """Yield the word numbers of the tokens directly before, then directly after, occurrences within their lines."""
        tokens, ends = self.index.tokens()
        places, lines = self._token_numbers[numbers], self._lines_of(numbers)
        starts = np.where(lines > 0, ends[lines - 1], 0)
        yield tokens["word"][places[places > starts] - 1]
        yield tokens["word"][places[places + 1 < ends[lines]] + 1]


def periods_of(indexes: Sequence[ContextIndex], column: str | None) -> tuple[Period, ...]:
    """Return the two or more periods to compare: one for each value of a column in one index, or one for each index.

    Values are sorted as numbers if all are numbers; lines without a value are left out.
    """
    if column is None:
        names = ["old", "new"] if len(indexes) == 2 else [each.path.name.removesuffix(".index") for each in indexes]
        pairs = zip(names, indexes, strict=True)
        found = [Period(name, index, np.ones(len(index.line_numbers()), np.bool_)) for name, index in pairs]
        described = f"{indexes[0].path} is a single period."
    else:
        [index] = indexes
        values = require_column(index.columns, column, "--periods")
        kept = [code for code in np.argsort(values.ranks(), kind="stable").tolist() if values.values[code]]
        found = [Period(values.values[code], index, values.codes == code) for code in kept]
        found = [period for period in found if period.lines.any()]
        described = f"The column {column} of {index.path} has {counted(len(found), 'value')}."
    if len(found) < 2:
        raise ElmoZhError(
            f"{described} At least two periods are needed. Give several indexes, or --periods with a column that has"
            " several values." + (f" Columns of the index: {', '.join(indexes[0].columns)}" if column is None else "")
        )
    return tuple(found)


def _documents(index: ContextIndex, *, by_lines: bool = False) -> Numbers:
    """Return each line's document, int64, shape (L,): its record if records have columns, otherwise its file."""
    numbers = index.line_numbers()
    is_own = np.full(len(numbers), by_lines)
    named = {name for text in index.info["texts"] for name in re.findall(r"{(\w+)}", text.get("from_name", ""))}
    for name, column in index.columns.items():
        if name != "source" and name not in named:
            is_own |= np.array([*map(bool, column.values)], np.bool_)[column.codes]
    keys = index.columns["source"].codes.astype(np.int64) * (numbers.max() + 2) + np.where(is_own, numbers + 1, 0)
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)
