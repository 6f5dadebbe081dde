"""The token layer of character mode: convolutions over a word's spelling, highway layers, and a projection.

Follows Peters et al. (2018) and Kim et al. (2015) as implemented in bilm-tf; matrices as in the published file, y = x W
+ b. For the spelling x_1 .. x_C of a word, embedded in rows of width c, and a filter K of width k:

    r = max over places p of sum over i < k of x_{p+i} K_i, plus b        the largest response, N of them in all
    y = g relu(r W_t + b_t) + (1 - g) r   with   g = sigmoid(r W_c + b_c)     each highway layer
    v = y W_p + b_p                                                       the word's vector, shape (P,)
"""

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.shape import CharacterShape

# Words computed together: bounds the memory, and short words together need few places.
_CHUNK_WORDS = 256


def encode_words(
    shape: CharacterShape, weights: Mapping[str, Floats], character_ids: NDArray[np.int64], words: NDArray[np.int64]
) -> Floats:
    """Return the vectors of W words, shape (W, P).

    `character_ids` are their spellings, shape (W, C), and `words` their vocabulary rows, shape (W,), which only models
    with embeddings of words use. `weights` have the names of `bundle.weights`, without `bilm.character_cnn.`.
    """
    if not len(character_ids):
        width = weights["projection_bias"].shape[0] if "projection_bias" in weights else shape.num_filters
        return np.zeros((0, width), np.float32)
    is_padding = character_ids == shape.num_characters - 1
    lengths = shape.num_slots - np.argmax(~is_padding[:, ::-1], axis=1)
    order, widest = np.argsort(lengths, kind="stable"), max(width for width, _ in shape.filters)
    vectors = []
    for start in range(0, len(order), _CHUNK_WORDS):
        rows = order[start : start + _CHUNK_WORDS]
        # Windows of nothing but padding respond alike, so one of them is enough.
        num_slots = min(shape.num_slots, int(lengths[rows[-1]]) + widest)
        vectors.append(_encode_chunk(shape, weights, character_ids[rows, :num_slots], words[rows]))
    result = np.empty((len(order), vectors[0].shape[1]), np.float32)
    result[order] = np.concatenate(vectors)
    return result


def _encode_chunk(
    shape: CharacterShape, weights: Mapping[str, Floats], character_ids: NDArray[np.int64], words: NDArray[np.int64]
) -> Floats:
    characters = weights["embedding"][character_ids]
    responses = []
    for index, (width, count) in enumerate(shape.filters):
        # (W, places, c, k) as (W, places, k c), the order of the kernel's rows
        windows = sliding_window_view(characters, width, axis=1).swapaxes(2, 3)
        windows = windows.reshape(*windows.shape[:2], -1)
        kernel = weights[f"kernels.{index}"].reshape(-1, count)
        responses.append((windows @ kernel).max(axis=1) + weights[f"kernel_biases.{index}"])
    x = np.concatenate(responses, axis=1)
    x = np.maximum(x, 0) if shape.activation == "relu" else np.tanh(x)
    for index in range(shape.num_highways):
        name = f"highways.{index}"
        carry = x @ weights[f"{name}.carry_weight"] + weights[f"{name}.carry_bias"]
        gate = (1 + np.tanh(carry / 2)) / 2  # the sigmoid
        transformed = np.maximum(x @ weights[f"{name}.transform_weight"] + weights[f"{name}.transform_bias"], 0)
        x = x + gate * (transformed - x)
    if "word_embedding" in weights:
        x = np.concatenate([weights["word_embedding"][words], x], axis=1)
    if "projection_weight" in weights:
        x = x @ weights["projection_weight"] + weights["projection_bias"]
    return x
