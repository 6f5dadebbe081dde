"""Exact next-word costs over the whole vocabulary."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.threads import num_threads, threads

# Scores that a thread holds at a time, and the fewest rows: few enough for the cache, enough for a fast product.
BLOCK_SCORES, MIN_BLOCK_ROWS = 2**20, 8


def log_sums(hidden: Floats, weight: Floats, bias: Floats) -> NDArray[np.float64]:
    """Return the log of the sum of the exponentials of all scores, shape (n,), for outputs of shape (n, P).

    Args:
        hidden: Outputs of the top layer.
        weight: One row per word, shape (V, P).
        bias: Shape (V,).
    """
    rows = max(MIN_BLOCK_ROWS, BLOCK_SCORES // len(weight))
    result = np.empty(len(hidden))

    def fill(start: int) -> None:
        scores = hidden[start : start + rows] @ weight.T
        scores += bias
        top = scores.max(axis=1)
        scores -= top[:, None]
        np.exp(scores, out=scores)
        result[start : start + rows] = np.log(scores.sum(axis=1, dtype=np.float64)) + top

    with threads(num_threads()) as run_all:
        run_all([partial(fill, start) for start in range(0, len(hidden), rows)])
    return result


def target_scores(hidden: Floats, weight: Floats, bias: Floats, targets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the score of each target, shape (n,), for outputs of shape (n, P) and rows of shape (n,)."""
    products = np.einsum("np,np->n", hidden, weight[targets], dtype=np.float64)
    return np.asarray(products + bias[targets])
