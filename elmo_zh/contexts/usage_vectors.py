"""The vectors that tell usages apart: of an occurrence, and of the words around it."""

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.nearest import unit_rows

Floats = NDArray[np.float64]


def usage_layer(index: ContextIndex) -> int:
    """Return the layer whose vectors tell usages apart by default: the lowest one that knows the context."""
    return next((layer for layer in index.layers if layer), index.layers[-1])


def usage_vectors(index: ContextIndex, layer: int, numbers: NDArray[np.int64]) -> Floats:
    """Return the vectors by which the usages of a word are found, float64, shape (n, 4P).

    Args:
        index: The index.
        layer: The layer.
        numbers: The numbers of the word's occurrences, int64, shape (n,).
    """
    own = unit_rows(index.vectors_of(numbers, layer))
    around = np.zeros_like(own)
    for row, number in enumerate(numbers.tolist()):
        others = index.occurrences_beside(number)
        if len(others):
            around[row] = unit_rows(index.vectors_of(others, layer)).mean(axis=0)
    return join_directions(own, around)


def join_directions(own: Floats, around: Floats) -> Floats:
    """Return for each occurrence the direction of its vector and that of its surroundings, side by side.

    Both are directions from the mean over the occurrences, so that what is common to all of them does not count, and
    have the same weight. The mean vector of the words around is the context vector of Schuetze 1998, "Automatic Word
    Sense Discrimination", here from vectors that know their context themselves.

    Args:
        own: Vectors of the occurrences of a word, of length 1, float64, shape (n, D).
        around: For each occurrence, the mean of the other words' unit vectors in its line; zeros if there is no other,
            float64, shape (n, D).

    Returns:
        float64, shape (n, 2D).
    """
    return np.hstack([_directions(own), _directions(around)])


def _directions(rows: Floats) -> Floats:
    """Return the directions of rows from their mean; rows of zeros stay zero and do not count."""
    is_given = rows.any(axis=1, keepdims=True)
    mean = rows.sum(axis=0) / max(int(is_given.sum()), 1)
    return unit_rows(np.where(is_given, rows - mean, 0.0))
