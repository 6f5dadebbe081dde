"""How many different words there are in more text."""

import math
import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.words import Growth, estimate_words, fit_growth, rarefy


def test_rarefaction_is_the_mean_over_all_choices() -> None:
    pieces = [{"a", "b"}, {"a", "c"}, {"a", "b", "d"}, {"e"}]
    found = rarefy(Counter(Counter(word for piece in pieces for word in piece).values()), 4)
    for size in range(1, 5):
        choices = [len(set.union(*chosen)) for chosen in combinations(pieces, size)]
        assert found[size - 1] == pytest.approx(sum(choices) / len(choices))


def test_a_straight_line_goes_on() -> None:
    growth = Growth(num_words=1000, slope=0.5, bend=0.0)
    assert growth.words(4) == pytest.approx(2000)
    assert growth.slope_at(100) == 0.5


def test_a_bent_line_never_falls() -> None:
    growth = Growth(num_words=1000, slope=0.5, bend=-0.1)
    assert growth.words(math.e, 1.0) == pytest.approx(1000 * math.exp(0.5 - 0.1))
    far = [growth.words(10.0**power, 1.0) for power in range(6)]
    assert far == sorted(far)
    assert growth.slope_at(10**6) == 0.0


def zipf_pieces(number: int, tokens: int, seed: int) -> list[set[str]]:
    generator = np.random.default_rng(seed)
    shares = 1 / (np.arange(200_000) + 3.0) ** 1.1
    words = generator.choice(len(shares), (number, tokens), p=shares / shares.sum())
    return [set(map(str, piece)) for piece in words]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_by_the_law_of_zipf_are_foretold(seed: int) -> None:
    """From a tenth and a twentieth of the text."""
    pieces = zipf_pieces(800, 300, seed)
    truth = len(set.union(*pieces))
    for step in (10, 20):
        _, found = estimate_words(pieces[::step], step)
        assert found.holds(truth), (found, truth)
        assert abs(found.value / truth - 1) < 0.12


def test_no_more_text_is_no_estimate() -> None:
    _, found = estimate_words([{"a"}, {"a", "b"}], 1.0)
    assert found == Estimate.exact(2)


def test_few_pieces_give_a_wide_interval() -> None:
    pieces = zipf_pieces(3, 300, 1)
    _, found = estimate_words(pieces, 10)
    assert found.low < found.value < found.high
    assert len(set.union(*pieces)) <= found.low


def test_text_without_a_word_twice_and_text_of_one_word() -> None:
    everything_new = [{f"{piece}-{word}" for word in range(10)} for piece in range(20)]
    assert fit_growth(everything_new).words(5) == pytest.approx(1000)
    assert fit_growth([{"a"}] * 20).words(1000) == pytest.approx(1)


def test_the_order_of_pieces_does_not_matter_to_the_value() -> None:
    pieces = zipf_pieces(40, 200, 5)
    mixed = random.Random(1).sample(pieces, len(pieces))
    assert estimate_words(pieces, 7)[1].value == pytest.approx(estimate_words(mixed, 7)[1].value)
