"""Sentences of ids, read from shards as they are asked for."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.lexicon import Lexicon

# A memory map holds its file open. So shards that were not used for long are closed where there are more of them than
# a fifth of the files that a process may have open; three files a shard leave room for everything else.
_LIMIT_SHARE = 5


@dataclass(frozen=True)
class ShardArrays:
    """The arrays of one shard.

    Attributes:
        ids: All its sentences one after another, shape (num_tokens,).
        offsets: Where each begins, and the end, shape (num_sentences + 1,).
        documents: The first sentence of each document, and the end, shape (num_documents + 1,).
    """

    ids: NDArray[Any]
    offsets: NDArray[np.uint64]
    documents: NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class ShardSize:
    """What one shard holds."""

    tokens: int
    sentences: int
    documents: int


def _open_file_limit() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ImportError:
        return 512  # of Windows' C library
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class EncodedSentences:
    """Sentences as word ids, in shards that are opened when they are asked for."""

    def __init__(self, sizes: Sequence[ShardSize], open_shard: Callable[[int], ShardArrays]) -> None:
        """Take shards.

        Args:
            sizes: Of each shard.
            open_shard: Returns the arrays of a shard, given its number.
        """
        # The number of the first sentence, and document, of each shard; one more, the number of all.
        self._sentence_starts = [0, *accumulate(size.sentences for size in sizes)]
        self._document_starts = [0, *accumulate(size.documents for size in sizes)]
        self._num_tokens = sum(size.tokens for size in sizes)
        most_open = max(1, _open_file_limit() // _LIMIT_SHARE)
        self._shard = lru_cache(most_open)(open_shard)

    @classmethod
    def in_memory(
        cls, ids: NDArray[Any], offsets: NDArray[np.uint64], documents: Sequence[int] | None = None
    ) -> "EncodedSentences":
        """Take one shard's arrays as they are; without `documents` all is one document."""
        shard, size = _memory_shard(ids, offsets, documents)
        return cls([size], lambda _: shard)

    def __len__(self) -> int:
        return self._sentence_starts[-1]

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return the ids of one sentence."""
        shard, own = self._find(index)
        return shard.ids[int(shard.offsets[own]) : int(shard.offsets[own + 1])]

    def length(self, index: int) -> int:
        """Return the number of words of one sentence."""
        shard, own = self._find(index)
        return int(shard.offsets[own + 1]) - int(shard.offsets[own])

    def _find(self, index: int) -> tuple[ShardArrays, int]:
        """Return a sentence's shard and its number there."""
        number = bisect_right(self._sentence_starts, index) - 1
        return self._shard(number), index - self._sentence_starts[number]

    def document(self, index: int) -> range:
        """Return the sentences of one document."""
        number = bisect_right(self._document_starts, index) - 1
        first, own = self._sentence_starts[number], index - self._document_starts[number]
        bounds = self._shard(number).documents
        return range(first + int(bounds[own]), first + int(bounds[own + 1]))

    def lengths(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of words of many sentences, in any order."""
        order = np.argsort(chosen, kind="stable")
        lengths = np.empty(len(chosen), np.int64)
        lengths[order] = np.concatenate([np.diff(spans).ravel() for _, spans in self._spans(chosen[order])])
        return lengths

    def read(self, chosen: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the ids of many sentences, which have rising numbers, one after another, and the length of each."""
        read, lengths = [], []
        for ids, spans in self._spans(chosen):
            own = np.diff(spans).ravel()
            within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
            read.append(ids[np.repeat(spans[:, 0], own) + within])
            lengths.append(own)
        return np.concatenate(read), np.concatenate(lengths)

    def _spans(self, chosen: NDArray[np.int64]) -> Sequence[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Return for sentences with rising numbers, shard by shard, its ids and where each begins and ends in them."""
        found = [(np.zeros(0, np.uint16), np.zeros((0, 2), np.int64))]
        places = np.searchsorted(chosen, self._sentence_starts)
        for number, (begin, end) in enumerate(pairwise(places.tolist())):
            if begin < end:
                shard = self._shard(number)
                own = chosen[begin:end] - self._sentence_starts[number]
                found.append((shard.ids, np.stack([shard.offsets[own], shard.offsets[own + 1]], 1).astype(np.int64)))
        return found

    @property
    def num_documents(self) -> int:
        """Documents, none of them empty."""
        return self._document_starts[-1]

    @property
    def num_tokens(self) -> int:
        """Words in all sentences, without <S> and </S>."""
        return self._num_tokens

    @property
    def num_predictions(self) -> int:
        """Predictions of one direction: each word and each sentence end."""
        return self.num_tokens + len(self)


def _memory_shard(
    ids: NDArray[Any], offsets: NDArray[np.uint64], documents: Sequence[int] | None = None
) -> tuple[ShardArrays, ShardSize]:
    num_sentences = len(offsets) - 1
    bounds = np.array(([0, num_sentences] if num_sentences else [0]) if documents is None else documents, np.uint64)
    size = ShardSize(tokens=len(ids), sentences=num_sentences, documents=len(bounds) - 1)
    return ShardArrays(ids, offsets, bounds), size


class HeldoutSentences(EncodedSentences):
    """Held-out sentences with what bits per character needs.

    Attributes:
        characters: Characters of each sentence's words, shape (num_sentences,).
        spelling_nats: Cost of spelling each sentence's unknown words, shape (num_sentences,).
    """

    def __init__(
        self,
        sizes: Sequence[ShardSize],
        open_shard: Callable[[int], ShardArrays],
        characters: NDArray[np.uint32],
        spelling_nats: NDArray[np.float64],
    ) -> None:
        super().__init__(sizes, open_shard)
        self.characters, self.spelling_nats = characters, spelling_nats

    @classmethod
    def measured(
        cls,
        ids: NDArray[Any],
        offsets: NDArray[np.uint64],
        characters: NDArray[np.uint32],
        spelling_nats: NDArray[np.float64],
    ) -> "HeldoutSentences":
        """Take one shard's arrays as they are."""
        shard, size = _memory_shard(ids, offsets)
        return cls([size], lambda _: shard, characters, spelling_nats)


@dataclass(frozen=True)
class IdStore:
    """The training and held-out sentences of a run, and what their ids stand for."""

    train: EncodedSentences
    heldout: HeldoutSentences
    lexicon: Lexicon
