"""Mixtures of classifiers: weighted means of their log probabilities, with weights chosen on held-out labels.

The mean of log-probabilities is the logarithm of a product of experts (Hinton 2002): if one expert rules out a class,
so does the mixture. A weight of 0 leaves a classifier out.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Floats = NDArray[np.float64]
# Weights are tenths.
_STEPS = 10


def mix(logs: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Return the log probabilities of a mixture of classifiers, float64, shape (N, K)."""
    found: Floats = log_softmax(sum(weight * each for weight, each in zip(weights, logs, strict=True)), axis=1)
    return found


def log_loss(logs: Floats, classes: NDArray[np.int64]) -> float:
    """Return the mean negative log probability of the true class."""
    return float(-logs[np.arange(len(classes)), classes].mean())


def choose_weights(logs: Sequence[Floats], classes: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the weights, in tenths that sum to 1, with the lowest log loss; ties go to earlier classifiers.

    Args:
        logs: Log-probabilities of each classifier for texts that it was not fitted on, each of shape (N, K).
        classes: True classes of the texts, shape (N,).
    """
    return min(_simplex(len(logs)), key=lambda weights: log_loss(mix(logs, weights), classes))


def _simplex(count: int, tenths: int = _STEPS) -> Iterator[tuple[float, ...]]:
    """Yield all weights for `count` classifiers, starting with the most weight on the earlier ones."""
    if count == 1:
        yield (tenths / _STEPS,)
        return
    for first in range(tenths, -1, -1):
        yield from ((first / _STEPS, *rest) for rest in _simplex(count - 1, tenths - first))
