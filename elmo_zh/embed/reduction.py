"""Reduce a line's activations to the output: one layer or a mix of layers, one vector per token or per line."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_choice
from elmo_zh.choices import POOL_METHODS
from elmo_zh.config import Layers
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.files import read_json


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """The reduction of a line's activations: which layers to select or average, and how to pool tokens."""

    layers: Layers
    pool: str = "none"  # none (one vector per token), or mean, max or first-last (one per line)
    mix_weights: tuple[float, ...] | None = None  # The factor of each layer in the sum, for layers = mix

    def apply(self, activations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Reduce a line's activations (L + 1, n, 2P): one layer or a mix gives (n, 2P); pooling drops n."""
        selected = self._select(activations)
        return selected if self.pool == "none" else pool_tokens(selected, self.pool)

    def _select(self, activations: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.layers == "average":
            return np.asarray(activations.mean(axis=0))
        if self.layers == "mix":
            return np.tensordot(np.array(self.mix_weights, np.float32), activations, axes=1)
        num_layers = len(activations)
        if stacked := self.layers.stacked(num_layers):
            return activations if self.layers == "all" else activations[list(stacked)]
        return np.asarray(activations[self.layers.numbers(num_layers)[0]])


def load_mix_weights(path: Path, num_layers: int) -> tuple[float, ...]:
    """Load a task's learned layer weights from JSON: gamma times the softmax of the scalar parameters."""
    try:
        mix = read_json(path)
        parameters = [*map(float, mix["scalar_parameters"]), gamma := float(mix.get("gamma", 1.0))][:-1]
        powers = [math.exp(parameter - max(parameters)) for parameter in parameters]
        weights = tuple(gamma * power / sum(powers) for power in powers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        weights = ()
    if len(weights) != num_layers or not all(map(math.isfinite, weights)):
        example = json.dumps({"scalar_parameters": [0.0] * num_layers, "gamma": 1.0})
        raise ElmoZhError(
            _("--mix-weights {path}: expected JSON with a finite number for each layer, such as {example}").format(
                path=path, example=example
            )
        )
    return weights


def pool_tokens(vectors: NDArray[np.float32], how: str) -> NDArray[np.float32]:
    """Pool the vectors of tokens, (..., n, 2P), into one, (..., 2P), float32; zeros if n = 0.

    `how` is mean; max, element by element; or first-last: the forward LM's half (the first one) at the last token and
    the backward LM's half at the first token, where each has read the whole sentence.
    """
    check_choice(how, POOL_METHODS, "pool_tokens", "how")
    *before, num_tokens, dimension = vectors.shape
    if num_tokens == 0:
        return np.zeros((*before, dimension), np.float32)
    if how == "mean":
        return np.asarray(vectors.mean(axis=-2))
    if how == "max":
        return np.asarray(vectors.max(axis=-2))
    half = dimension // 2
    return np.concatenate([vectors[..., -1, :half], vectors[..., 0, half:]], axis=-1)
