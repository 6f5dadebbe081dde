"""Estimates with intervals, and totals of a corpus from pieces of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_Z = 1.96
# Fewer pieces than this say next to nothing of their own spread.
_LEAST_FREEDOM = 3
# How far off the value may be where there is but one piece.
_ONE_PIECE_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value and the interval that should hold the truth 95 times in 100; both ends are the value if it is exact."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """Return what is known for certain."""
        return cls(value=value, low=value, high=value)

    @classmethod
    def within_factor(cls, value: float, factor: float) -> "Estimate":
        """Return a value that may be off by a factor either way."""
        return cls(value=value, low=value / factor, high=value * factor)

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> "Estimate":
        """Return what `described` gave."""
        return cls(value=float(values["value"]), low=float(values["low"]), high=float(values["high"]))

    @property
    def is_exact(self) -> bool:
        """Whether nothing was estimated."""
        return self.low == self.high

    def times(self, factor: float) -> "Estimate":
        """Return the estimate of something in proportion."""
        return Estimate(value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def widened(self, factor: float) -> "Estimate":
        """Return the same value, with ends that may be off by a factor."""
        return Estimate(value=self.value, low=self.low / factor, high=self.high * factor)

    def plus(self, amount: float) -> "Estimate":
        """Return the estimate with a known amount on top."""
        return Estimate(value=self.value + amount, low=self.low + amount, high=self.high + amount)

    def holds(self, truth: float, *, rounding: float = 0.0) -> bool:
        """Return whether the truth lies in the interval, each end widened by what rounding may have cost."""
        return self.low - rounding <= truth <= self.high + rounding

    def described(self, digits: int = 0) -> dict[str, float]:
        """Return plain values for JSON."""
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {name: round(end, digits) if digits else round(end) for name, end in ends.items()}


def quantile(freedom: int) -> float:
    """Return how many standard errors to either side hold 95 in 100: Student's t by its expansion around the normal.

    Abramowitz and Stegun (1964), 26.7.5; right to 0.15 from 3 degrees of freedom on.
    """
    freedom = max(freedom, _LEAST_FREEDOM)
    first = (_Z**3 + _Z) / 4
    second = (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96
    return _Z + first / freedom + second / freedom**2


@dataclass(frozen=True, kw_only=True)
class Density:
    """How much of something there is for each byte of a piece, and the weight of the piece."""

    value: float
    weight: float = 1.0


def estimate_total(
    densities: Sequence[Density], size: float, sampled_share: float, *, unsure_share: float = 0.0
) -> Estimate:
    """Return the total of something over a corpus from how dense it is at places chosen in proportion to size.

    Hansen and Hurwitz (1943): the mean density times the size. The spread of places at equal distances is at most
    about that of places drawn singly, which is what the interval takes it for; what was sampled is known for certain.

    Args:
        densities: One for each piece, drawn independently of each other.
        size: Bytes of the corpus.
        sampled_share: Share of the corpus that the pieces are; 1 if they are all of it.
        unsure_share: Of the value, by which it may be off besides.
    """
    weights = sum(each.weight for each in densities)
    mean = sum(each.value * each.weight for each in densities) / weights
    value = mean * size
    if sampled_share >= 1:
        return Estimate.exact(value)
    number = len(densities)
    if number < 2:
        reach = _ONE_PIECE_SHARE * value
    else:
        # Of a ratio of two sums: Cochran (1977), Sampling Techniques, 6.5.
        squares = sum((each.weight * (each.value - mean)) ** 2 for each in densities)
        error = math.sqrt(number / (number - 1) * squares) / weights * math.sqrt(1 - sampled_share)
        reach = quantile(number - 1) * error * size
    reach += unsure_share * value
    return Estimate(value=value, low=max(value * sampled_share, value - reach), high=value + reach)
