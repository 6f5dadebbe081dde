"""Packed streams worked out by hand, and what their order and shares must keep."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from training.test_baselines import encoded

from elmo_zh.id_store import EncodedSentences
from elmo_zh.training import streams as module
from elmo_zh.training.streams import PackedStreams, ShuffledOrder, StreamBatch


def distinct_sentences(lengths: Sequence[int]) -> list[list[int]]:
    """Sentences whose first word tells which they are; empty ones cannot, so they get one word."""
    return [[3 + number, *range(101, 101 + max(0, length - 1))] for number, length in enumerate(lengths)]


def small_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SPAN_SENTENCES", 3)
    monkeypatch.setattr(module, "_POOL_SPANS", 2)


def same(one: StreamBatch, other: StreamBatch) -> bool:
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("inputs", "targets", "keep"))


def read(packed: PackedStreams, num_batches: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and targets (2, steps, B) and keep (steps, B) of many batches one after another."""
    read = [packed.next_batch() for _ in range(num_batches)]
    inputs, targets = (torch.cat([getattr(b, name) for b in read], dim=1) for name in ("inputs", "targets"))
    return inputs.numpy(), targets.numpy(), torch.cat([b.keep for b in read])[:, :, 0].numpy()


def whole_sentences(inputs: np.ndarray, targets: np.ndarray, keep: np.ndarray) -> list[list[int]]:
    """The sentences of one stream, checked place by place; the last, which may be cut off, is left out."""
    starts = np.flatnonzero(keep == 0).tolist()
    assert starts[0] == 0
    found = []
    for start, end in pairwise(starts):
        words = targets[0, start : end - 1].tolist()
        assert inputs[0, start:end].tolist() == [0, *words]
        assert targets[0, start:end].tolist() == [*words, 1]
        assert inputs[1, start:end].tolist() == [1, *words[::-1]]
        assert targets[1, start:end].tolist() == [*words[::-1], 0]
        found.append(words)
    return found


def test_the_order_of_sentences_is_that_of_the_first_version() -> None:
    """So that a training goes on where it was; computed by the code of the first version."""
    order = ShuffledOrder(150_001, 7)
    digest = hashlib.sha256()
    for epoch in (0, 5):
        for pool in range(order.num_pools):
            digest.update(order.pool(epoch, pool).astype("<i8").tobytes())
    assert digest.hexdigest() == "1628f3b4906d67b30e58511d4119dc40c53112db020227976093f4895c996e99"


LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=29)


def stored(lengths: Sequence[int], batch_size: int, unroll_steps: int, seed: int = 5) -> PackedStreams:
    sentences = distinct_sentences(lengths)
    ids = np.array([word for words in sentences for word in words], np.uint32)
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.uint64)
    return PackedStreams(EncodedSentences(ids, offsets), batch_size, unroll_steps, seed)


@settings(deadline=None, max_examples=101)
@given(LENGTHS, st.integers(1, 5), st.integers(1, 13), st.integers(0, 3))
def test_sentences_are_read_whole_and_each_comes_once_an_epoch(
    lengths: list[int], batch_size: int, unroll_steps: int, seed: int
) -> None:
    sentences = distinct_sentences(lengths)
    with pytest.MonkeyPatch.context() as patch:
        small_pools(patch)
        packed = stored(lengths, batch_size, unroll_steps, seed)
        num_steps = 3 * sum(len(words) + 1 for words in sentences)
        inputs, targets, keep = read(packed, -(-num_steps // (unroll_steps * batch_size)) + 2)
        position = packed.save_position()
    taken: Counter[int] = Counter()
    for stream in range(batch_size):
        found = whole_sentences(inputs[:, :, stream], targets[:, :, stream], keep[:, stream])
        assert all(words == sentences[words[0] - 3] for words in found)
        last = int(np.flatnonzero(keep[:, stream] == 0)[-1])
        taken.update(words[0] - 3 for words in found)
        taken.update([int(targets[0, last, stream]) - 3])
        taken.update(position["current"][stream : stream + 1] if position["position"][stream] == 0 else [])
    epochs, rest = divmod(taken.total(), len(sentences))
    assert epochs >= 1
    assert sorted(taken.values()) == [epochs] * (len(sentences) - rest) + [epochs + 1] * rest


@settings(deadline=None, max_examples=101)
@given(LENGTHS, st.integers(1, 5), st.integers(1, 13), st.integers(0, 11))
def test_a_saved_position_goes_on_identically(
    lengths: list[int], batch_size: int, unroll_steps: int, num_before: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_pools(patch)
        packed = stored(lengths, batch_size, unroll_steps)
        for _ in range(num_before):
            packed.next_batch()
        position = json.loads(json.dumps(packed.save_position()))
        expected = [packed.next_batch() for _ in range(7)]
        for restored in (stored(lengths, batch_size, unroll_steps), packed):
            restored.restore_position(position)
            assert restored.save_position() == position
            assert all(same(restored.next_batch(), batch) for batch in expected)


def test_sentences_without_words_are_predicted_to_end() -> None:
    batch = PackedStreams(encoded([[]]), batch_size=1, unroll_steps=3, seed=5).next_batch()
    assert batch.inputs[:, :, 0].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert batch.targets[:, :, 0].tolist() == [[1, 1, 1], [0, 0, 0]]
    assert batch.keep[:, 0, 0].tolist() == [0, 0, 0]
