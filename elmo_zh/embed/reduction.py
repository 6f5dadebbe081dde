"""Reduce a line's activations: select or mix layers, and pool tokens into one vector per line or span."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_zh.checks import check_choice
from elmo_zh.choices import POOL_METHODS
from elmo_zh.config import Layers
from elmo_zh.errors import ElmoZhError


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """The reduction of a line's activations: which layers to select, average or mix, and how to pool tokens."""

    layers: Layers
    pool: str = "none"  # none (one vector per token), or mean, max or first-last (one per line)
    mix_weights: tuple[float, ...] | None = None  # The factor of each layer in the sum, for layers = mix

    def apply(self, activations: NDArray[np.float32]) -> NDArray[np.float32]:
        """Reduce activations (L + 1, n, 2P) to (n, 2P) or, if layers stay separate, (k, n, 2P); pooling drops n."""
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


class _Mix(msgspec.Struct):
    scalar_parameters: list[float]
    gamma: float = 1.0


def load_mix_weights(path: Path, num_layers: int) -> tuple[float, ...]:
    """Load a task's learned layer weights from JSON: gamma times the softmax of the scalar parameters."""
    try:
        mix = msgspec.json.decode(path.read_bytes(), type=_Mix)
        powers = [math.exp(parameter - max(mix.scalar_parameters)) for parameter in mix.scalar_parameters]
        weights = tuple(mix.gamma * power / sum(powers) for power in powers)
    except (OSError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        weights = ()
    if len(weights) != num_layers or not all(map(math.isfinite, weights)):
        example = json.dumps({"scalar_parameters": [0.0] * num_layers, "gamma": 1.0})
        raise ElmoZhError.unexpected(f"--mix-weights {path}", example)
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


def pool_spans(
    vectors: NDArray[np.floating],
    offsets: ArrayLike,
    spans: Sequence[tuple[int, int]] | ArrayLike,
) -> NDArray[np.float32]:
    """Return the mean vector of the tokens that overlap each span of characters, such as a named entity.

        line = embedder.prepare("我在北京大学读书")
        [vectors] = embedder.embed_tokens([line.tokens])
        pool_spans(vectors, line.offsets, [(2, 6)])  # 北京大学: (L + 1, 1, 2P)

    Args:
        vectors: Vectors of n tokens, shape (n, d) or (L + 1, n, d).
        offsets: Start and end of each token in characters, end exclusive, integers, shape (n, 2).
        spans: Start and end of each of k spans, in the same way, integers, shape (k, 2); spans may overlap.

    Returns:
        float32, shape (k, d) or (L + 1, k, d), zeros for a span without tokens.

    Raises:
        ValueError: If shapes or types are not as above, or a start is negative or above its end.
    """
    vectors, offsets = _check_tokens(vectors, offsets)
    spans = _check_pairs("spans", spans)
    pooled = np.zeros((*vectors.shape[:-2], len(spans), vectors.shape[-1]), np.float32)
    starts, ends = offsets.T
    # The tokens of a line are in order, so those that share a character with a span are neighbours.
    in_order = bool((np.diff(offsets, axis=0) >= 0).all())
    for place, (start, end) in enumerate(spans):
        near = slice(np.searchsorted(ends, start, "right"), np.searchsorted(starts, end)) if in_order else slice(None)
        shares_any = np.maximum(starts[near], start) < np.minimum(ends[near], end)
        if shares_any.any():
            pooled[..., place, :] = vectors[..., near, :][..., shares_any, :].mean(axis=-2)
    return pooled


def _check_tokens(vectors: NDArray[np.floating], offsets: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return vectors and offsets as arrays; raise ValueError if they do not match."""
    vectors, offsets = np.asarray(vectors, np.float32), _check_pairs("offsets", offsets)
    if vectors.ndim not in (2, 3) or len(offsets) != vectors.shape[-2]:
        raise ValueError(
            f"vectors have shape {vectors.shape} and offsets {offsets.shape}; expected (n, d) or (layers, n, d), and"
            " (n, 2)"
        )
    return vectors, offsets


def _check_pairs(name: str, pairs: ArrayLike) -> NDArray[np.int64]:
    """Return starts and ends as int64, shape (k, 2); raise ValueError unless they are integers, 0 <= start <= end."""
    array = np.asarray(pairs)
    if array.size == 0 and array.ndim == 1:
        return np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} are {array.dtype} of shape {array.shape}; expected integers, (n, 2)")
    wrong = (array[:, 0] < 0) | (array[:, 0] > array[:, 1])
    if wrong.any():
        raise ValueError(f"{name} hold {tuple(array[wrong][0].tolist())}; expected 0 <= start <= end")
    return array.astype(np.int64)
