"""Checks of what the search of an index is given: vectors to compare with, and how many to return."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_zh.text.sentence_arguments import is_whole_number


def check_query(vector: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """Return a vector to compare with, float32, shape (2P,).

    Raises:
        ValueError: If it has another shape, or a number that is not finite.
    """
    query = np.asarray(vector, np.float32)
    if query.shape != (dimension,):
        raise ValueError(f"vector: shape {query.shape}, expected ({dimension},)")
    _require_finite(query)
    return query


def check_queries(vectors: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """Return vectors to compare with, float32, shape (Q, 2P).

    Raises:
        ValueError: If they have another shape, or a number that is not finite.
    """
    queries = np.asarray(vectors, np.float32)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise ValueError(f"vectors: shape {queries.shape}, expected (number, {dimension})")
    _require_finite(queries)
    return queries


def check_top(top: object) -> None:
    """Raise TypeError or ValueError unless the number of results is a whole number of at least 1."""
    if not is_whole_number(top):
        raise TypeError(f"top: {top!r:.60}, expected a whole number")
    if top < 1:  # type: ignore[operator]
        raise ValueError(f"top: {top}, expected at least 1")


def _require_finite(vectors: NDArray[np.float32]) -> None:
    if not np.isfinite(vectors).all():
        raise ValueError("vector: a number is not finite")
