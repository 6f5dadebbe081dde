"""Find near copies among paragraphs by MinHash (Broder 1997) over trigrams, since held-out text has to be new.

A signature holds the lowest hash of a paragraph's trigrams for each of 16 hash functions. The fraction of places in
which two signatures agree estimates the Jaccard index of the trigrams; paragraphs that agree in at least 9 places are
near copies.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Signatures = NDArray[np.uint32]  # shape (paragraphs, 16); zeros for paragraphs that are too short to compare
PLACES, _LEAST_EQUAL = 16, 9
# Shorter sentences recur naturally; paragraphs much longer than this are never held out.
_LEAST_CHARACTERS, MOST_CHARACTERS = 10, 10_000
_FACTORS = np.random.default_rng(2018).integers(2**63, size=PLACES + 3, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
# How many paragraphs are compared at a time; each may resemble thousands.
_COMPARED = 256


def signatures(texts: Sequence[str]) -> Signatures:
    """Return a signature for each text; texts come without white space, and all digits count as the same character."""
    lengths = np.array([min(len(text), MOST_CHARACTERS) for text in texts], np.int64)
    is_long = lengths >= _LEAST_CHARACTERS
    found = np.zeros((len(texts), PLACES), np.uint32)
    if not is_long.any():
        return found
    joined = "".join(text[:MOST_CHARACTERS] for text in texts if len(text) >= _LEAST_CHARACTERS)
    codes = np.frombuffer(joined.encode("utf-32-le"), "<u4").astype(np.uint64)
    codes[(codes >= ord("0")) & (codes <= ord("9"))] = ord("0")
    ends = np.cumsum(lengths[is_long])
    starts = ends - lengths[is_long]
    first, second, third = (codes * factor for factor in _FACTORS[PLACES:])
    runs = first + np.roll(second, -1) + np.roll(third, -2)
    for place in (1, 2):
        # These trigrams would reach into the next text.
        runs[ends - place] = runs[starts]
    runs ^= runs >> np.uint64(32)
    for place, factor in enumerate(_FACTORS[:PLACES]):
        found[is_long, place] = np.minimum.reduceat(runs * factor >> np.uint64(32), starts)
    return found


def find_near_copies(
    keys: NDArray[np.uint64], ours: Signatures, paragraphs: Iterable[tuple[NDArray[np.uint64], Signatures]]
) -> set[int]:
    """Return which of the keys have a near copy under another key among some arrays of paragraphs."""
    near: set[int] = set()
    keys, ours = keys[ours.any(1)], ours[ours.any(1)]
    for other_keys, others in paragraphs:
        rows = np.flatnonzero(others.any(1))
        for start in range(0, len(rows), _COMPARED):
            some = rows[start : start + _COMPARED]
            is_near = _has_near_copy(keys, ours, other_keys[some], others[some])
            near.update(keys[is_near].tolist())
            keys, ours = keys[~is_near], ours[~is_near]
    return near


def _has_near_copy(
    keys: NDArray[np.uint64], ours: Signatures, other_keys: NDArray[np.uint64], others: Signatures
) -> NDArray[np.bool_]:
    """Return which of our signatures agree in enough places with one of the others under another key."""
    is_near = np.zeros(len(keys), np.bool_)
    # Signatures that agree in 9 of 16 places agree in both places of one of these 8 pairs.
    for our_pairs, other_pairs in zip(ours.view(np.uint64).T, others.view(np.uint64).T, strict=True):
        order = np.argsort(our_pairs)
        first, last = (np.searchsorted(our_pairs, other_pairs, side, sorter=order) for side in ("left", "right"))
        theirs = np.repeat(np.arange(len(others)), last - first)
        place = np.arange(len(theirs)) - np.repeat(np.cumsum(last - first) - last, last - first)
        mine = order[place]
        equal = np.count_nonzero(ours[mine] == others[theirs], axis=1)
        is_near[mine[(equal >= _LEAST_EQUAL) & (keys[mine] != other_keys[theirs])]] = True
    return is_near
