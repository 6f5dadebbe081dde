"""Vectors of characters and of spans, derived from token vectors, for character labels and named entities."""

from collections.abc import Sequence
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elmo_zh.checks import check_choice

ALIGN_METHODS = ("spread", "first")
SPAN_METHODS = ("mean", "max")


def align_to_characters(
    vectors: NDArray[np.floating], offsets: ArrayLike, num_characters: int, method: str = "spread"
) -> NDArray[np.float32]:
    """Return a vector for each character of a line, for tasks whose labels belong to characters.

        line = embedder.prepare(text)
        [vectors] = embedder.embed_tokens([line.tokens])
        characters = align_to_characters(vectors, line.offsets, len(text))  # (L + 1, len(text), 2P)

    Args:
        vectors: Vectors of n tokens, shape (n, d) or (L + 1, n, d).
        offsets: First character of each token and the one after its last, integers, shape (n, 2). The vector of a
            token without characters is not used.
        num_characters: Length of the line in characters (code points).
        method: spread: each character gets the vector of its token; first: only the first character of a token does. A
            character shared by several tokens gets their mean.

    Returns:
        float32, shape (num_characters, d) or (L + 1, num_characters, d), zeros for a character without a token.

    Raises:
        ValueError: If the shapes or the method are not as above, or the offsets do not fit the line.
    """
    check_choice(method, ALIGN_METHODS, "align_to_characters", "method")
    offsets = _check_pairs("offsets", offsets)
    if offsets.max(initial=0) > num_characters:
        raise ValueError(f"offsets reach character {offsets.max()}, but the line has {num_characters}")
    if method == "first":
        offsets[:, 1] = np.minimum(offsets[:, 1], offsets[:, 0] + 1)
    characters = np.arange(index(num_characters))
    return pool_spans(vectors, offsets, np.stack([characters, characters + 1], axis=1))


def pool_spans(
    vectors: NDArray[np.floating],
    offsets: ArrayLike,
    spans: Sequence[tuple[int, int]] | ArrayLike,
    method: str = "mean",
) -> NDArray[np.float32]:
    """Return a vector for each span of characters, such as a named entity, pooled from overlapping tokens.

        line = embedder.prepare("我在北京大学读书")
        [vectors] = embedder.embed_tokens([line.tokens])
        pool_spans(vectors, line.offsets, [(2, 6)])  # 北京大学: (L + 1, 1, 2P)

    Args:
        vectors: Vectors of n tokens, shape (n, d) or (L + 1, n, d).
        offsets: First character of each token and the one after its last, integers, shape (n, 2).
        spans: First character of each of k spans and the one after its last, integers, shape (k, 2); spans may overlap.
        method: mean or max, element by element, over the vectors of the tokens; all tokens have the same weight.

    Returns:
        float32, shape (k, d) or (L + 1, k, d), zeros for a span without tokens.

    Raises:
        ValueError: If the shapes or the method are not as above, or a start is negative or above its end.
    """
    check_choice(method, SPAN_METHODS, "pool_spans", "method")
    vectors, offsets = _check_tokens(vectors, offsets)
    spans = _check_pairs("spans", spans)
    found = np.zeros((*vectors.shape[:-2], len(spans), vectors.shape[-1]), np.float32)
    starts, ends = offsets.T
    # The tokens of a line are in order, so those that share a character with a span are neighbours.
    in_order = bool((np.diff(offsets, axis=0) >= 0).all())
    for place, (start, end) in enumerate(spans):
        near = slice(np.searchsorted(ends, start, "right"), np.searchsorted(starts, end)) if in_order else slice(None)
        shares_any = np.maximum(starts[near], start) < np.minimum(ends[near], end)
        if shares_any.any():
            inside = vectors[..., near, :][..., shares_any, :]
            found[..., place, :] = inside.mean(axis=-2) if method == "mean" else inside.max(axis=-2)
    return found


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
    """Return starts and ends as int64, shape (k, 2); raise ValueError if they are anything else."""
    array = np.asarray(pairs)
    if array.size == 0 and array.ndim == 1:
        return np.zeros((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} are {array.dtype} of shape {array.shape}; expected integers, (n, 2)")
    wrong = (array[:, 0] < 0) | (array[:, 0] > array[:, 1])
    if wrong.any():
        raise ValueError(f"{name} hold {tuple(array[wrong][0].tolist())}; expected 0 <= start <= end")
    return array.astype(np.int64)
