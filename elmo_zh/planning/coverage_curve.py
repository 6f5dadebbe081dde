"""Estimate from a sample how much of a corpus the N most frequent words cover, and recommend a size of the vocabulary.

Words chosen by a sample cover more of that sample than of the corpus, and words chosen by one half of it cover less of
the other half than words chosen by all of the corpus would: the truth lies between. Words beyond the sample's occur
a few times in the corpus. How many occur m times follows from how fast new words come: with V different words of which
the fraction a is new at the end, V_m = V a Gamma(m - a) / (Gamma(1 - a) m!) (the law of Zipf and Mandelbrot: Evert
2004, A simple LNRE model for random character sequences).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from elmo_zh.planning.estimates import student_quantile

ROUND_SIZES = tuple(1_000 * number for number in (1, 2, 5, 10, 20, 30, 50, 100, 200, 400, 800, 1_600))
ENOUGH_COVERAGE = 0.95
LITTLE_GAIN = 0.01
# Where the truth lies between what the sample's words cover of it and what those of one half cover of the other.
_TOWARDS_OTHER_HALF = 0.4
_MOST_TIMES = 5000
_GROUPS = 10


@dataclass(frozen=True, kw_only=True)
class CoverageCurve:
    """Fraction of tokens that the most frequent words cover, by the number of words.

    Attributes:
        ranks: Numbers of words, rising; the last is how many different words the corpus has.
        covered: Fraction of tokens covered by so many words.
        low, high: Ends of the 95% interval.
    """

    ranks: NDArray[np.float64]
    covered: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def at(self, num_words: float) -> tuple[float, float, float]:
        """Return value, lower and upper end for a number of words."""
        value, low, high = (np.interp(num_words, self.ranks, curve) for curve in (self.covered, self.low, self.high))
        return float(value), float(low), float(high)

    def described(self) -> list[dict[str, float]]:
        """Return the curve at round numbers of words, as plan.json has it."""
        rows = [(size, *self.at(size)) for size in ROUND_SIZES if size < self.ranks[-1]]
        names = ("words", "share", "low", "high")
        return [dict(zip(names, [round(value, 4) for value in row], strict=True)) for row in rows]


def words_by_times(num_words: float, new_fraction: float, most: int) -> NDArray[np.float64]:
    """Return how many of a text's words occur 1, 2, ... `most` times, if the fraction `new_fraction` occurs once."""
    once = min(0.98, max(0.02, new_fraction))
    times = np.arange(1, most + 1)
    return np.asarray(num_words * once * np.exp(gammaln(times - once) - gammaln(1 - once) - gammaln(times + 1)))


def merged(blocks: Iterable[Counter[str]]) -> Counter[str]:
    """Return the counts of several blocks together; adding counters would copy them each time."""
    counts: Counter[str] = Counter()
    for block in blocks:
        counts.update(block)
    return counts


def exact_curve(counts: Iterable[int], num_tokens: int = 0) -> CoverageCurve:
    """Return the curve of words whose counts are all known, in a text of so many tokens (0: their sum)."""
    covered = _covered(sorted(counts, reverse=True), total=num_tokens)
    return CoverageCurve(ranks=np.arange(len(covered), dtype=np.float64), covered=covered, low=covered, high=covered)


def _covered(counts: Sequence[int], ranks: NDArray[np.float64] | None = None, total: int = 0) -> NDArray[np.float64]:
    """Return the fraction of all tokens that the first so many words cover, by default the first 0, 1, 2, ..."""
    covered = np.cumsum([0, *counts], dtype=np.float64) / max(1, total or sum(counts))
    return np.asarray(covered if ranks is None else np.interp(ranks, np.arange(len(covered)), covered))


def estimate_curve(
    blocks: Sequence[Counter[str]], num_tokens: float, num_words: float, new_fraction: float
) -> CoverageCurve:
    """Return the curve of a corpus from the words of each block of a sample.

    The corpus has so many tokens and different words; at its end the fraction `new_fraction` of these is new.
    """
    halves = [merged(blocks[start::2]) for start in (0, 1)]
    counts = merged(halves)
    ranked = [word for word, _ in counts.most_common()]
    unseen = max(0.0, 1 - counts.total() / num_tokens)
    steps = np.round(np.geomspace(1, max(2.0, num_words), 400))
    ranks = np.unique(np.minimum([0, *steps, *ROUND_SIZES, len(counts), num_words], num_words))
    own = _covered([counts[word] for word in ranked], ranks)
    # What the words of one half, most frequent first, cover of the other half.
    across = [
        _covered([measured[word] for word, _ in chosen.most_common()], ranks, measured.total())
        for chosen, measured in (halves, halves[::-1])
    ]
    other = np.mean(across, axis=0)
    low, middle = (own - unseen * fraction * (own - other) for fraction in (1.0, _TOWARDS_OTHER_HALF))
    # Beyond the sample's words, those left out are the rarest: all that occur once, then twice, ...
    words = words_by_times(num_words, new_fraction, _MOST_TIMES)
    left = np.concatenate([[num_words], num_words - np.cumsum(words)])
    lost = np.concatenate([[0.0], np.cumsum(words * np.arange(1, _MOST_TIMES + 1))]) / num_tokens
    rare = 1 - np.interp(ranks, left[::-1], lost[::-1])
    change = np.clip(2 * ranks / max(1, len(counts)) - 1, 0.0, 1.0)
    value = (1 - change) * middle + change * rare
    is_known = ranks <= len(counts)
    reach = np.where(is_known, math.sqrt(unseen) * _error_of_choice(ranks, blocks, ranked), (1 - value) / 2)
    low = np.where(is_known, np.minimum(low, value), value) - reach
    high = np.where(is_known, np.maximum(own, value), value) + reach
    # Curves put together from parts need not rise.
    value, low, high = (np.clip(np.maximum.accumulate(curve), 0.0, 1.0) for curve in (value, low, high))
    return CoverageCurve(ranks=ranks, covered=value, low=np.minimum(low, value), high=high)


def _error_of_choice(ranks: NDArray[np.float64], blocks: Sequence[Counter[str]], words: list[str]) -> Any:
    """Return how far the curve may be off because other blocks might have been chosen, by the spread of groups."""
    groups = [merged(blocks[start::_GROUPS]) for start in range(min(_GROUPS, len(blocks)))]
    if len(groups) < 2:
        return np.ones(len(ranks))
    covered = [_covered([group[word] for word in words], ranks) for group in groups]
    return student_quantile(len(groups) - 1) * np.std(covered, axis=0, ddof=1) / math.sqrt(len(groups))


def recommend_size(curve: CoverageCurve, num_frequent: float) -> tuple[int, str]:
    """Return a size for the vocabulary, and why: "coverage", "gain" or "min_count".

    It is the smallest round size that covers 95% of the tokens, or whose double covers less than a point more, or that
    has a row for each of the `num_frequent` words that are frequent enough for one.
    """
    for size in ROUND_SIZES:
        covered, doubled = (curve.at(min(number, num_frequent))[0] for number in (size, 2 * size))
        if covered >= ENOUGH_COVERAGE:
            return size, "coverage"
        if size >= num_frequent:
            return size, "min_count"
        if doubled - covered < LITTLE_GAIN:
            return size, "gain"
    return ROUND_SIZES[-1], "gain"
