"""How much of a corpus the N most frequent words cover, from a sample, and how many rows a vocabulary should have.

Words chosen by a sample cover more of that sample than of the corpus, and words chosen by one half of it cover less of
the other half than words chosen by all of the corpus would: the truth lies between. Words beyond the sample's are
those that stand a few times in the corpus. How many stand m times follows from how fast new words come: with V
different words of which the share a is new at the end, V_m = V a Gamma(m - a) / (Gamma(1 - a) m!) (the law of Zipf and
Mandelbrot: Evert 2004, A simple LNRE model for random character sequences).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.planning.estimates import quantile
from elmo_zh.planning.growth import Growth

ROUND_SIZES = (
    *(1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 50_000),
    *(100_000, 200_000, 400_000, 800_000, 1_600_000),
)  # fmt: skip
ENOUGH_COVERAGE = 0.95
LITTLE_GAIN = 0.01
_MOST_TIMES = 5000


@dataclass(frozen=True, kw_only=True)
class CoverageCurve:
    """Shares of tokens that the most frequent words cover, rising with their number.

    Attributes:
        num_words: Different words of the corpus.
        ranks: Numbers of words, rising.
        shares: Covered by so many, the values; then the lower and the upper ends.
    """

    num_words: float
    ranks: NDArray[np.float64]
    shares: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def at(self, num_words: float) -> tuple[float, float, float]:
        """Return value and ends for a number of words."""
        value, low, high = (
            float(np.interp(num_words, self.ranks, curve)) for curve in (self.shares, self.low, self.high)
        )
        return value, low, high


def words_by_times(num_words: float, new_share: float, most: int) -> NDArray[np.float64]:
    """Return how many words stand 1, 2, ... `most` times in a text.

    Args:
        num_words: Different words of the text.
        new_share: Share of them that stand once.
        most: Where to end.
    """
    share = min(0.98, max(0.02, new_share))
    logs = [math.lgamma(m - share) - math.lgamma(1 - share) - math.lgamma(m + 1) for m in range(1, most + 1)]
    return np.asarray(num_words * share * np.exp(logs))


def merged(blocks: Iterable[Counter[str]]) -> Counter[str]:
    """Return the counts of several pieces together; adding counters would copy them each time."""
    counts: Counter[str] = Counter()
    for block in blocks:
        counts.update(block)
    return counts


def exact_curve(counts: Counter[str]) -> CoverageCurve:
    """Return the curve of a text of which all is known."""
    shares = _cumulated(sorted(counts.values(), reverse=True))
    ranks = np.arange(len(shares), dtype=np.float64)
    return CoverageCurve(num_words=len(counts), ranks=ranks, shares=shares, low=shares, high=shares)


def _cumulated(counts: Sequence[int]) -> NDArray[np.float64]:
    sums = np.cumsum([0, *counts], dtype=np.float64)
    return np.asarray(sums / max(1.0, float(sums[-1])))


def estimate_curve(
    blocks: Sequence[Counter[str]], growth: Growth, num_tokens: float, num_words: float
) -> CoverageCurve:
    """Return the curve of a corpus.

    Args:
        blocks: The words of each piece of the sample.
        growth: Of different words over the pieces.
        num_tokens: Of the corpus.
        num_words: Different words of the corpus.
    """
    halves = [merged(blocks[start::2]) for start in (0, 1)]
    counts = merged(halves)
    sampled = counts.total()
    unseen = max(0.0, 1 - sampled / num_tokens)
    own = _cumulated(sorted(counts.values(), reverse=True))
    others = [_across(halves[0], halves[1]), _across(halves[1], halves[0])]
    ranks = _ranks(len(counts), num_words)
    high = np.interp(ranks, np.arange(len(own)), own)
    across = np.mean([np.interp(ranks, np.arange(len(other)), other) for other in others], axis=0)
    low = high - unseen * (high - across)
    middle = high - unseen * (high - across) / 2
    new_share = once_share(growth, counts, num_tokens / max(1, sampled))
    rare = _rare_curve(ranks, num_words, new_share, num_tokens)
    law = _law_curve(ranks, growth, sampled, num_tokens / max(1, sampled))
    within = np.minimum(1.0, ranks / max(1, len(counts)))
    value = (1 - within) * middle + within * law
    value = np.where(ranks <= len(counts), value, rare)
    change = np.clip(2 * within - 1, 0.0, 1.0)
    value = (1 - change) * value + change * rare
    reach = np.where(ranks <= len(counts), math.sqrt(unseen) * _chance(ranks, blocks, counts), (1 - value) / 2)
    low = np.where(ranks <= len(counts), np.minimum(low, value), value) - reach
    high = np.where(ranks <= len(counts), np.maximum(high, value), value) + reach
    # What was put together from parts still rises.
    shares, low, high = (np.clip(np.maximum.accumulate(curve), 0.0, 1.0) for curve in (value, low, high))
    return CoverageCurve(num_words=num_words, ranks=ranks, shares=shares, low=np.minimum(low, shares), high=high)


def _chance(ranks: NDArray[np.float64], blocks: Sequence[Counter[str]], counts: Counter[str]) -> NDArray[np.float64]:
    """Return how far shares may be off by the choice of the pieces alone."""
    if len(blocks) < 2:
        return np.ones(len(ranks))
    rank_of = {word: rank for rank, (word, _) in enumerate(counts.most_common())}
    shares = []
    for block in blocks:
        found = np.array([(rank_of[word], count) for word, count in block.items()] or [(0, 0)], np.int64)
        found = found[np.argsort(found[:, 0])]
        sums = np.concatenate([[0], np.cumsum(found[:, 1])])
        shares.append(sums[np.searchsorted(found[:, 0], ranks)] / max(1, sums[-1]))
    return np.asarray(quantile(len(blocks) - 1) * np.std(shares, axis=0, ddof=1) / math.sqrt(len(blocks)))


def once_share(growth: Growth, counts: Counter[str], factor: float) -> float:
    """Return the share of the corpus's words that stand in it once.

    Words that are new in a piece may stand there more than once. In the sample that difference is known; in the corpus
    part of it is gone, since words come again elsewhere: in natural measure, half of it.
    """
    num_once = sum(count == 1 for count in counts.values())
    in_sample = num_once / max(1, len(counts))
    bunched = min(1.0, in_sample / growth.slope) if growth.slope else 1.0
    return growth.slope_at(factor) * math.sqrt(bunched)


def _across(chosen_by: Counter[str], measured_on: Counter[str]) -> NDArray[np.float64]:
    """Return what the most frequent words of one half cover of the other."""
    found = [measured_on[word] for word, _ in chosen_by.most_common()]
    return np.cumsum([0, *found], dtype=np.float64) / max(1, measured_on.total())


def _ranks(num_sampled: int, num_words: float) -> NDArray[np.float64]:
    steps = np.unique(np.round(np.geomspace(1, max(2.0, num_words), 400)))
    sizes = [float(size) for size in ROUND_SIZES if size <= num_words]
    return np.unique(np.concatenate([[0.0], steps, sizes, [min(float(num_sampled), num_words)], [num_words]]))


def _rare_curve(
    ranks: NDArray[np.float64], num_words: float, new_share: float, num_tokens: float
) -> NDArray[np.float64]:
    """Return what words cover if those left out are the rarest: all that stand once, then twice, ..."""
    words = words_by_times(num_words, new_share, _MOST_TIMES)
    left = np.concatenate([[num_words], num_words - np.cumsum(words)])
    lost = np.concatenate([[0.0], np.cumsum(words * np.arange(1, _MOST_TIMES + 1))]) / num_tokens
    return np.asarray(1 - np.interp(ranks, left[::-1], lost[::-1]))


def _law_curve(ranks: NDArray[np.float64], growth: Growth, sampled: int, factor: float) -> NDArray[np.float64]:
    """Return what words cover by the law alone: where r words have come, the next token is new with a r / tokens.

    The most frequent words cover more than those that came first; by the law that divides what is left by
    (1 - a) Gamma(1 - a)^(1 / a).
    """
    steps = np.linspace(-8.0, math.log(max(1.01, factor)), 400)
    slopes = np.clip([growth.slope_at(math.exp(step)) for step in steps], 0.02, 0.98)
    rises = np.concatenate([[0.0], np.cumsum((slopes[1:] + slopes[:-1]) / 2 * np.diff(steps))])
    words = growth.num_words * np.exp(rises - np.interp(0.0, steps, rises))
    gains = np.array([(1 - slope) * math.gamma(1 - slope) ** (1 / slope) for slope in slopes])
    left = slopes * words / (sampled * np.exp(steps)) / gains
    return np.asarray(1 - np.interp(ranks, words, np.clip(left, 0.0, 1.0)))


def recommend_size(curve: CoverageCurve, num_frequent: float) -> int:
    """Return the smallest round size that covers 95% of the tokens, or whose double covers less than a point more.

    Args:
        curve: Of the corpus.
        num_frequent: Words that stand often enough for a row; no more are recommended.
    """
    for size in ROUND_SIZES:
        covered = curve.at(min(size, num_frequent))[0]
        if size >= num_frequent or covered >= ENOUGH_COVERAGE:
            return size
        if curve.at(min(2 * size, num_frequent))[0] - covered < LITTLE_GAIN:
            return size
    return ROUND_SIZES[-1]
