"""The words of the training text: how many differ, how many get a row, and how much of the text these cover."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from elmo_zh.config import VocabConfig
from elmo_zh.planning.coverage import CoverageCurve, estimate_curve, exact_curve, merged, recommend_size, words_by_times
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.growth import estimate_words
from elmo_zh.vocabulary.vocabulary import SPECIALS

# By which factor the counts of words may be off because held-out text is chosen at random, and where besides the corpus
# was sampled.
_SPLIT_FACTOR, _SAMPLED_FACTOR = 1.02, 1.05


@dataclass(frozen=True, kw_only=True)
class WordForecast:
    """Words of the training text.

    Attributes:
        distinct: Number of different words.
        frequent: Number of words that occur at least `vocab.min_count` times.
        rows: Rows of the vocabulary, specials included.
        coverage: Fraction of the tokens that are in the vocabulary.
        curve: Fraction that the most frequent words of the corpus cover.
        recommended_size: Recommended `vocab.size`.
    """

    distinct: Estimate
    frequent: Estimate
    rows: Estimate
    coverage: Estimate
    curve: CoverageCurve
    recommended_size: int


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
        recommended_size=recommend_size(curve, frequent.value),
    )


_Forecast = tuple[CoverageCurve, Estimate, Estimate, float]


def _thinned(blocks: Sequence[Counter[str]], num_tokens: float, train_fraction: float, min_count: int) -> _Forecast:
    """Return curve, different words, frequent words and what these cover if a random part of known text is held out."""
    counts = merged(blocks)
    distinct = frequent = covered = 0.0
    for times, num_words in Counter(counts.values()).items():
        chances = [
            math.comb(times, left) * train_fraction**left * (1 - train_fraction) ** (times - left)
            for left in range(min(min_count, times + 1))
        ]
        distinct += num_words * (1 - chances[0])
        if times >= min_count:
            frequent += num_words * (1 - sum(chances))
            covered += num_words * (times * train_fraction - sum(left * each for left, each in enumerate(chances)))
    ends = [
        Estimate(value=value, low=value / _SPLIT_FACTOR, high=min(len(counts), value * _SPLIT_FACTOR))
        for value in (distinct, frequent)
    ]
    return exact_curve(counts.values()), ends[0], ends[1], covered / max(1.0, train_fraction * num_tokens)


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
