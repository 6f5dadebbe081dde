"""Rows for words outside a vocabulary, composed from the rows of the known words inside them.

The mean of these rows is a poor estimate: on average, the mean of all rows is closer to a word's row. So a linear map
from the mean to the row is learned from vocabulary words that contain other known words, as Lazaridou, Marelli,
Zamparelli and Baroni (2013) compose words from morphemes. Unknown words are rarer, and rarer words are more like their
parts, so a share of the mean is added to the map's output (docs/log.md, 2026-11-23).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.reader.lstm import Floats
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# Number of words that the map is learned from. The most frequent words, at most a third of the vocabulary, are left
# out: they are least like words outside the vocabulary.
_WORDS_TO_LEARN_FROM = 20_000
_MOST_LEFT_OUT = 10_000
# Penalty of the ridge regression, as a share of the mean square of its inputs.
_PENALTY = 0.1
_SHARE_OF_MEAN = 0.3
# The last bits of a solver's result depend on the machine; rounding removes most of them.
_DECIMALS = 6


def parts_of(known: Vocabulary, words: Iterable[str]) -> dict[str, list[int]]:
    """Map each word to the rows of the known words in it (`Vocabulary.find_subwords`), omitting words without any."""
    found = {word: known.encode(known.find_subwords(word)) for word in words}
    return {word: parts for word, parts in found.items() if parts}


@dataclass(frozen=True, eq=False)
class Composition:
    """Computes a word's row from the rows of the known words inside it."""

    table: Floats  # The rows of the vocabulary, shape (V, P)
    centre: NDArray[np.float64]  # Their mean, shape (P,)
    # Maps the mean of the parts' rows to a word's row, both less the centre, shape (P, P). None if there was no word to
    # learn from; a word's row is then the mean of its parts' rows.
    matrix: NDArray[np.float64] | None

    @classmethod
    def learn(cls, table: Floats, vocabulary: Vocabulary) -> "Composition":
        """Learn the map from a table with one row per token of the vocabulary, shape (V, P)."""
        words = vocabulary.tokens[len(SPECIALS) :]
        first = min(len(words) // 3, _MOST_LEFT_OUT)
        parts = parts_of(vocabulary, words[first : first + _WORDS_TO_LEARN_FROM])
        centre = table.mean(axis=0, dtype=np.float64)
        if not parts:
            return cls(table, centre, None)
        inputs = mean_rows(table, parts.values()) - centre
        targets = table[vocabulary.encode(list(parts))].astype(np.float64) - centre
        squares, unit = inputs.T @ inputs, np.eye(inputs.shape[1])
        solution = np.linalg.solve(squares + _PENALTY * np.diagonal(squares).mean() * unit, inputs.T @ targets)
        return cls(table, centre, solution.round(_DECIMALS) + _SHARE_OF_MEAN * unit)

    def row(self, parts: Sequence[int]) -> Floats:
        """Compose a word's row, float32, shape (P,), from the row numbers of the known words in it (at least one)."""
        mean = self.table[list(parts)].mean(axis=0, dtype=np.float64)
        if self.matrix is not None:
            mean = self.centre + (mean - self.centre) @ self.matrix
        return np.asarray(mean, np.float32)


def mean_rows(table: Floats, groups: Collection[Sequence[int]]) -> NDArray[np.float64]:
    """Return the mean of each group of rows of a table (V, P), shape (n, P)."""
    sizes = np.array([len(group) for group in groups])
    rows = np.fromiter((row for group in groups for row in group), np.int64)
    sums = np.add.reduceat(table[rows].astype(np.float64), np.concatenate([[0], np.cumsum(sizes)[:-1]]))
    return np.asarray(sums / sizes[:, None])
