"""Exact and sampled softmax against plain formulas."""

import math

import numpy as np
import pytest
import torch

from elmo_zh.model.softmax import LogUniformSampler

WORDS, WIDTH, ROWS = 29, 5, 13


def test_draws_are_distinct_seeded_and_as_frequent_as_expected() -> None:
    sampler = LogUniformSampler(WORDS, 7)
    again = LogUniformSampler(WORDS, 7)
    assert torch.equal(sampler.draw(np.random.default_rng(1)).ids, again.draw(np.random.default_rng(1)).ids)
    counts, expected, num_trials = np.zeros(WORDS), np.zeros(WORDS), 4000
    generator = np.random.default_rng(2)
    for _ in range(num_trials):
        negatives = sampler.draw(generator)
        assert len(set(negatives.ids.tolist())) == 7
        counts[negatives.ids] += 1
        expected += np.exp(negatives.log_expected.numpy())
    np.testing.assert_allclose(counts / num_trials, expected / num_trials, atol=0.03)
    assert (np.diff(expected) < 0).all()


def test_probabilities_of_the_sampler() -> None:
    sampler = LogUniformSampler(WORDS, 7)
    single = np.exp(sampler.log_expected(1).numpy())
    np.testing.assert_allclose(
        single, [math.log((k + 2) / (k + 1)) / math.log(WORDS + 1) for k in range(WORDS)], rtol=1e-5
    )
    assert single.sum() == pytest.approx(1.0, rel=1e-5)


def test_more_negatives_than_words_are_cut_to_all_but_one() -> None:
    assert len(LogUniformSampler(5, 100).draw(np.random.default_rng(0)).ids) == 4
