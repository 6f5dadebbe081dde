"""Checks of what the search of an index is given: vectors to compare with, and how many to return."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_zh.text.sentence_arguments import is_whole_number


def check_query(vector: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """Return a vector to compare with, float32, shape (2P,).

    Raises:
        TypeError: If it is a word.
        ValueError: If it has another shape, or a number that is not finite.
    """
    _refuse_words(vector)
    query = np.asarray(vector, np.float32)
    if query.shape != (dimension,):
        raise ValueError(f"vector: shape {query.shape}, expected ({dimension},)")
    _require_finite(query)
    return query


def check_queries(vectors: ArrayLike, dimension: int) -> NDArray[np.float32]:
    """Return vectors to compare with, float32, shape (Q, 2P).

    Raises:
        TypeError: If they are words.
        ValueError: If they have another shape, or a number that is not finite.
    """
    _refuse_words(vectors)
    queries = np.asarray(vectors, np.float32)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise ValueError(f"vectors: shape {queries.shape}, expected (number, {dimension})")
    _require_finite(queries)
    return queries


def check_number(number: object, count: int, what: str) -> int:
    """Return the number of an entry of an index.

    Args:
        number: The argument.
        count: How many such entries the index has.
        what: What they are, for the message: occurrence.

    Raises:
        TypeError: If it is not a whole number.
        IndexError: If there is no such entry.
    """
    if not is_whole_number(number):
        raise TypeError(f"{what} {number!r:.60}, expected its number in the index, from 0 to {count - 1:,}")
    if not 0 <= number < count:  # type: ignore[operator]
        raise IndexError(f"{what} {number}, expected a number from 0 to {count - 1:,}")
    return int(number)  # type: ignore[call-overload,no-any-return]


def check_top(top: object) -> None:
    """Raise TypeError or ValueError unless the number of results is a whole number of at least 1."""
    if not is_whole_number(top):
        raise TypeError(f"top: {top!r:.60}, expected a whole number")
    if top < 1:  # type: ignore[operator]
        raise ValueError(f"top: {top}, expected at least 1")


def _refuse_words(given: object) -> None:
    """Raise TypeError for a word, or a list of words, in place of vectors."""
    if isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(each, str) for each in given)):
        raise TypeError(
            f"vector: {given!r:.60}, expected numbers. The vectors of a word's occurrences are"
            " index.vectors_of(index.occurrences(word), layer)."
        )


def _require_finite(vectors: NDArray[np.float32]) -> None:
    if not np.isfinite(vectors).all():
        raise ValueError("vector: a number is not finite")
