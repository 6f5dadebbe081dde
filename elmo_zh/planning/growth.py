"""How many different words a corpus has, from the blocks of a sample.

Words occur in bunches, so blocks and not words were drawn at random. The mean number of different words in k of the K
blocks is known exactly (sample-based rarefaction: Colwell, Mao and Chang 2004, Ecology 85, 2717). In logarithms it is
nearly straight (Herdan 1960, Heaps 1978) and flattens a little, as words of a language run out. So it is extended to
the size of the corpus: straight for the upper end, with one and a half times the sample's bend for the lower end, with
most of it for the value. The random error comes from a jackknife over groups of blocks.
Estimators of all unseen species (Chao 1984) are far too low here, and that of Good and Toulmin (1956; smoothed:
Orlitsky, Suresh and Wu 2016) reaches only some times the size of the sample.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from elmo_zh.planning.estimates import Estimate, student_quantile

# The bend is measured from an eighth of the blocks to all of them.
_FITTED_FACTOR = 8
# How much of the bend the value keeps, and the lower end, since the bend may grow; the upper end keeps nothing of it.
_KEPT_BEND, _MOST_BEND = 0.75, 1.5
# With fewer blocks the bend is not measured but assumed to be the usual one of words.
_LEAST_BLOCKS, _USUAL_BEND = 16, -0.02
_GROUPS = 10


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The curve of different words over blocks, in logarithms, at the end of the sample.

    Attributes:
        num_words: Different words in the sample.
        slope: Growth of log words with log blocks.
        bend: Half of how the slope itself grows; never above 0.
    """

    num_words: int
    slope: float
    bend: float

    def words(self, factor: float, kept_bend: float = _KEPT_BEND) -> float:
        """Return the different words in `factor` times as much text."""
        distance, bend = math.log(factor), kept_bend * self.bend
        if bend < 0:
            distance = min(distance, -self.slope / (2 * bend))  # beyond its top the curve would fall
        return self.num_words * math.exp(self.slope * distance + bend * distance**2)

    def slope_at(self, factor: float) -> float:
        """Return the slope in `factor` times as much text."""
        return max(0.0, self.slope + 2 * _KEPT_BEND * self.bend * math.log(factor))


def rarefy(blocks_with: Mapping[int, int], num_blocks: int) -> NDArray[np.float64]:
    """Return the mean number of different words in 1, 2, ... K blocks, over all choices of so many.

    Args:
        blocks_with: Number of words that occur in exactly j blocks, by j.
        num_blocks: K.
    """
    logs = np.array([math.lgamma(n + 1) for n in range(num_blocks + 1)])
    sizes = np.arange(1, num_blocks + 1)
    total = np.zeros(num_blocks)
    for j, count in blocks_with.items():
        # A word of j blocks is in none of k chosen ones with C(K - j, k) / C(K, k).
        can_miss = sizes <= num_blocks - j
        left = np.where(can_miss, num_blocks - j - sizes, 0)
        chance = logs[num_blocks - j] - logs[left] - logs[num_blocks] + logs[num_blocks - sizes]
        total += count * (1 - np.where(can_miss, np.exp(np.where(can_miss, chance, 0.0)), 0.0))
    return total


def fit_growth(blocks: Sequence[Set[str]]) -> Growth:
    """Return the growth over blocks, each given by its different words."""
    blocks_with = Counter(Counter(word for words in blocks for word in words).values())
    num_words = blocks_with.total()
    # How the mean number of words falls when one block is left out is how many occur in one block only.
    slope, bend = blocks_with[1] / max(1, num_words), _USUAL_BEND
    if len(blocks) >= _LEAST_BLOCKS:
        curve = rarefy(blocks_with, len(blocks))
        sizes = np.arange(1, len(blocks) + 1)
        fitted = sizes >= len(blocks) / _FITTED_FACTOR
        bend, slope, _ = np.polyfit(np.log(sizes[fitted] / len(blocks)), np.log(curve[fitted]), 2).tolist()
    return Growth(num_words=num_words, slope=min(1.0, max(0.0, slope)), bend=min(0.0, bend))


def estimate_words(blocks: Sequence[Set[str]], factor: float) -> tuple[Growth, Estimate]:
    """Return the growth, and the different words in `factor` times as much text as the blocks hold."""
    growth = fit_growth(blocks)
    if factor <= 1:
        return growth, Estimate.exact(growth.num_words)
    reach = math.exp(student_quantile(_GROUPS - 1) * _error(blocks, factor))
    return growth, Estimate(
        value=growth.words(factor),
        low=max(float(growth.num_words), growth.words(factor, _MOST_BEND) / reach),
        high=growth.words(factor, 0.0) * reach,
    )


def _error(blocks: Sequence[Set[str]], factor: float) -> float:
    """Return the standard error of the logarithm, leaving out each tenth of the blocks in turn (jackknife)."""
    num_groups = min(_GROUPS, len(blocks))
    if num_groups < 2:
        return math.log(2)
    logs = []
    for group in range(num_groups):
        left = [words for number, words in enumerate(blocks) if number % num_groups != group]
        logs.append(math.log(fit_growth(left).words(factor * len(blocks) / len(left))))
    mean = fmean(logs)
    return math.sqrt((num_groups - 1) / num_groups * sum((each - mean) ** 2 for each in logs))
