"""An independent NumPy forward pass of the character CNN: one token's spelling to its token vector.

Shape letters: C character slots, c character embedding width, N sum of the filter counts, P projection.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from parity.numpy_bilm import Array, read_array, sigmoid

SENTENCE_MARK_IDS = {"<S>": 256, "</S>": 257}
BEGIN_WORD, END_WORD, PADDING = 258, 259, 260


@dataclass(frozen=True)
class Highway:
    """One highway layer, y = g * relu(x W_transform + b_transform) + (1 - g) * x with g from the carry weights."""

    carry_weight: Array  # (N, N)
    carry_bias: Array  # (N,)
    transform_weight: Array  # (N, N)
    transform_bias: Array  # (N,)


@dataclass(frozen=True)
class CharacterCnn:
    num_slots: int
    activation: str
    char_embed: Array  # (261, c)
    filters: list[tuple[Array, Array]]  # (width, c, n) and (n,)
    highways: list[Highway]
    projection: tuple[Array, Array] | None  # (N, P) and (P,); None where N == P


def load_character_cnn(weights: h5py.File, options: dict[str, Any]) -> CharacterCnn:
    cnn_options = options["char_cnn"]
    filters = [
        (read_array(weights, f"CNN/W_cnn_{k}")[0], read_array(weights, f"CNN/b_cnn_{k}"))
        for k in range(len(cnn_options["filters"]))
    ]
    has_projection = sum(bias.shape[0] for _, bias in filters) != options["lstm"]["projection_dim"]
    return CharacterCnn(
        num_slots=cnn_options["max_characters_per_token"],
        activation=cnn_options["activation"],
        char_embed=read_array(weights, "char_embed"),
        filters=filters,
        highways=[load_highway(weights, f"CNN_high_{k}") for k in range(cnn_options["n_highway"])],
        projection=(read_array(weights, "CNN_proj/W_proj"), read_array(weights, "CNN_proj/b_proj"))
        if has_projection
        else None,
    )


def load_highway(weights: h5py.File, group: str) -> Highway:
    names = ("W_carry", "b_carry", "W_transform", "b_transform")
    return Highway(*(read_array(weights, f"{group}/{name}") for name in names))


def character_ids(token: str, num_slots: int, *, is_text: bool = False) -> list[int]:
    """Return the token's character ids, one a slot, without the +1 that readers add.

    `<S>` and `</S>` are the sentence marks, except as text, where they are words of three and four letters.
    """
    is_mark = token in SENTENCE_MARK_IDS and not is_text
    content = [SENTENCE_MARK_IDS[token]] if is_mark else list(token.encode("utf-8"))
    ids = [BEGIN_WORD, *content[: num_slots - 2], END_WORD]
    return ids + [PADDING] * (num_slots - len(ids))


def convolve_and_pool(embedded: Array, kernel: Array, bias: Array) -> Array:
    """Return each filter's largest response, shape (n,), over embedded characters of shape (C, c)."""
    width = kernel.shape[0]
    responses = [
        np.tensordot(embedded[start : start + width], kernel, axes=2) + bias
        for start in range(embedded.shape[0] - width + 1)
    ]
    return np.asarray(np.stack(responses).max(axis=0))


def apply_highway(highway: Highway, x: Array) -> Array:
    gate = sigmoid(x @ highway.carry_weight + highway.carry_bias)
    transformed = np.maximum(x @ highway.transform_weight + highway.transform_bias, 0.0)
    return gate * transformed + (1.0 - gate) * x


def token_vector(cnn: CharacterCnn, token: str, *, is_text: bool = False) -> Array:
    """Return one token's vector, shape (P,); `<S>` and `</S>` are the sentence marks, except as text."""
    embedded = cnn.char_embed[character_ids(token, cnn.num_slots, is_text=is_text)]  # (C, c)
    pooled = np.concatenate([convolve_and_pool(embedded, kernel, bias) for kernel, bias in cnn.filters])  # (N,)
    x: Array = np.maximum(pooled, 0.0) if cnn.activation == "relu" else np.tanh(pooled)
    for highway in cnn.highways:
        x = apply_highway(highway, x)
    if cnn.projection is None:
        return x
    weight, bias = cnn.projection
    return x @ weight + bias


def sentence_vectors(cnn: CharacterCnn, tokens: Sequence[str]) -> Array:
    """Return the token vectors of `<S>`, the tokens, `</S>`, shape (n + 2, P)."""
    words = [token_vector(cnn, token, is_text=True) for token in tokens]
    return np.stack([token_vector(cnn, "<S>"), *words, token_vector(cnn, "</S>")])
