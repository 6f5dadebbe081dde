"""The words of a corpus, from those of a sample: how many differ, how many get a row, and how much these cover.

Different words grow by a power of the text (Herdan 1960, Heaps 1978), which flattens a little, as words run out. Words
that a sample chooses cover more of it than of the corpus, and words of one half of it cover less of the other half than
words chosen by all of the corpus would: the truth lies between.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import VocabConfig
from elmo_zh.vocabulary.coverage import ROUND_SIZES, coverage_of
from elmo_zh.vocabulary.vocabulary import SPECIALS

ENOUGH_COVERAGE, LITTLE_GAIN = 0.95, 0.01
# Measured on eight corpora: how much the growth flattens, and where coverage lies between the two that are known.
_FLATTENING, _TOWARDS_OTHER_HALF = 0.012, 0.4


@dataclass(frozen=True, kw_only=True)
class Words:
    """Words of a training text: how many differ, how many are frequent enough for a row, how many rows there are.

    `covered` has the fractions of the tokens that the most frequent words cover, by their numbers, which are `ranks`.
    """

    distinct: float
    frequent: float
    rows: float
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


def words_of(halves: tuple[Counter[str], Counter[str]], factor: float, config: VocabConfig) -> Words:
    """Return the words of `factor` times as much text as both halves of a sample; with 1 those of the sample."""
    counts = halves[0] + halves[1]
    distinct = grown([len(half) for half in halves], len(counts), factor)
    frequent = [sum(number >= config.min_count for number in each.values()) for each in (*halves, counts)]
    num_frequent = grown(frequent[:2], frequent[2], factor)
    covered = coverage_of(number for _, number in counts.most_common())
    ranks = np.arange(len(covered), dtype=np.float64)
    if factor > 1:
        across = np.mean([_covered_of(halves[1], halves[0], ranks), _covered_of(halves[0], halves[1], ranks)], axis=0)
        covered -= (1 - 1 / factor) * _TOWARDS_OTHER_HALF * (covered - across)
        ranks, covered = np.append(ranks, max(distinct, ranks[-1] + 1)), np.append(covered, 1.0)
    rows = min(num_frequent + len(SPECIALS), config.size or math.inf)
    return Words(distinct=distinct, frequent=num_frequent, rows=rows, ranks=ranks, covered=covered)


def _covered_of(text: Counter[str], words: Counter[str], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the fraction of a text that the most frequent words of another text cover."""
    covered = coverage_of((text[word] for word, _ in words.most_common()), text.total())
    return np.interp(ranks, np.arange(len(covered)), covered)


def grown(halves: list[int], whole: int, factor: float) -> float:
    """Return how many words `factor` times as much text has as a sample of so many words in each half and in all."""
    if factor <= 1 or not all(halves):
        return whole
    power = min(1.0, math.log2(whole / (sum(halves) / 2)))
    distance = math.log(factor)
    return max(whole, whole * math.exp(power * distance - _FLATTENING * distance**2))
