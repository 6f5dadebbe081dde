"""What training from scratch starts from: scaled word vectors, and a softmax near the unigram model."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_trainings import SHAPE

from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.softmax import Softmax
from elmo_zh.training.initial_weights import initialise_model, scale_vectors, unigram_bias
from elmo_zh.word2vec import WordVectors

SMALLEST = replace(SHAPE, num_tokens=5, cell_dim=6, projection_dim=2, num_layers=1)


def test_the_bias_alone_gives_the_unigram_probabilities() -> None:
    softmax = Softmax(5, 2)
    with torch.no_grad():
        softmax.bias.copy_(unigram_bias([8, 4, 2, 1, 1]))
    nats = softmax.nats(torch.zeros(5, 2), torch.arange(5))
    assert nats.tolist() == pytest.approx([math.log(16 / count) for count in (8, 4, 2, 1, 1)], abs=1e-6)


def test_the_logs_have_mean_zero_and_a_missing_word_counts_half() -> None:
    bias = unigram_bias([4, 0])
    assert bias.tolist() == pytest.approx([math.log(8) / 2, -math.log(8) / 2])


def test_vectors_keep_their_direction_from_the_mean_and_get_one_size() -> None:
    # The mean is (1, 2); from there the vectors point to (3, 4), (-3, -4) and nowhere.
    vectors = np.array([[4, 6], [-2, -2], [1, 2]], np.float32)
    scaled = scale_vectors(vectors, 0.5)
    size = 0.5 * math.sqrt(2) / 5
    assert scaled.tolist() == pytest.approx(np.array([[3 * size, 4 * size], [-3 * size, -4 * size], [0, 0]]))
    assert scaled.dtype == np.float32


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_model_gets_the_vectors_and_the_bias(is_tied: bool) -> None:
    model, vectors = LanguageModel.build(SMALLEST, tie_softmax=is_tied), np.array([[1, 2], [3, 4]], np.float32)
    initialise_model(
        model, 1, WordVectors(rows=np.array([3, 4]), vectors=vectors), torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0])
    )
    assert model.bilm.token_table.weight[3:].tolist() == vectors.tolist()
    assert model.softmax.bias.tolist() == [5, 4, 3, 2, 1]
    initialise_model(model, 1, None)
    assert model.softmax.bias.tolist() == [0] * 5
