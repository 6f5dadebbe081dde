"""The vectors of words: from their spelling in character mode, and composed from known words in token mode.

The character CNN has convolutions over a word's spelling, highway layers, and usually a projection, which in models of
ELMoForManyLangs also reads the word's own embedding. It follows Peters et al. (2018) and Kim et al. (2015) as
implemented in bilm-tf. Matrices are as in the published file, y = x W + b. For the spelling x_1 .. x_C of a word,
embedded in rows of width c, and a filter K of width k:

    r = f(max over places p of sum over i < k of x_{p+i} K_i, plus b)     the largest response; f is relu or tanh
    y = g relu(r W_t + b_t) + (1 - g) r   with   g = sigmoid(r W_c + b_c)     each highway layer
    v = y W_p + b_p                                                       the word's vector, shape (P,)

In token mode, rows for words outside the vocabulary can be composed from the rows of the known words inside them.
The mean of these rows is a poor estimate: on average, the mean of all rows is closer to a word's row. So a linear map
from the mean to the row is learned from vocabulary words that contain other known words, as Lazaridou, Marelli,
Zamparelli and Baroni (2013) compose words from morphemes. Unknown words are rarer, and rarer words are more like their
parts, so a share of the mean is added to the map's output (docs/log.md, 2026-11-23).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from elmo_zh.reader.bilm import CharacterShape
from elmo_zh.reader.lstm import Floats
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# Words computed together: bounds the memory, and short words together need few places.
_CHUNK_WORDS = 256
# Number of words that the map is learned from. The most frequent words, at most a third of the vocabulary, are left
# out: they are least like words outside the vocabulary.
_WORDS_TO_LEARN_FROM = 20_000
_MOST_LEFT_OUT = 10_000
# Penalty of the ridge regression, as a share of the mean square of its inputs.
_PENALTY = 0.1
_SHARE_OF_MEAN = 0.3
# The last bits of a solver's result depend on the machine; rounding removes most of them.
_DECIMALS = 6


def encode_words(
    shape: CharacterShape, weights: Mapping[str, Floats], character_ids: NDArray[np.int64], words: NDArray[np.int64]
) -> Floats:
    """Return the vectors of W words, shape (W, P).

    `character_ids` are their spellings, shape (W, C), and `words` their vocabulary rows, shape (W,), which only models
    with embeddings of words use. `weights` have the names in `ModelWeights.arrays` without `bilm.character_cnn.`.
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


def parts_of(known: Vocabulary, words: Iterable[str]) -> dict[str, list[int]]:
    """Map each word to the rows of the known words in it (`Vocabulary.find_subwords`), omitting words without any."""
    rows = {word: known.encode(known.find_subwords(word)) for word in words}
    return {word: parts for word, parts in rows.items() if parts}


@dataclass(frozen=True, eq=False)
class Composition:
    """Computes a word's row from the rows of the known words inside it."""

    table: Floats  # The rows of the vocabulary, shape (V, P)
    centre: NDArray[np.float64]  # Their mean, shape (P,)
    # Maps the mean of the parts' rows to a word's row, both less the centre, shape (P, P). None if there was no word to
    # learn from; a word's row is then the mean of its parts' rows.
    matrix: NDArray[np.float64] | None

    @classmethod
    def learn(cls, table: Floats, vocabulary: Vocabulary) -> "Composition":
        """Learn the map, given a table with one row per token of the vocabulary, shape (V, P)."""
        words = vocabulary.tokens[len(SPECIALS) :]
        first = min(len(words) // 3, _MOST_LEFT_OUT)
        parts = parts_of(vocabulary, words[first : first + _WORDS_TO_LEARN_FROM])
        centre = table.mean(axis=0, dtype=np.float64)
        if not parts:
            return cls(table, centre, None)
        inputs = mean_rows(table, parts.values()) - centre
        targets = table[vocabulary.encode(list(parts))].astype(np.float64) - centre
        squares, unit = inputs.T @ inputs, np.eye(inputs.shape[1])
        solution = np.linalg.solve(squares + _PENALTY * np.diagonal(squares).mean() * unit, inputs.T @ targets)
        return cls(table, centre, solution.round(_DECIMALS) + _SHARE_OF_MEAN * unit)

    def row(self, parts: Sequence[int]) -> Floats:
        """Compose a word's row, float32, shape (P,), from the row numbers of the known words in it (at least one)."""
        mean = self.table[list(parts)].mean(axis=0, dtype=np.float64)
        if self.matrix is not None:
            mean = self.centre + (mean - self.centre) @ self.matrix
        return np.asarray(mean, np.float32)


def mean_rows(table: Floats, groups: Collection[Sequence[int]]) -> NDArray[np.float64]:
    """Return the mean of each group of rows of a table (V, P), shape (n, P)."""
    sizes = np.array([len(group) for group in groups])
    rows = np.fromiter((row for group in groups for row in group), np.int64)
    sums = np.add.reduceat(table[rows].astype(np.float64), np.concatenate([[0], np.cumsum(sizes)[:-1]]))
    return np.asarray(sums / sizes[:, None])
