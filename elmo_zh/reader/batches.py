"""Batches of whole sentences, packed by time step so that no step computes padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID

Ids = NDArray[np.int64]


def mark_sentence(ids: Sequence[int] | NDArray[Any]) -> Ids:
    """Return a sentence's ids with <S> before and </S> after them, int64, shape (n + 2,)."""
    marked = np.empty(len(ids) + 2, np.int64)
    marked[0], marked[1:-1], marked[-1] = BEGIN_ID, ids, END_ID
    return marked


def iter_length_sorted(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Yield the indexes of the sentences in each batch, longest first.

    A batch has at most `batch_tokens` tokens, counting padding; a longer sentence has a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


@dataclass(frozen=True, eq=False)
class PackedSentences:
    """B sentences, longest first, as N rows: the first token of every sentence, then the second tokens, and so on."""

    counts: list[int]  # Number of sentences that have a token at each step; they are the first ones
    starts: Ids  # The first row of each step, shape (T,)
    lengths: Ids  # Tokens of each sentence, shape (B,)

    @classmethod
    def of_lengths(cls, lengths: Sequence[int]) -> "PackedSentences":
        """Return the packing of sentences with these lengths, which must not rise."""
        array = np.array(lengths, np.int64)
        assert (np.diff(array) <= 0).all(), "the longest sentence comes first"
        counts = np.searchsorted(-array, -np.arange(array[0]), side="left")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        return cls(counts.tolist(), starts, array)

    def pack(self, sentences: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the values of all sentences, one per token, as rows, shape (N,)."""
        packed = np.empty(int(self.lengths.sum()), np.asarray(sentences[0]).dtype)
        for rows, values in zip(self.rows(), sentences, strict=True):
            packed[rows] = values
        return packed

    def rows(self) -> Iterator[Ids]:
        """Yield the rows of each sentence's tokens, in order."""
        for number, length in enumerate(self.lengths.tolist()):
            yield self.starts[:length] + number


class BothWays(NamedTuple):
    """Sentences of word numbers, marks included, packed for both LMs."""

    counts: list[int]  # Number of sentences that have a token at each step
    words: Ids  # The word that each row reads, for the forward LM and for the backward LM, shape (2, N)
    places: Ids  # The row of each token but the marks, sentence by sentence, for both LMs, shape (2, M)


def pack_both_ways(sentences: Sequence[Ids]) -> BothWays:
    """Pack sentences of word numbers, longest first, with marks at both ends."""
    packed = PackedSentences.of_lengths([len(sentence) for sentence in sentences])
    words = np.stack([packed.pack(sentences), packed.pack([sentence[::-1] for sentence in sentences])])
    places = np.concatenate([np.stack([rows[1:-1], rows[-2:0:-1]]) for rows in packed.rows()], axis=1)
    return BothWays(packed.counts, words, places)
