"""Endless streams of shuffled sentences, packed one after another, for training."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.id_store.encoded_sentences import EncodedSentences
from elmo_zh.model.batches import mark_sentence

# Shuffling in two levels keeps memory flat: units move as blocks over the whole corpus, and singly within a pool. Of a
# billion sentences the blocks' order, made for a pool at a time, takes 125 MB.
_BLOCK_UNITS = 64


_POOL_BLOCKS = 1024


@dataclass(frozen=True)
class StreamBatch:
    """One step of both LMs over B streams.

    Attributes:
        inputs: What each LM reads, input ids, int64, shape (2, T, B).
        targets: What each has to predict, as input ids too, int64, shape (2, T, B).
        keep: 0 where a sentence starts, else 1, float32, shape (T, B, 1).
    """

    inputs: Tensor
    targets: Tensor
    keep: Tensor


class ShuffledOrder:
    """A seeded order of units, sentences or documents, for each epoch, computed pool by pool."""

    def __init__(self, num_units: int, seed: int) -> None:
        self._num_units, self._seed = num_units, seed
        self._num_blocks = -(-num_units // _BLOCK_UNITS)
        self.num_pools = -(-self._num_blocks // _POOL_BLOCKS)

    def pool(self, epoch: int, pool: int) -> NDArray[np.int64]:
        """Return the units of one pool of an epoch in order; all pools together are all units."""
        blocks = np.random.default_rng([self._seed, epoch]).permutation(self._num_blocks)
        mine = blocks[pool * _POOL_BLOCKS : (pool + 1) * _POOL_BLOCKS]
        units = (mine[:, None] * _BLOCK_UNITS + np.arange(_BLOCK_UNITS)).ravel()
        units = units[units < self._num_units]
        return np.random.default_rng([self._seed, epoch, pool]).permutation(units)


class PackedStreams:
    """Endless streams of shuffled sentences, packed one after another; its position can be saved and restored.

    The forward LM reads `<S> w1 .. wn` and predicts `w1 .. wn </S>`; the backward LM reads `</S> wn .. w1` and
    predicts `wn .. w1 <S>`. Both streams hold the same sentences at the same places, so `keep` serves both.

    Where whole documents are shuffled, a stream that takes one reads all its sentences in order.

    Which sentence comes in which stream follows from lengths alone. So where several processes share the streams, each
    can keep up with all of them, and fill in only its own; positions are those of all streams, whoever saves them.
    """

    def __init__(
        self,
        sentences: EncodedSentences,
        batch_size: int,
        unroll_steps: int,
        seed: int,
        share: range | None = None,
        *,
        by_document: bool = False,
    ) -> None:
        """Start the streams.

        Args:
            sentences: What they are made of.
            batch_size: Streams of all processes (B).
            unroll_steps: Tokens of each stream in one batch (T).
            seed: Of the order.
            share: The streams that batches hold; None for all.
            by_document: Shuffle documents instead of sentences.
        """
        self._sentences = sentences
        self._unroll_steps = unroll_steps
        self._share = range(batch_size) if share is None else share
        self._by_document = by_document
        self._order = ShuffledOrder(sentences.num_documents if by_document else len(sentences), seed)
        self._epoch, self._pool, self._next = 0, 0, 0
        self._upcoming = self._order.pool(0, 0)
        # The sentence that each stream is in, how many of its inputs have been read, and where its unit ends.
        self._current = np.zeros(batch_size, np.int64)
        self._position = np.zeros(batch_size, np.int64)
        self._end = np.zeros(batch_size, np.int64)
        for stream in range(batch_size):
            self._begin_unit(stream)

    def _begin_unit(self, stream: int) -> None:
        """Take a stream to the first sentence of the next unit."""
        unit = self._take_unit()
        sentences = self._sentences.document(unit) if self._by_document else range(unit, unit + 1)
        self._current[stream], self._end[stream] = sentences.start, sentences.stop

    def _take_unit(self) -> int:
        if self._next == len(self._upcoming):
            self._next = 0
            self._pool += 1
            if self._pool == self._order.num_pools:
                self._epoch, self._pool = self._epoch + 1, 0
            self._upcoming = self._order.pool(self._epoch, self._pool)
        self._next += 1
        return int(self._upcoming[self._next - 1])

    def next_batch(self) -> StreamBatch:
        """Return the next T tokens of every stream of the share."""
        inputs = np.empty((2, self._unroll_steps, len(self._share)), np.int64)
        targets = np.empty_like(inputs)
        keep = np.ones((self._unroll_steps, len(self._share), 1), np.float32)
        for stream in range(len(self._current)):
            if stream in self._share:
                place = stream - self._share.start
                self._fill_stream(stream, inputs[:, :, place], targets[:, :, place], keep[:, place, 0])
            else:
                self._pass_over(stream)
        return StreamBatch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(keep))

    def _pass_over(self, stream: int) -> None:
        """Move a stream on as `_fill_stream` does, without reading it."""
        left = self._unroll_steps
        while left > 0:
            steps = min(left, self._num_steps(int(self._current[stream])) - self._position[stream])
            left -= steps
            self._advance(stream, steps)

    def _num_steps(self, sentence: int) -> int:
        """Return a sentence's predictions: its words and its end."""
        return self._sentences.length(sentence) + 1

    def _advance(self, stream: int, steps: int) -> None:
        self._position[stream] += steps
        if self._position[stream] == self._num_steps(int(self._current[stream])):
            self._current[stream] += 1
            self._position[stream] = 0
            if self._current[stream] == self._end[stream]:
                self._begin_unit(stream)

    def _fill_stream(
        self, stream: int, inputs: NDArray[np.int64], targets: NDArray[np.int64], keep: NDArray[np.float32]
    ) -> None:
        filled = 0
        while filled < self._unroll_steps:
            marked = mark_sentence(self._sentences[int(self._current[stream])])
            position = self._position[stream]
            steps = min(self._unroll_steps - filled, len(marked) - 1 - position)
            place = slice(filled, filled + steps)
            for direction, sequence in enumerate((marked, marked[::-1])):
                inputs[direction, place] = sequence[position : position + steps]
                targets[direction, place] = sequence[position + 1 : position + 1 + steps]
            if position == 0:
                keep[filled] = 0
            filled += steps
            self._advance(stream, steps)

    def save_position(self) -> dict[str, Any]:
        """Return where the streams stand, as plain numbers and lists."""
        return {
            "epoch": self._epoch,
            "pool": self._pool,
            "next": self._next,
            "current": self._current.tolist(),
            "position": self._position.tolist(),
            **({"end": self._end.tolist()} if self._by_document else {}),
        }

    def restore_position(self, saved: dict[str, Any]) -> None:
        """Go back to where `save_position` was called."""
        self._epoch, self._pool, self._next = saved["epoch"], saved["pool"], saved["next"]
        self._upcoming = self._order.pool(self._epoch, self._pool)
        self._current = np.array(saved["current"], np.int64)
        self._position = np.array(saved["position"], np.int64)
        # Else each stream's unit is the sentence that it is in.
        self._end = np.array(saved["end"], np.int64) if self._by_document else self._current + 1
