"""One batch's update of word2vec, against the derivative of a loss summed word by word."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from elmo_zh.config import Word2vecConfig
from elmo_zh.vocabulary.vocabulary import END_ID
from elmo_zh.word2vec import negative_sampling
from elmo_zh.word2vec.negative_sampling import Batch, BatchSampler, NegativeSampling

NUM_ROWS, DIMENSION, WINDOW, NEGATIVE = 13, 7, 3, 5
NUM_BLOCKS, NUM_WORDS, NUM_NEGATIVES = 3, 11, 2
RATE = 0.17

Tables = tuple[NDArray[np.float64], NDArray[np.float64]]


def drawn_batch() -> Batch:
    """Sentences of 1 to 9 words, the last five places padded."""
    generator = np.random.default_rng(3)
    size = NUM_BLOCKS * NUM_WORDS
    sentences = np.repeat(np.arange(size), generator.integers(1, 10, size))[:size].astype(np.int32)
    words = generator.integers(0, NUM_ROWS, size)
    sentences[-5:], words[-5:] = np.arange(-5, 0), 0
    widths = generator.integers(1, WINDOW + 1, size, np.int32)
    blocks = (torch.from_numpy(values.reshape(NUM_BLOCKS, NUM_WORDS)) for values in (words, sentences, widths))
    return Batch(
        *blocks,
        negative_ids=torch.from_numpy(generator.integers(0, NUM_ROWS, (NUM_BLOCKS, NUM_NEGATIVES))),
    )


def contexts(batch: Batch) -> Iterator[tuple[int, list[int]]]:
    """Yield each place of a batch with those of its context, which are in its block."""
    sentences, widths = batch.sentence_numbers.flatten().tolist(), batch.widths.flatten().tolist()
    for place, width in enumerate(widths):
        block = place // NUM_WORDS * NUM_WORDS
        around = range(max(block, place - width), min(block + NUM_WORDS, place + width + 1))
        yield place, [other for other in around if other != place and sentences[other] == sentences[place]]


def predictions(batch: Batch, place: int, sampled_at: int) -> Iterator[tuple[int, float, float]]:
    """Yield the output row, label and weight of each prediction of the word at a place.

    The samples are those of another place's block: with CBOW of the same place, with skip-gram of the context word's.
    """
    words = batch.word_ids.flatten().tolist()
    yield words[place], 1.0, 1.0
    for row in batch.negative_ids[sampled_at // NUM_WORDS].tolist():
        if row != words[place]:
            yield row, 0.0, NEGATIVE / NUM_NEGATIVES


def groups(algorithm: str, around: list[int]) -> list[list[int]]:
    """Return the places whose mean vector makes a prediction."""
    if algorithm == "skipgram":
        return [[place] for place in around]
    return [around] if around else []


def loss(algorithm: str, inputs: Tensor, outputs: Tensor, batch: Batch) -> Tensor:
    """The loss; as in word2vec.c, each vector of CBOW's mean has the whole gradient of the mean."""
    words, total = batch.word_ids.flatten().tolist(), (inputs.sum() + outputs.sum()) * 0
    for place, around in contexts(batch):
        for group in groups(algorithm, around):
            vectors = inputs[[words[other] for other in group]]
            vector = vectors.mean(0).detach() + (vectors - vectors.detach()).sum(0)
            for row, label, weight in predictions(batch, place, place if algorithm == "cbow" else group[0]):
                score = vector @ outputs[row]
                total = total + weight * softplus(-score if label else score)
    return total


def gradients(algorithm: str, tables: Tables, batch: Batch) -> list[NDArray[np.float64]]:
    inputs, outputs = (torch.from_numpy(table).requires_grad_() for table in tables)
    found = torch.autograd.grad(loss(algorithm, inputs, outputs, batch), [inputs, outputs])
    return [gradient.numpy() for gradient in found]


def drawn_tables() -> Tables:
    generator = np.random.default_rng(5)
    return generator.normal(0, 0.7, (NUM_ROWS, DIMENSION)), generator.normal(0, 0.7, (NUM_ROWS, DIMENSION))


@pytest.mark.parametrize("algorithm", ["cbow", "skipgram"])
def test_an_update_is_a_step_along_the_gradients(algorithm: str) -> None:
    tables, batch = drawn_tables(), drawn_batch()
    model = NegativeSampling(torch.tensor(tables[0], dtype=torch.float32), NEGATIVE)
    model.outputs.copy_(torch.tensor(tables[1]))
    (model.train_cbow if algorithm == "cbow" else model.train_skipgram)(batch, RATE)
    for trained, table, step in zip(
        (model.inputs, model.outputs), tables, gradients(algorithm, tables, batch), strict=True
    ):
        np.testing.assert_allclose(trained.numpy(), table - RATE * step, rtol=1e-4, atol=2e-5)


def drawn(ids: list[int], counts: list[int]) -> list[Batch]:
    sampler = BatchSampler(np.array(counts), Word2vecConfig(), np.random.default_rng(7))
    return list(sampler.batches(np.array(ids, np.int32)))


def test_words_are_in_order_and_sentences_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negative_sampling, "_SUBSAMPLING", 1.0)  # keeps all words
    ids = [3, 2, 4, END_ID, 5, END_ID, 4, 3, END_ID]
    (batch,) = drawn(ids, [0, 0, 0, 2, 2, 1])
    assert batch.word_ids[0, :6].tolist() == [3, 4, 5, 4, 3, 0]
    assert batch.sentence_numbers[0, :5].tolist() == [0, 0, 1, 2, 2]
    padding = batch.sentence_numbers[0, 5:].tolist()
    assert len({*padding}) == len(padding)
    assert max(padding) < 0


def test_rates_of_words_widths_and_negative_samples() -> None:
    counts = np.array([0, 0, 0, 9000, 600, 400])
    ids = np.random.default_rng(1).permutation(np.repeat(np.arange(6), counts))
    config = Word2vecConfig(window=4)
    sampler = BatchSampler(counts, config, np.random.default_rng(7))
    found = [batch for _ in range(300) for batch in sampler.batches(ids.astype(np.int32))]
    words = np.bincount(torch.cat([batch.word_ids.flatten() for batch in found]).numpy(), minlength=6)[3:] / 300
    relative = counts[3:] / (1e-3 * counts.sum())
    np.testing.assert_allclose(words, counts[3:] * (np.sqrt(relative) + 1) / relative, rtol=0.05)
    widths = np.bincount(torch.cat([batch.widths.flatten() for batch in found]).numpy())
    np.testing.assert_allclose(widths[1:] / widths.sum(), [0.25] * 4, rtol=0.05)
    samples = np.bincount(torch.cat([batch.negative_ids.ravel() for batch in found]).numpy(), minlength=6)
    noise = counts**0.75 / (counts**0.75).sum()
    np.testing.assert_allclose(samples / samples.sum(), noise, rtol=0.05)


def test_a_batch_is_small_where_few_words_take_most_updates() -> None:
    many = drawn([3] * 9999, [0, 0, 0, *[1000] * 5000])
    few = drawn([3] * 9999, [0, 0, 0, *[1000] * 50])
    assert many[0].word_ids.numel() == 2048
    assert 128 <= few[0].word_ids.numel() < 2048


def test_a_chunk_without_words_has_no_batches() -> None:
    assert drawn([2, END_ID], [0, 0, 0, 5]) == []
