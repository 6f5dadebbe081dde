"""Find words that tell usages apart: those with an occurrence near one usage and not near the others."""

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.nearest import unit_rows

# Vectors that are compared at a time.
_BLOCK = 4096
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
    own = set(index.occurrences(word).tolist())
    cosines = _all_cosines(index, layer, centres)
    found = []
    for usage in range(len(centres)):
        mine = cosines[:, usage]
        others = np.delete(cosines, usage, axis=1)
        lead = mine - others.max(axis=1) if others.shape[1] else np.zeros_like(mine)
        rows = np.flatnonzero(lead >= 0)
        most = _NUM_NEAREST + len(own)
        if len(rows) > most:
            rows = rows[np.sort(np.argpartition(-mine[rows], most)[:most])]
        rows = np.array([row for row in rows.tolist() if row not in own], np.int64)
        rows = rows[np.argsort(-mine[rows], kind="stable")[:_NUM_NEAREST]]
        ranked = rows[np.lexsort((rows, -(mine + lead)[rows].round(6)))]
        words = dict.fromkeys(index.occurrence(row).word for row in ranked.tolist())
        found.append(list(words)[:top])
    return found


def _all_cosines(index: ContextIndex, layer: int, centres: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the cosines of all occurrences of an index with each centre, float32, shape (N, K)."""
    from threadpoolctl import threadpool_limits

    vectors, norms = index.vectors(layer), index.norms(layer)
    units = unit_rows(centres).astype(np.float32)
    cosines = np.empty((len(vectors), len(units)), np.float32)
    with threadpool_limits(1):
        for start in range(0, len(vectors), _BLOCK):
            rows = slice(start, start + _BLOCK)
            scale = np.where(norms[rows] == 0, np.float32(1), norms[rows])[:, None]
            cosines[rows] = vectors[rows].astype(np.float32) @ units.T / scale
    return cosines
