"""How much the most frequent words cover, and what is recommended."""

import math
from collections import Counter

import numpy as np
import pytest

from elmo_zh.planning.coverage_curve import (
    ENOUGH_COVERAGE,
    ROUND_SIZES,
    CoverageCurve,
    estimate_curve,
    exact_curve,
    merged,
    recommend_size,
    words_by_times,
)
from elmo_zh.planning.words import estimate_words


def test_the_curve_of_a_text_of_which_all_is_known() -> None:
    curve = exact_curve([3, 5, 2])
    assert [curve.at(rank)[0] for rank in range(4)] == pytest.approx([0, 0.5, 0.8, 1.0])
    assert curve.at(2) == pytest.approx((0.8, 0.8, 0.8))
    assert curve.at(100)[0] == 1.0


def test_words_by_times_by_hand() -> None:
    """a = 1/2: a half once; then V a G(3/2) / (G(1/2) 2) = V / 8; G(5/2) = 3/4 sqrt(pi) gives V / 16."""
    assert words_by_times(1600, 0.5, 3) == pytest.approx([800, 200, 100])
    assert words_by_times(1000, 0.4, 100_000).sum() == pytest.approx(1000, rel=0.02)


def draw(number: int, tokens: int, seed: int) -> list[Counter[str]]:
    generator = np.random.default_rng(seed)
    shares = 1 / (np.arange(100_000) + 3.0) ** 1.1
    words = generator.choice(len(shares), (number, tokens), p=shares / shares.sum())
    return [Counter(map(str, piece)) for piece in words]


@pytest.fixture(scope="module")
def estimated() -> tuple[CoverageCurve, CoverageCurve]:
    blocks = draw(600, 300, 4)
    truth = exact_curve(merged(blocks).values())
    sample = blocks[::10]
    growth, words = estimate_words([set(block) for block in sample], 10)
    return estimate_curve(sample, 180_000, words.value, growth.slope_at(10)), truth


def test_the_curve_rises_from_nothing_to_all_within_its_ends(estimated: tuple[CoverageCurve, CoverageCurve]) -> None:
    curve, _ = estimated
    for values in (curve.covered, curve.low, curve.high):
        assert values[0] == pytest.approx(0, abs=1e-9)
        assert (np.diff(values) >= 0).all()
        assert values.max() <= 1.0
    assert curve.covered[-1] == pytest.approx(1.0)
    assert (curve.low <= curve.covered).all()
    assert (curve.covered <= curve.high + 1e-12).all()


@pytest.mark.parametrize("words", [10, 100, 1000, 3000, 8000, 15_000])
def test_the_curve_is_that_of_ten_times_the_sample(estimated: tuple[CoverageCurve, CoverageCurve], words: int) -> None:
    curve, truth = estimated
    value, low, high = curve.at(words)
    expected = truth.at(words)[0]
    assert low - 0.005 <= expected <= high + 0.005
    assert abs(value - expected) < 0.03


def curve_of(points: dict[int, float]) -> CoverageCurve:
    ranks, shares = (np.array(each, np.float64) for each in (list(points), list(points.values())))
    return CoverageCurve(ranks=ranks, covered=shares, low=shares, high=shares)


def test_recommended_is_what_covers_enough() -> None:
    curve = curve_of({0: 0, 10_000: 0.80, 20_000: 0.90, 30_000: ENOUGH_COVERAGE, 100_000: 1.0})
    assert recommend_size(curve, 100_000) == (30_000, "coverage")


def test_or_where_a_double_gains_little() -> None:
    curve = curve_of({0: 0, 5_000: 0.80, 10_000: 0.85, 20_000: 0.855, 1_000_000: 0.90})
    assert recommend_size(curve, 1_000_000) == (10_000, "gain")


def test_or_where_there_are_no_more_words_that_stand_often_enough() -> None:
    assert recommend_size(curve_of({0: 0, 4_000: 0.7, 10_000: 1.0}), 3_900) == (5_000, "min_count")
    flat = curve_of({0: 0, **{size: size / 10**8 for size in ROUND_SIZES}, 10**8: 1.0})
    assert recommend_size(flat, math.inf) == (ROUND_SIZES[0], "gain")
