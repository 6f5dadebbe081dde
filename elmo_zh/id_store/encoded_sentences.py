"""Read sentences as word ids from shards that are opened on demand."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.lexicon import Lexicon

# A memory map keeps its file open. So at most one shard is kept open for every five files that a process may open, and
# the least recently used ones are closed; at three files a shard this leaves room for everything else.
_OPEN_FILES_PER_SHARD = 5


@dataclass(frozen=True)
class ShardArrays:
    """The ids of one shard, and the bounds of its sentences and documents."""

    ids: NDArray[Any]  # Ids of all sentences, concatenated, shape (num_tokens,)
    offsets: NDArray[np.uint64]  # Start of each sentence, and the end of the last, shape (num_sentences + 1,)
    # First sentence of each document, and the end of the last, shape (num_documents + 1,).
    documents: NDArray[np.uint64]


def _open_file_limit() -> int:
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class EncodedSentences:
    """Sentences as word ids without <S> and </S>, in shards that are opened on demand."""

    def __init__(self, counts: Sequence[Mapping[str, int]], open_shard: Callable[[int], ShardArrays]) -> None:
        """Describe the shards by their numbers of `tokens`, `sentences` and, for training text, `documents`."""
        # Number of the first sentence, and of the first document, of each shard, and the totals.
        self._sentence_starts = [0, *accumulate(shard["sentences"] for shard in counts)]
        self._document_starts = [0, *accumulate(shard.get("documents", 0) for shard in counts)]
        self.num_tokens = sum(shard["tokens"] for shard in counts)
        max_open = max(1, _open_file_limit() // _OPEN_FILES_PER_SHARD)
        self._shard = lru_cache(max_open)(open_shard)

    @classmethod
    def in_memory(cls, ids: NDArray[Any], offsets: NDArray[np.uint64]) -> "EncodedSentences":
        """Use arrays in memory as the only shard; all sentences are one document."""
        return cls(*_only_shard(ids, offsets))

    def __len__(self) -> int:
        return self._sentence_starts[-1]

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Return the ids of one sentence."""
        shard, own = self._find(index)
        return shard.ids[int(shard.offsets[own]) : int(shard.offsets[own + 1])]

    def length(self, index: int) -> int:
        """Return the number of words in one sentence."""
        shard, own = self._find(index)
        return int(shard.offsets[own + 1]) - int(shard.offsets[own])

    def _find(self, index: int) -> tuple[ShardArrays, int]:
        number = bisect_right(self._sentence_starts, index) - 1
        return self._shard(number), index - self._sentence_starts[number]

    def document(self, index: int) -> range:
        """Return the sentence numbers of one document."""
        number = bisect_right(self._document_starts, index) - 1
        first, own = self._sentence_starts[number], index - self._document_starts[number]
        bounds = self._shard(number).documents
        return range(first + int(bounds[own]), first + int(bounds[own + 1]))

    def lengths(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of words in each chosen sentence; `chosen` may be in any order."""
        order = np.argsort(chosen, kind="stable")
        lengths = np.empty(len(chosen), np.int64)
        lengths[order] = np.concatenate([np.diff(spans).ravel() for _, spans in self._spans(chosen[order])])
        return lengths

    def read(self, chosen: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the concatenated ids of sentences, given in ascending order, and the length of each sentence."""
        read, lengths = [], []
        for ids, spans in self._spans(chosen):
            own = np.diff(spans).ravel()
            within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
            read.append(ids[np.repeat(spans[:, 0], own) + within])
            lengths.append(own)
        return np.concatenate(read), np.concatenate(lengths)

    def _spans(self, chosen: NDArray[np.int64]) -> Sequence[tuple[NDArray[Any], NDArray[np.int64]]]:
        """Return each shard's ids, with the start and end there of each chosen sentence; `chosen` is ascending."""
        spans = [(np.zeros(0, np.uint16), np.zeros((0, 2), np.int64))]
        bounds = np.searchsorted(chosen, self._sentence_starts)
        for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
            if begin < end:
                shard = self._shard(number)
                own = chosen[begin:end] - self._sentence_starts[number]
                spans.append((shard.ids, np.stack([shard.offsets[own], shard.offsets[own + 1]], 1).astype(np.int64)))
        return spans

    @property
    def num_documents(self) -> int:
        """Number of non-empty documents."""
        return self._document_starts[-1]

    @property
    def num_predictions(self) -> int:
        """Number of predictions in one direction: one for each word and each sentence end."""
        return self.num_tokens + len(self)


def _only_shard(
    ids: NDArray[Any], offsets: NDArray[np.uint64]
) -> tuple[list[dict[str, int]], Callable[[int], ShardArrays]]:
    documents = np.unique([0, len(offsets) - 1]).astype(np.uint64)
    counts = {"tokens": len(ids), "sentences": len(offsets) - 1, "documents": len(documents) - 1}
    return [counts], lambda _: ShardArrays(ids, offsets, documents)


class HeldoutSentences(EncodedSentences):
    """Held-out sentences, each with its number of characters and the cost in nats of spelling its unknown words."""

    def __init__(
        self,
        counts: Sequence[Mapping[str, int]],
        open_shard: Callable[[int], ShardArrays],
        characters: NDArray[np.uint32],
        spelling_nats: NDArray[np.float64],
    ) -> None:
        super().__init__(counts, open_shard)
        self.characters, self.spelling_nats = characters, spelling_nats

    @classmethod
    def measured(
        cls,
        ids: NDArray[Any],
        offsets: NDArray[np.uint64],
        characters: NDArray[np.uint32],
        spelling_nats: NDArray[np.float64],
    ) -> "HeldoutSentences":
        """Use arrays in memory as the only shard."""
        return cls(*_only_shard(ids, offsets), characters, spelling_nats)


@dataclass(frozen=True)
class IdStore:
    """The training and held-out sentences of a run, and the lexicon that their ids refer to."""

    train: EncodedSentences
    heldout: HeldoutSentences
    lexicon: Lexicon
