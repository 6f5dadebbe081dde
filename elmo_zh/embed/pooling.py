"""From the vectors of a sentence's tokens to one vector of the sentence."""

import numpy as np
from numpy.typing import NDArray

POOL_METHODS = ("mean", "max", "first-last")


def pool_tokens(vectors: NDArray[np.float32], how: str) -> NDArray[np.float32]:
    """Take away the axis of the tokens, the last but one.

    Args:
        vectors: Float32, shape (..., n, 2P), the forward LM's half first in the last axis.
        how: mean; max, number by number; or first-last: the forward LM's half at the last token and the backward LM's
            at the first one, where each has read the whole sentence.

    Returns:
        Float32, shape (..., 2P), zero where n = 0.

    Raises:
        ValueError: If `how` is none of these.
    """
    if how not in POOL_METHODS:
        raise ValueError(f"pool {how!r}: expected {', '.join(POOL_METHODS[:-1])} or {POOL_METHODS[-1]}")
    *before, num_tokens, dimension = vectors.shape
    if num_tokens == 0:
        return np.zeros((*before, dimension), np.float32)
    if how == "mean":
        return np.asarray(vectors.mean(axis=-2))
    if how == "max":
        return np.asarray(vectors.max(axis=-2))
    half = dimension // 2
    return np.concatenate([vectors[..., -1, :half], vectors[..., 0, half:]], axis=-1)
