"""The two terms of a word's exact cost: the log-sum-exp over the whole vocabulary, and the word's own score."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from elmo_zh.reader.bilm import num_threads, threads
from elmo_zh.reader.lstm import Floats

# Scores that a thread holds at a time, and the fewest rows: a product of few rows with a large matrix is slow.
BLOCK_SCORES, MIN_BLOCK_ROWS = 2**22, 8
# The exponentials of larger scores are infinite in float32, and if all are smaller, all may be zero.
_LARGEST_SCORE = 60.0


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
        if np.abs(top).max() > _LARGEST_SCORE:
            scores -= top[:, None]
        else:
            top = np.zeros_like(top)
        np.exp(scores, out=scores)
        result[start : start + rows] = np.log(scores.sum(axis=1)) + top

    with threads(num_threads()) as run_all:
        run_all([partial(fill, start) for start in range(0, len(hidden), rows)])
    return result


def target_scores(hidden: Floats, weight: Floats, bias: Floats, targets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the score of each target, shape (n,), for outputs of shape (n, P); targets are rows of `weight`."""
    products = np.einsum("np,np->n", hidden, weight[targets], dtype=np.float64)
    return np.asarray(products + bias[targets])
