"""The words of a corpus, from their counts in a sample: how many differ, how many get a row, and how much these cover.

Different words grow by a power of the text (Herdan 1960, Heaps 1978). A part of each count stands for words that the
sample lacks: more than half of the discount of Ney, Essen and Kneser (1994).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.coverage import ROUND_SIZES

ENOUGH_COVERAGE, LITTLE_GAIN = 0.95, 0.01
_DISCOUNTED = 0.6  # measured on four corpora


@dataclass(frozen=True, kw_only=True)
class Words:
    """How many words differ and how many are frequent; the most frequent, by their `ranks`, cover these fractions."""

    distinct: float
    frequent: float
    ranks: NDArray[np.float64]
    covered: NDArray[np.float64]

    def share(self, num_words: float) -> float:
        """Return the fraction of the tokens that the most frequent words cover."""
        return float(np.interp(math.log1p(num_words), np.log1p(self.ranks), self.covered))

    def recommended_size(self) -> tuple[int, str]:
        """Return the smallest round size that is enough for the vocabulary, and why: coverage, gain or min_count."""
        for size in ROUND_SIZES:
            covered, doubled = (self.share(min(number, self.frequent)) for number in (size, 2 * size))
            if covered >= ENOUGH_COVERAGE:
                return size, "coverage"
            if size >= self.frequent:
                return size, "min_count"
            if doubled - covered < LITTLE_GAIN:
                return size, "gain"
        return ROUND_SIZES[-1], "gain"


def words_of(counts: Iterable[int], factor: float, min_count: int) -> Words:
    """Return the words of `factor` times as much text as a sample with these counts; with 1 those of the sample."""
    found = np.array(sorted(counts, reverse=True), np.int64)
    half = np.random.default_rng(1).binomial(found, 0.5)

    def power(least: int) -> float:
        whole, *halves = (int((each >= least).sum()) for each in (found, half, found - half))
        return math.log2(2 * max(1, whole) / max(1, sum(halves)))

    growth = power(1)
    distinct = len(found) * factor**growth
    # Frequent words grow faster, by a surplus of the power that halves whenever the text doubles.
    surplus = (power(min_count) - growth) * (1 - 1 / factor)
    frequent = int((found >= min_count).sum()) * factor**growth * 4**surplus
    once, twice = (int((found == number).sum()) for number in (1, 2))
    discount = _DISCOUNTED * (1 - 1 / factor) * once / max(1, once + 2 * twice)
    covered = np.cumsum([0.0, *(found - discount)]) / max(1, found.sum())
    ranks = np.arange(len(covered), dtype=np.float64)
    if factor > 1:
        ranks, covered = np.append(ranks, max(distinct, ranks[-1] + 1)), np.append(covered, 1.0)
    return Words(distinct=distinct, frequent=frequent, ranks=ranks, covered=covered)
