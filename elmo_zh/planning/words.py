"""The words of the training text: how many differ, how many get a row, and how much of the text these cover.

The number of different words comes from the blocks of a sample: words occur in bunches, so blocks and not words were
drawn at random. The mean number of different words in k of the K blocks is known exactly (sample-based rarefaction:
Colwell, Mao and Chang 2004, Ecology 85, 2717). In logarithms it is nearly straight (Herdan 1960, Heaps 1978) and
flattens a little, as words of a language run out. So it is extended to the size of the corpus: straight for the upper
end, with one and a half times the sample's bend for the lower end, with most of it for the value. The random error
comes from a jackknife over groups of blocks.
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
from scipy.special import bdtrc, gammaln

from elmo_zh.config import VocabConfig
from elmo_zh.planning.coverage_curve import (
    CoverageCurve,
    estimate_curve,
    exact_curve,
    merged,
    recommend_size,
    words_by_times,
)
from elmo_zh.planning.estimates import Estimate, student_quantile
from elmo_zh.vocabulary.vocabulary import SPECIALS

# By which factor the counts of words may be off because held-out text is chosen at random, and where besides the corpus
# was sampled.
_SPLIT_FACTOR, _SAMPLED_FACTOR = 1.02, 1.05
# The bend is measured from an eighth of the blocks to all of them.
_FITTED_FACTOR = 8
# How much of the bend the value keeps, and the lower end, since the bend may grow; the upper end keeps nothing of it.
_KEPT_BEND, _MOST_BEND = 0.75, 1.5
# With fewer blocks the bend is not measured but assumed to be the usual one of words.
_LEAST_BLOCKS, _USUAL_BEND = 16, -0.02
_GROUPS = 10


@dataclass(frozen=True, kw_only=True)
class WordForecast:
    """Words of the training text.

    Attributes:
        distinct: Number of different words.
        frequent: Number of words that occur at least `vocab.min_count` times.
        rows: Rows of the vocabulary, specials included.
        coverage: Fraction of the tokens that are in the vocabulary.
        curve: Fraction that the most frequent words of the corpus cover.
        recommended: Recommended `vocab.size`, and why, as `recommend_size` returns them.
    """

    distinct: Estimate
    frequent: Estimate
    rows: Estimate
    coverage: Estimate
    curve: CoverageCurve
    recommended: tuple[int, str]


def forecast_words(
    blocks: Sequence[Counter[str]], num_tokens: float, train_fraction: float, config: VocabConfig, *, is_all: bool
) -> WordForecast:
    """Return what to expect of a corpus's words.

    Args:
        blocks: Words of each block of the sample.
        num_tokens: Tokens of the corpus.
        train_fraction: Fraction of the tokens that are not held out.
        config: Settings that say which words get a row.
        is_all: Whether the blocks are all of the corpus.
    """
    estimate = _thinned if is_all else _extrapolated
    curve, distinct, frequent, most = estimate(blocks, num_tokens, train_fraction, config.min_count)
    room = config.size - len(SPECIALS) if config.size else frequent.value
    value, low, high = (min(room, end) for end in (frequent.value, frequent.low, frequent.high))
    covered, least_covered, most_covered = curve.at(value)
    if frequent.value <= room:
        covered = most
    unsure = (_SPLIT_FACTOR - 1) * (1 - covered)
    coverage = Estimate(
        value=covered,
        low=max(0.0, min(least_covered, covered, curve.at(low)[1]) - unsure),
        high=min(1.0, max(most_covered, covered, curve.at(high)[2]) + unsure),
    )
    specials = len(SPECIALS)
    return WordForecast(
        distinct=distinct,
        frequent=frequent,
        rows=Estimate(value=value + specials, low=low + specials, high=high + specials),
        coverage=coverage,
        curve=curve,
        recommended=recommend_size(curve, frequent.value),
    )


_Forecast = tuple[CoverageCurve, Estimate, Estimate, float]


def _thinned(blocks: Sequence[Counter[str]], num_tokens: float, train_fraction: float, min_count: int) -> _Forecast:
    """Return curve, different words, frequent words and what these cover if a random part of known text is held out."""
    counts = merged(blocks)
    times, numbers = np.array(list(Counter(counts.values()).items())).T
    distinct = numbers @ (1 - (1 - train_fraction) ** times)
    # A word that occurs n times keeps a binomial number of these; those of at least `min_count` are frequent.
    times, numbers = times[times >= min_count], numbers[times >= min_count]
    frequent = numbers @ bdtrc(min_count - 1, times, train_fraction)
    covered = train_fraction * (numbers * times) @ bdtrc(min_count - 2, times - 1, train_fraction)
    found = [
        Estimate(value=value, low=value / _SPLIT_FACTOR, high=min(len(counts), value * _SPLIT_FACTOR))
        for value in map(float, (distinct, frequent))
    ]
    return exact_curve(counts.values()), found[0], found[1], float(covered) / max(1.0, train_fraction * num_tokens)


def _extrapolated(
    blocks: Sequence[Counter[str]], num_tokens: float, train_fraction: float, min_count: int
) -> _Forecast:
    """Return curve, different words, frequent words and what these cover of a corpus that was sampled."""
    counts = merged(blocks)
    factor = max(1.0, num_tokens / counts.total())
    growth, words = estimate_words([set(block) for block in blocks], factor)
    slope = growth.slope_at(factor)
    curve = estimate_curve(blocks, num_tokens, words.value, slope) if factor > 1 else exact_curve(counts.values())
    distinct = words.times(train_fraction**slope)
    # Words that are new in a block may occur there more than once. The sample shows how many do; in the corpus some of
    # them occur elsewhere too, so about half of the effect is left, as a logarithm.
    once_of_sample = sum(count == 1 for count in counts.values()) / max(1, len(counts))
    once = slope * math.sqrt(min(1.0, once_of_sample / growth.slope) if growth.slope else 1.0)
    rare = words_by_times(distinct.value, once, max(1, min_count - 1))[: min_count - 1]
    frequent = distinct.times(1 - float(rare.sum()) / distinct.value).widened(_SAMPLED_FACTOR)
    lost = sum(times * float(number) for times, number in enumerate(rare, start=1))
    return curve, distinct, frequent, max(0.0, 1 - lost / (num_tokens * train_fraction))


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

    `blocks_with` has the number of words that occur in exactly j of the K blocks, by j.
    """
    sizes = np.arange(1, num_blocks + 1)

    def log_choices(number: int) -> NDArray[np.float64]:
        # The logarithm of the gamma function is infinite at 0, -1, ...: no choice has more blocks than there are.
        return np.asarray(gammaln(number + 1) - gammaln(sizes + 1) - gammaln(number - sizes + 1))

    # A word of j blocks is in none of k chosen ones with C(K - j, k) / C(K, k).
    missed = (count * np.exp(log_choices(num_blocks - j) - log_choices(num_blocks)) for j, count in blocks_with.items())
    return np.asarray(sum(blocks_with.values()) - sum(missed))


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
