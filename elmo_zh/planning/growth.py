"""How many different words a corpus has, from the pieces of a sample.

Words of one piece come together, so pieces and not words are what was drawn by chance. The mean number of different
words in k of the K pieces is known exactly (sample-based rarefaction: Colwell, Mao and Chang 2004, Ecology 85, 2717).
In logarithms it is nearly straight (Herdan 1960, Heaps 1978) and bends a little towards the flat, as words of a
language run out. So it is drawn on to the size of the corpus: straight for the upper end, with the bend that the
sample shows and half of it again for the lower end, with most of it for the value; the error of chance comes from a
jackknife over groups of pieces.
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

from elmo_zh.planning.estimates import Estimate, quantile

# The bend is seen over the last so many times the pieces.
_FITTED_FACTOR = 8
# How much of the bend the value keeps, and the lower end, since the bend may grow; the upper end keeps nothing of it.
_KEPT_BEND, _MOST_BEND = 0.75, 1.5
# With fewer pieces the bend is not measured but taken to be what it usually is for words.
_LEAST_PIECES, _USUAL_BEND = 16, -0.02
_GROUPS = 10


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The curve of different words over pieces, in logarithms, at the end of the sample.

    Attributes:
        num_pieces: Of the sample.
        num_words: Different words in them.
        slope: Growth of log words with log pieces.
        bend: Half of how the slope itself grows; never above 0.
    """

    num_pieces: int
    num_words: int
    slope: float
    bend: float

    def words(self, factor: float, kept_bend: float = _KEPT_BEND) -> float:
        """Return the different words in `factor` times as much text."""
        return self.num_words * math.exp(self._rise(math.log(factor), kept_bend))

    def slope_at(self, factor: float, kept_bend: float = _KEPT_BEND) -> float:
        """Return the slope in `factor` times as much text."""
        return max(0.0, self.slope + 2 * kept_bend * self.bend * math.log(factor))

    def _rise(self, distance: float, kept_bend: float) -> float:
        bend = kept_bend * self.bend
        if bend < 0:
            distance = min(distance, -self.slope / (2 * bend))  # beyond its top the curve would fall
        return self.slope * distance + bend * distance**2


def rarefy(pieces_with: Mapping[int, int], num_pieces: int) -> NDArray[np.float64]:
    """Return the mean number of different words in 1, 2, ... K pieces, over all choices of so many.

    Args:
        pieces_with: How many words stand in exactly j pieces, by j.
        num_pieces: K.
    """
    logs = np.array([math.lgamma(n + 1) for n in range(num_pieces + 1)])
    sizes = np.arange(1, num_pieces + 1)
    total = np.zeros(num_pieces)
    for j, count in pieces_with.items():
        # A word of j pieces is in none of k chosen ones with C(K - j, k) / C(K, k).
        can_miss = sizes <= num_pieces - j
        left = np.where(can_miss, num_pieces - j - sizes, 0)
        chance = logs[num_pieces - j] - logs[left] - logs[num_pieces] + logs[num_pieces - sizes]
        total += count * (1 - np.where(can_miss, np.exp(np.where(can_miss, chance, 0.0)), 0.0))
    return total


def fit_growth(blocks: Sequence[Set[str]]) -> Growth:
    """Return the growth over pieces, each given by its different words."""
    found = Counter(word for words in blocks for word in words)
    return _fit(Counter(found.values()), len(blocks))


def _fit(pieces_with: Mapping[int, int], num_pieces: int) -> Growth:
    num_words = sum(pieces_with.values())
    # How the mean number of words falls when one piece is left out is how many stand in one piece only.
    slope, bend = pieces_with.get(1, 0) / max(1, num_words), _USUAL_BEND
    if num_pieces >= _LEAST_PIECES:
        curve = rarefy(pieces_with, num_pieces)
        sizes = np.arange(1, num_pieces + 1)
        fitted = sizes >= num_pieces / _FITTED_FACTOR
        distances = np.log(sizes[fitted] / num_pieces)
        bend, slope, _ = (float(each) for each in np.polyfit(distances, np.log(curve[fitted]), 2))
    return Growth(num_pieces=num_pieces, num_words=num_words, slope=min(1.0, max(0.0, slope)), bend=min(0.0, bend))


def estimate_words(blocks: Sequence[Set[str]], factor: float) -> tuple[Growth, Estimate]:
    """Return the growth, and the different words in `factor` times as much text as the pieces hold."""
    growth = fit_growth(blocks)
    if factor <= 1:
        return growth, Estimate.exact(growth.num_words)
    value = growth.words(factor)
    reach = math.exp(quantile(_GROUPS - 1) * _error(blocks, factor))
    return growth, Estimate(
        value=value,
        low=max(float(growth.num_words), growth.words(factor, _MOST_BEND) / reach),
        high=growth.words(factor, 0.0) * reach,
    )


def _error(blocks: Sequence[Set[str]], factor: float) -> float:
    """Return the standard error of the logarithm: each time a tenth of the pieces is left out."""
    num_groups = min(_GROUPS, len(blocks))
    if num_groups < 2:
        return math.log(2)
    logs = []
    for group in range(num_groups):
        left = [words for number, words in enumerate(blocks) if number % num_groups != group]
        logs.append(math.log(fit_growth(left).words(factor * len(blocks) / len(left))))
    mean = fmean(logs)
    return math.sqrt((num_groups - 1) / num_groups * sum((each - mean) ** 2 for each in logs))
