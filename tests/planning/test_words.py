"""Rows and coverage of the training text."""

import random
from collections import Counter
from statistics import fmean

import pytest

from elmo_zh.config import VocabConfig
from elmo_zh.planning.words import forecast_words

TEXT = Counter({"的": 8, "山": 2, "水": 1})


def test_of_a_corpus_that_was_read_and_trained_on_as_a_whole() -> None:
    found = forecast_words([TEXT], 11, 1.0, VocabConfig(size=100, min_count=2), is_all=True)
    assert found.distinct.value == 3
    assert found.frequent.value == 2
    assert found.rows.value == 5
    assert found.coverage.value == pytest.approx(10 / 11)


def test_words_that_may_be_held_out() -> None:
    """Of a word that stands n times one is left with 1 - (1/2)^n where half of the tokens are held out."""
    found = forecast_words([TEXT], 11, 0.5, VocabConfig(size=100, min_count=1), is_all=True)
    assert found.distinct.value == pytest.approx((1 - 0.5**8) + (1 - 0.5**2) + 0.5)
    assert found.distinct.high <= 3


def test_a_small_vocabulary_is_full() -> None:
    found = forecast_words([TEXT], 11, 1.0, VocabConfig(size=4, min_count=1), is_all=True)
    assert found.rows.value == found.rows.high == 4
    assert found.coverage.value == pytest.approx(8 / 11)


def test_thinning_is_what_chance_brings() -> None:
    chance = random.Random(7)
    words = [str(int(chance.paretovariate(0.7))) for _ in range(6000)]
    found = forecast_words([Counter(words)], 6000, 0.8, VocabConfig(size=0, min_count=2), is_all=True)
    lefts = [Counter(chance.sample(words, 4800)) for _ in range(30)]
    frequent = [[count for count in left.values() if count >= 2] for left in lefts]
    assert found.distinct.value == pytest.approx(fmean(map(len, lefts)), rel=0.01)
    assert found.frequent.value == pytest.approx(fmean(map(len, frequent)), rel=0.02)
    assert found.coverage.value == pytest.approx(fmean(map(sum, frequent)) / 4800, abs=0.002)
