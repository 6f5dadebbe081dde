"""Estimates with intervals."""

import math
import random
from collections.abc import Sequence

import pytest

from elmo_zh.planning.estimates import Estimate, estimate_total, product_of, student_quantile, sum_of


@pytest.mark.parametrize(("freedom", "expected"), [(3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (127, 1.979)])
def test_students_t(freedom: int, expected: float) -> None:
    """Against the tables of Student's distribution."""
    assert student_quantile(freedom) == pytest.approx(expected, abs=0.001)


def total(counts: Sequence[float], whole_size: float, sampled_fraction: float) -> Estimate:
    return estimate_total(counts, [1] * len(counts), whole_size, sampled_fraction)


def test_long_parts_count_for_more_and_one_says_little() -> None:
    """Two in two bytes and none in six: a quarter a byte."""
    assert estimate_total([2, 0], [2, 6], 100, 0.0).value == 25
    alone = total([2], 10, 0.0)
    assert (alone.low, alone.value, alone.high) == (10, 20, 30)


def test_a_total_by_hand() -> None:
    """Densities 1, 2, 3, 4 a byte: mean 2.5, deviation sqrt(5/3), error of the mean that over 2, t about 3."""
    found = total([1, 2, 3, 4], 100, 0.0)
    assert found.value == 250
    reach = student_quantile(3) * math.sqrt(5 / 3) / 2 * 100
    assert (found.low, found.high) == pytest.approx((250 - reach, 250 + reach))


def test_all_is_exact_and_half_is_surer() -> None:
    assert total([1, 3], 10, 1.0) == Estimate.exact(20)
    whole, half = total([1, 3, 2, 2], 10, 0.0), total([1, 3, 2, 2], 10, 0.5)
    assert half.high - half.value == pytest.approx((whole.high - whole.value) * math.sqrt(0.5))


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Of 400 samples from the same population: 95 in 100, give or take what chance brings."""
    chance = random.Random(3)
    population = [chance.expovariate(1) for _ in range(2000)]
    truth = sum(population)
    held = sum(total(chance.sample(population, 40), 2000, 0.02).holds(truth) for _ in range(400))
    assert 0.90 <= held / 400 <= 0.99


def test_an_estimate_survives_json() -> None:
    estimate = Estimate(value=10.4, low=9, high=12)
    assert Estimate.load(estimate.described(2)) == estimate
    assert estimate.described() == {"value": 10, "low": 9, "high": 12}
    assert not estimate.holds(12.4)
    assert estimate.holds(12.4, rounding=0.5)


def test_errors_of_independent_estimates_add_up_in_squares() -> None:
    left, right = Estimate(value=100, low=97, high=106), Estimate(value=10, low=6, high=18)
    assert sum_of([left, right]) == Estimate(value=110, low=105, high=120)
    assert sum_of([]) == Estimate.exact(0)
    assert product_of(left, Estimate.exact(2)) == Estimate(value=200, low=194, high=212)
    assert product_of(Estimate(value=10, low=7, high=13), Estimate(value=10, low=6, high=14)) == Estimate(
        value=100, low=50, high=150
    )
