"""Batches for word2vec: the text's frequent words thinned out, a random window width each, negative samples."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.config import Word2vecConfig
from elmo_zh.vocabulary.vocabulary import END_ID

# Words that share negative samples, and how many they share. Fewer samples make a noisier gradient, more take longer.
BLOCK_WORDS = 64
BLOCK_NEGATIVES = 32
# Blocks of a part, which one thread computes. Text is cut there, so more parts lose more of the context.
_PART_BLOCKS = 4
_MOST_BATCH_WORDS = 2048
# A row's gradients within a batch all come from the same, slightly old vectors. Too many of them overshoot.
_MOST_ROW_UPDATES = 128
# Of Mikolov et al. 2013, and gensim's defaults.
_SUBSAMPLING = 1e-3
_NOISE_EXPONENT = 0.75


@dataclass(frozen=True)
class Part:
    """Part of a batch: consecutive words of the text, in G blocks of K.

    Attributes:
        word_ids: Rows of the words, int64, shape (G * K,); 0 in padding.
        sentence_numbers: Numbers that differ between neighbouring sentences, and for each padded place, int32, same
            shape.
        widths: How many words on either side are a word's context, from 1 to the window, int32, same shape.
        negative_ids: Rows of the negative samples of each block, int64, shape (G, M).
    """

    word_ids: Tensor
    sentence_numbers: Tensor
    widths: Tensor
    negative_ids: Tensor


class BatchSampler:
    """Draws the batches of a text from one random generator, so that the same text and seed give the same batches.

    Args:
        counts: Occurrences of each row in the text, 0 for rows that get no vector, shape (V,).
        config: Window and negative samples.
        generator: Source of all random numbers.
    """

    def __init__(self, counts: NDArray[np.int64], config: Word2vecConfig, generator: np.random.Generator) -> None:
        self._generator = generator
        self._window = config.window
        relative = counts / (_SUBSAMPLING * counts.sum())
        with np.errstate(divide="ignore"):
            kept = np.where(counts > 0, np.minimum(1, (np.sqrt(relative) + 1) / relative), 0)
        self._kept = kept.astype(np.float32)
        noise = counts**_NOISE_EXPONENT / (counts**_NOISE_EXPONENT).sum()
        self._noise = np.cumsum(noise)
        # Above 1 by rounding or below it, the last number must be out of reach.
        self._noise[np.flatnonzero(counts)[-1] :] = 1
        share = counts * kept / (counts * kept).sum()
        most_updates = float((share + config.negative * noise).max())
        num_blocks = max(1, int(min(_MOST_BATCH_WORDS, _MOST_ROW_UPDATES / most_updates)) // BLOCK_WORDS)
        self._part_blocks = min(_PART_BLOCKS, num_blocks)
        self._num_parts = num_blocks // self._part_blocks

    def batches(self, ids: NDArray[np.int32]) -> list[list[Part]]:
        """Return the batches of rows of words, END_ID after each sentence: each as its parts, all of one size.

        Rows without a vector are left out; the last part is padded.
        """
        sentence_numbers = np.cumsum(ids == END_ID, dtype=np.int32)
        is_kept = self._generator.random(len(ids), np.float32) < self._kept[ids]
        part_words = self._part_blocks * BLOCK_WORDS
        word_ids, sentence_numbers = ids[is_kept].astype(np.int64), sentence_numbers[is_kept]
        num_padded = -len(word_ids) % part_words
        word_ids = np.pad(word_ids, (0, num_padded))
        sentence_numbers = np.concatenate([sentence_numbers, np.arange(-num_padded, 0, dtype=np.int32)])
        widths = self._generator.integers(1, self._window + 1, len(word_ids), np.int32)
        draws = self._generator.random((len(word_ids) // BLOCK_WORDS, BLOCK_NEGATIVES))
        negative_ids = np.searchsorted(self._noise, draws, side="right")
        if not len(word_ids):
            return []
        arrays = (
            *(values.reshape(-1, part_words) for values in (word_ids, sentence_numbers, widths)),
            negative_ids.reshape(-1, self._part_blocks, BLOCK_NEGATIVES),
        )
        parts = [Part(*of_part) for of_part in zip(*map(torch.from_numpy, arrays), strict=True)]
        return [parts[start : start + self._num_parts] for start in range(0, len(parts), self._num_parts)]
