"""Find words that tell usages apart: those with an occurrence near one usage and not near the others."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.nearest import unit_rows

# Vectors that are compared at a time, and cosines with all centres that are computed at a time, at most.
_BLOCK, _MOST_COSINES = 4096, 2**24
# Occurrences nearest to a usage among which the words are looked for.
_NUM_NEAREST = 200


def telling_words(
    index: ContextIndex, word: str, layer: int, centres: NDArray[np.float64], top: int
) -> list[list[str]]:
    """Return the words that are most telling for each usage of a word.

    Among the 200 occurrences of other words that are nearest to the centre of a usage, and nearer to it than to other
    usages, each is scored by its cosine plus what this is above the cosine with the next usage. A word has the score of
    its best occurrence.

    Args:
        index: The index.
        word: The word, which is left out.
        layer: The layer to compare.
        centres: The centre of each usage, float64, shape (K, 2P).
        top: How many words to return, at most.

    Returns:
        For each usage its words, the most telling first.
    """
    [found] = telling_words_of_each(index, [(word, centres)], layer, top)
    return found


def telling_words_of_each(
    index: ContextIndex,
    words: Sequence[tuple[str, NDArray[np.float64]]],
    layer: int,
    top: int,
    advance: Callable[[int], None] = lambda _: None,
) -> list[list[list[str]]]:
    """Return what `telling_words` returns for each of some words, reading the vectors of the index once.

    Args:
        index: The index.
        words: The words, each with the centres of its usages.
        layer: The layer to compare.
        top: How many words to return for each usage, at most.
        advance: Is told how many more occurrences have been compared.
    """
    from threadpoolctl import threadpool_limits

    if not words:
        return []
    ends = np.cumsum([len(centres) for _, centres in words]).tolist()
    own = [index.occurrences(word) for word, _ in words]
    usages = [[_Nearest() for _ in centres] for _, centres in words]
    with threadpool_limits(1):
        for start, cosines in _iter_cosines(index, layer, np.concatenate([centres for _, centres in words])):
            for number, nearest in enumerate(usages):
                mine = cosines[:, ends[number] - len(nearest) : ends[number]]
                first, last = np.searchsorted(own[number], [start, start + len(cosines)])
                _add_block(nearest, mine, start, own[number][first:last])
            advance(len(cosines))
    return [[usage.words(index, top) for usage in nearest] for nearest in usages]


class _Nearest:
    """The occurrences nearest to the centre of a usage, by falling cosine; of equal ones the first comes first."""

    def __init__(self) -> None:
        self.rows = np.empty(0, np.int64)
        self.cosines = self.leads = np.empty(0, np.float32)

    def add(self, rows: NDArray[np.int64], cosines: NDArray[np.float32], leads: NDArray[np.float32]) -> None:
        """Add occurrences that come after those that have been added."""
        if len(self.rows) == _NUM_NEAREST:
            is_nearer = cosines > self.cosines[-1]
            rows, cosines, leads = rows[is_nearer], cosines[is_nearer], leads[is_nearer]
        rows, cosines = np.concatenate([self.rows, rows]), np.concatenate([self.cosines, cosines])
        order = np.argsort(-cosines, kind="stable")[:_NUM_NEAREST]
        self.rows, self.cosines = rows[order], cosines[order]
        self.leads = np.concatenate([self.leads, leads])[order]

    def words(self, index: ContextIndex, top: int) -> list[str]:
        """Return the words of the occurrences, the most telling first."""
        ranked = self.rows[np.lexsort((self.rows, -(self.cosines + self.leads).round(6)))]
        return list(dict.fromkeys(index.occurrence(row).word for row in ranked.tolist()))[:top]


def _add_block(usages: Sequence[_Nearest], cosines: NDArray[np.float32], start: int, own: NDArray[np.int64]) -> None:
    """Add the occurrences of a block to the usages that they are nearest to.

    Args:
        usages: The usages of a word.
        cosines: The cosines of the occurrences with the centre of each, float32, shape (n, K).
        start: The number of the first of the occurrences.
        own: Numbers of those that are of the word itself, which are left out.
    """
    is_other = np.ones(len(cosines), np.bool_)
    is_other[own - start] = False
    for number, usage in enumerate(usages):
        mine = cosines[:, number]
        others = np.delete(cosines, number, axis=1)
        leads = mine - others.max(axis=1) if others.shape[1] else np.zeros_like(mine)
        rows = np.flatnonzero((leads >= 0) & is_other)
        usage.add(rows + start, mine[rows], leads[rows])


def _iter_cosines(
    index: ContextIndex, layer: int, centres: NDArray[np.float64]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield blocks of occurrences: the number of the first, and the cosines with each centre, float32, shape (n, K)."""
    vectors, norms = index.vectors(layer), index.norms(layer)
    units = unit_rows(centres).astype(np.float32)
    step = min(_BLOCK, max(1, _MOST_COSINES // len(units)))
    for start in range(0, len(vectors), step):
        rows = slice(start, start + step)
        scale = np.where(norms[rows] == 0, np.float32(1), norms[rows])[:, None]
        yield start, np.asarray(vectors[rows].astype(np.float32) @ units.T / scale, np.float32)
