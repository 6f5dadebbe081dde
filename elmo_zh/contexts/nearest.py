"""Exact search for the vectors with the largest cosine similarity.

A first pass in float32, with a bounded error, reads each vector once and rules out the vectors that cannot be among
the nearest. The others are compared in float64 without a matrix product, so that equal vectors have equal cosines.
"""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Cosines = NDArray[np.float64]

# Number of vectors compared at a time; in float32 they fit a processor's cache.
_BLOCK = 512
# Mapped pages are given back after this many blocks; otherwise they would count as this process's memory.
_MOST_MAPPED, _CAN_GIVE_BACK = 128, hasattr(mmap, "MADV_DONTNEED")  # not on Windows
_FLOAT_ERROR = 2.0**-16


def unit_rows(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return vectors scaled to length 1, float64, shape (n, D); zero vectors stay zero."""
    wide = vectors.astype(np.float64)
    norms = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    return np.asarray(wide / np.where(norms == 0, 1, norms))


def widened(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """Convert finite contiguous vectors to float32, faster than `astype`."""
    bits = vectors.view("<i2").astype("<i4").view("<u4")  # the sign is copied into the added bits
    bits <<= 13
    bits &= 0x8FFFE000  # keeps the first copy, exponent and fraction
    found = bits.view(np.float32)
    found *= np.float32(2.0**112)  # the exponents count from 127 instead of 15
    return found


def iter_cosines(
    vectors: NDArray[np.float16], norms: NDArray[np.float32], queries: NDArray[np.floating[Any]]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the number of each block's first row, and its rows' cosines with Q queries, float32, shape (n, Q)."""
    units = unit_rows(queries).astype(np.float32).T
    for start in range(0, len(vectors), _BLOCK):
        own = slice(start, start + _BLOCK)
        cosines = widened(vectors[own]) @ units
        cosines /= np.where(norms[own] == 0, np.float32(1), norms[own])[:, None]
        yield start, cosines
        if start // _BLOCK % _MOST_MAPPED == 0 and isinstance(vectors.base, mmap.mmap) and _CAN_GIVE_BACK:
            vectors.base.madvise(mmap.MADV_DONTNEED)


def nearest_among(
    numbers: Numbers, vectors: NDArray[np.float16], query: NDArray[np.float32], top: int
) -> tuple[Numbers, Cosines]:
    """Return the rows among `numbers` that are most similar to one vector, as `nearest_rows` does."""
    [unit], cosines = unit_rows(query[None]), np.empty(len(numbers))
    for start in range(0, len(numbers), _BLOCK):
        own = slice(start, start + _BLOCK)
        cosines[own] = _cosines(vectors[numbers[own]], unit)
    order = np.lexsort((numbers, -cosines))[:top]
    return numbers[order], cosines[order]


def nearest_rows(
    vectors: NDArray[np.float16], norms: NDArray[np.float32], query: NDArray[np.float32], top: int
) -> tuple[Numbers, Cosines]:
    """Return the rows of largest cosine with a vector, largest first, and their cosines; ties go to the first row."""
    candidates, estimates, least = np.empty(0, np.int64), np.empty(0, np.float32), np.float32(-np.inf)
    for start, products in iter_cosines(vectors if top else vectors[:0], norms, query[None]):
        rows = np.flatnonzero(products[:, 0] >= least)
        if not len(rows):
            continue
        candidates = np.concatenate([candidates, rows + start])
        estimates = np.concatenate([estimates, products[rows, 0]])
        if len(candidates) >= top:
            least = np.partition(estimates, len(estimates) - top)[-top] - 2 * _FLOAT_ERROR
            candidates, estimates = candidates[estimates >= least], estimates[estimates >= least]
        if len(candidates) > top + _BLOCK:  # very many are about equal: compare them now
            candidates, cosines = nearest_among(candidates, vectors, query, top)
            estimates = cosines.astype(np.float32)
    return nearest_among(candidates, vectors, query, top)


def _cosines(vectors: NDArray[np.float16], unit: NDArray[np.float64]) -> Cosines:
    """Return each row's cosine with `unit`; the row's position in its block does not affect it."""
    rows = vectors.astype(np.float64)
    norms = np.sqrt((rows * rows).sum(axis=1))
    return np.asarray((rows * unit).sum(axis=1) / np.where(norms == 0, 1, norms))
