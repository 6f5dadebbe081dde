"""Mixtures of classifiers: the weighted mean of their log-probabilities, weights chosen on held-out labels.

The mean of log-probabilities is the logarithm of a product of experts (Hinton 2002): a class that one of them rules out
is ruled out. A weight of 0 leaves a classifier out.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Floats = NDArray[np.float64]
# Weights are tenths.
_STEPS = 10


def mix(logs: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return the log-probabilities of a mixture, float64, shape (N, K), from those of each classifier."""
    found: Floats = log_softmax(sum(weight * each for weight, each in zip(weights, logs, strict=True)), axis=1)
    return found


def log_loss(logs: Floats, classes: NDArray[np.int64]) -> float:
    """Return the mean of the negative log-probability of the true class."""
    return float(-logs[np.arange(len(classes)), classes].mean())


def choose_weights(logs: Sequence[Floats], classes: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the weights, tenths that sum to 1, with the least log-loss; ties go to the earlier classifiers.

    Args:
        logs: Log-probabilities of each classifier for texts that it has not learned from, each of shape (N, K).
        classes: Their true classes, shape (N,).
    """
    return min(_simplex(len(logs)), key=lambda weights: log_loss(mix(logs, weights), classes))


def _simplex(count: int, tenths: int = _STEPS) -> Iterator[tuple[float, ...]]:
    """Yield all weights of some classifiers, those with much weight on the earlier ones first."""
    if count == 1:
        yield (tenths / _STEPS,)
        return
    for first in range(tenths, -1, -1):
        yield from ((first / _STEPS, *rest) for rest in _simplex(count - 1, tenths - first))
