"""The points of a page that are most similar to each of its points."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Points that are compared with all others at a time.
_BLOCK = 512
# Cosines are rounded to so many parts, which keeps the page small.
COSINE_PARTS = 1000


def point_neighbours(vectors: NDArray[np.float64], texts: Sequence[int], top: int) -> list[list[tuple[int, int]]]:
    """Return for each point the points with the largest cosines.

    Points in the same text as the point, or in the same text as a nearer neighbour, are left out.

    Args:
        vectors: Unit vectors of the points, float64, shape (n, 2P).
        texts: A number for each point; points with equal numbers are in lines of equal text.
        top: How many neighbours to return, at most.

    Returns:
        For each point, pairs of a point's number and the cosine times COSINE_PARTS, rounded, descending; of equal ones
        the earlier point comes first.
    """
    found: list[list[tuple[int, int]]] = []
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rounded = np.rint(cosines * COSINE_PARTS).astype(np.int64)
        for row, order in enumerate(np.argsort(-rounded, axis=1, kind="stable")):
            seen = {texts[start + row]}
            own: list[tuple[int, int]] = []
            for other in order.tolist():
                if len(own) == top:
                    break
                if texts[other] not in seen:
                    seen.add(texts[other])
                    own.append((other, int(rounded[row, other])))
            found.append(own)
    return found
