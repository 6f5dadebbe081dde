"""What a plan says of words: how many differ, how many get a row, and how much these cover of the training text."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from elmo_zh.config import VocabConfig
from elmo_zh.planning.coverage import (
    CoverageCurve,
    estimate_curve,
    exact_curve,
    merged,
    once_share,
    recommend_size,
    words_by_times,
)
from elmo_zh.planning.estimates import Estimate
from elmo_zh.planning.growth import estimate_words, fit_growth
from elmo_zh.vocabulary.vocabulary import SPECIALS

# By which share the counts of words of the training text may be off where what is held out is left to chance, and where
# besides the corpus was sampled.
_UNSURE_SHARE, _UNSURE_SHARE_SAMPLED = 0.02, 0.05


@dataclass(frozen=True, kw_only=True)
class WordForecast:
    """Words of the training text.

    Attributes:
        distinct: Different words.
        frequent: Those that stand at least `vocab.min_count` times.
        rows: Of the vocabulary, specials included.
        coverage: Share of the tokens that are in the vocabulary.
        curve: Shares covered by the most frequent words of the corpus.
        recommended_size: For `vocab.size`.
    """

    distinct: Estimate
    frequent: Estimate
    rows: Estimate
    coverage: Estimate
    curve: CoverageCurve
    recommended_size: int


def forecast_words(
    blocks: Sequence[Counter[str]], num_tokens: float, train_share: float, config: VocabConfig, *, is_all: bool
) -> WordForecast:
    """Return what is to be expected of a corpus's words.

    Args:
        blocks: The words of each piece of the sample.
        num_tokens: Of the corpus.
        train_share: Share of the tokens that are not held out.
        config: Which words get a row.
        is_all: Whether the pieces are all of the corpus.
    """
    if is_all:
        counts = merged(blocks)
        curve = exact_curve(counts)
        distinct, frequent, most = _thinned(counts, train_share, config.min_count)
    else:
        curve, distinct, frequent, most = _extrapolated(blocks, num_tokens, train_share, config.min_count)
    room = config.size - len(SPECIALS) if config.size else frequent.value
    own_rows = Estimate(value=min(room, frequent.value), low=min(room, frequent.low), high=min(room, frequent.high))
    value, low, high = curve.at(own_rows.value)
    if frequent.value <= room:
        value = most
    unsure = _UNSURE_SHARE * (1 - value)
    coverage = Estimate(
        value=value,
        low=max(0.0, min(low, value, curve.at(own_rows.low)[1]) - unsure),
        high=min(1.0, max(high, value, curve.at(own_rows.high)[2]) + unsure),
    )
    return WordForecast(
        distinct=distinct,
        frequent=frequent,
        rows=own_rows.plus(len(SPECIALS)),
        coverage=coverage,
        curve=curve,
        recommended_size=recommend_size(curve, frequent.value),
    )


def _thinned(counts: Counter[str], share: float, min_count: int) -> tuple[Estimate, Estimate, float]:
    """Return different words, frequent words and what these cover where a share of all tokens is left by chance."""
    distinct = frequent = covered = 0.0
    for times, num_words in Counter(counts.values()).items():
        chances = [_binomial(times, left, share) for left in range(min(min_count, times + 1))]
        distinct += num_words * (1 - chances[0])
        if times >= min_count:
            frequent += num_words * (1 - sum(chances))
            covered += num_words * (times * share - sum(left * chance for left, chance in enumerate(chances)))
    return (
        _unsure(distinct, len(counts), _UNSURE_SHARE),
        _unsure(frequent, len(counts), _UNSURE_SHARE),
        covered / max(1.0, share * counts.total()),
    )


def _binomial(number: int, found: int, share: float) -> float:
    return math.comb(number, found) * share**found * (1 - share) ** (number - found)


def _unsure(value: float, most: float, share: float) -> Estimate:
    return Estimate(value=value, low=value * (1 - share), high=min(most, value * (1 + share)))


def _extrapolated(
    blocks: Sequence[Counter[str]], num_tokens: float, train_share: float, min_count: int
) -> tuple[CoverageCurve, Estimate, Estimate, float]:
    sampled = sum(block.total() for block in blocks)
    factor = max(1.0, num_tokens / sampled)
    kinds = [set(block) for block in blocks]
    growth, words = estimate_words(kinds, factor)
    counts = merged(blocks)
    curve = estimate_curve(blocks, growth, num_tokens, words.value) if factor > 1 else exact_curve(counts)
    distinct = words.times(train_share ** growth.slope_at(factor))
    new_share = once_share(fit_growth(kinds), counts, factor)
    rare = words_by_times(distinct.value, new_share, max(1, min_count - 1))[: min_count - 1]
    left_out = float(rare.sum()) / distinct.value
    frequent = distinct.times(1 - left_out)
    frequent = Estimate(
        value=frequent.value,
        low=frequent.low * (1 - _UNSURE_SHARE_SAMPLED),
        high=frequent.high * (1 + _UNSURE_SHARE_SAMPLED),
    )
    lost = sum((times + 1) * float(number) for times, number in enumerate(rare))
    return curve, distinct, frequent, max(0.0, 1 - lost / (num_tokens * train_share))
