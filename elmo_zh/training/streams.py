"""Endless streams of shuffled sentences, packed one after another, for training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.id_store import EncodedSentences
from elmo_zh.reader.lstm import mark_sentence

# Shuffling in two levels limits memory: spans of consecutive sentences are shuffled over the whole corpus, and single
# sentences within a pool of spans. For a billion sentences the order of the spans, computed anew for each pool, takes
# 125 MB.
_SPAN_SENTENCES = 64
_POOL_SPANS = 1024


@dataclass(frozen=True)
class StreamBatch:
    """Inputs and targets for one training step of both LMs over B streams."""

    inputs: Tensor  # Input ids that each LM reads, int64, shape (2, T, B)
    targets: Tensor  # Input ids that each LM has to predict, int64, shape (2, T, B)
    keep: Tensor  # 0 where a sentence starts, else 1, float32, shape (T, B, 1)


class ShuffledOrder:
    """A seeded random order of sentences for each epoch, computed pool by pool."""

    def __init__(self, num_sentences: int, seed: int) -> None:
        self._num_sentences, self._seed = num_sentences, seed
        self._num_spans = -(-num_sentences // _SPAN_SENTENCES)
        self.num_pools = -(-self._num_spans // _POOL_SPANS)

    def pool(self, epoch: int, pool: int) -> NDArray[np.int64]:
        """Return the numbers of the sentences in one pool of an epoch, in reading order; no two pools overlap."""
        spans = np.random.default_rng([self._seed, epoch]).permutation(self._num_spans)
        pool_spans = spans[pool * _POOL_SPANS : (pool + 1) * _POOL_SPANS]
        sentences = (pool_spans[:, None] * _SPAN_SENTENCES + np.arange(_SPAN_SENTENCES)).ravel()
        sentences = sentences[sentences < self._num_sentences]
        return np.random.default_rng([self._seed, epoch, pool]).permutation(sentences)


class PackedStreams:
    """Endless streams of shuffled sentences, packed one after another; their position can be saved and restored.

    The forward LM reads `<S> w1 .. wn` and predicts `w1 .. wn </S>`; the backward LM reads `</S> wn .. w1` and
    predicts `wn .. w1 <S>`. Both have the same sentences at the same positions, so `keep` serves both.

    Sentence lengths alone decide which sentence goes to which stream, so that each rank can track all streams and fill
    in only its own. A saved position covers all streams.
    """

    def __init__(
        self,
        sentences: EncodedSentences,
        batch_size: int,
        unroll_steps: int,
        seed: int,
        own_streams: range | None = None,
    ) -> None:
        """Start the streams; this rank's batches contain only `own_streams`, or all streams if None."""
        self._sentences = sentences
        self._unroll_steps = unroll_steps
        self._own_streams = range(batch_size) if own_streams is None else own_streams
        self._order = ShuffledOrder(len(sentences), seed)
        self._epoch, self._pool, self._next = 0, 0, 0
        self._upcoming = self._order.pool(0, 0)
        # Each stream's current sentence, and the number of its inputs already read.
        self._current = np.array([self._next_sentence() for _ in range(batch_size)], np.int64)
        self._position = np.zeros(batch_size, np.int64)

    def _next_sentence(self) -> int:
        if self._next == len(self._upcoming):
            self._next = 0
            self._pool += 1
            if self._pool == self._order.num_pools:
                self._epoch, self._pool = self._epoch + 1, 0
            self._upcoming = self._order.pool(self._epoch, self._pool)
        self._next += 1
        return int(self._upcoming[self._next - 1])

    def next_batch(self) -> StreamBatch:
        """Return the next T tokens of each of this rank's streams."""
        inputs = np.empty((2, self._unroll_steps, len(self._own_streams)), np.int64)
        targets = np.empty_like(inputs)
        keep = np.ones((self._unroll_steps, len(self._own_streams), 1), np.float32)
        for stream in range(len(self._current)):
            column = stream - self._own_streams.start
            for rows, sentence, place in self._iter_steps(stream):
                if stream not in self._own_streams:
                    continue
                marked = mark_sentence(self._sentences[sentence])
                for direction, sequence in enumerate((marked, marked[::-1])):
                    inputs[direction, rows, column] = sequence[place : place + rows.stop - rows.start]
                    targets[direction, rows, column] = sequence[place + 1 : place + 1 + rows.stop - rows.start]
                if place == 0:
                    keep[rows.start, column] = 0
        return StreamBatch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(keep))

    def _iter_steps(self, stream: int) -> Iterator[tuple[slice, int, int]]:
        """Advance a stream by T steps, yielding the batch rows it fills, their sentence, and where in it they start."""
        filled = 0
        while filled < self._unroll_steps:
            sentence, place = int(self._current[stream]), int(self._position[stream])
            # The predictions that are left in the sentence: its words and its end.
            left = len(self._sentences[sentence]) + 1 - place
            steps = min(left, self._unroll_steps - filled)
            yield slice(filled, filled + steps), sentence, place
            filled += steps
            self._position[stream] += steps
            if steps == left:
                self._current[stream] = self._next_sentence()
                self._position[stream] = 0

    def save_position(self) -> dict[str, Any]:
        """Return the positions of all streams as JSON values."""
        return {
            "epoch": self._epoch,
            "pool": self._pool,
            "next": self._next,
            "current": self._current.tolist(),
            "position": self._position.tolist(),
        }

    def restore_position(self, saved: dict[str, Any]) -> None:
        """Restore positions returned by `save_position`."""
        self._epoch, self._pool, self._next = saved["epoch"], saved["pool"], saved["next"]
        self._upcoming = self._order.pool(self._epoch, self._pool)
        self._current = np.array(saved["current"], np.int64)
        self._position = np.array(saved["position"], np.int64)
