"""Estimates with 95% intervals, and totals of a corpus estimated from parts of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import stdtrit

# Fewer parts than this say next to nothing about their own spread.
_LEAST_FREEDOM = 3
# Relative reach of the interval where there is only one part.
_ONE_PART_REACH = 0.5


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its 95% interval; both ends equal the value if it is exact."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """Return a value that is known exactly."""
        return cls(value=value, low=value, high=value)

    @classmethod
    def load(cls, values: Mapping[str, Any]) -> "Estimate":
        """Return the estimate that `described` wrote."""
        return cls(**{name: float(values[name]) for name in ("value", "low", "high")})

    def times(self, factor: float) -> "Estimate":
        """Return the estimate multiplied by a known factor."""
        return Estimate(value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def widened(self, factor: float) -> "Estimate":
        """Return the same value with each end moved out by a factor."""
        return Estimate(value=self.value, low=self.low / factor, high=self.high * factor)

    def holds(self, truth: float, *, rounding: float = 0.0) -> bool:
        """Return whether the truth lies in the interval, each end moved out by the possible rounding error."""
        return self.low - rounding <= truth <= self.high + rounding

    def described(self, digits: int = 0) -> dict[str, float]:
        """Return plain values for JSON."""
        return {name: round(end, digits or None) for name, end in asdict(self).items()}


def sum_of(estimates: Sequence[Estimate]) -> Estimate:
    """Return the sum of independent estimates: their errors add up in squares."""
    value = sum(each.value for each in estimates)
    below = math.hypot(*(each.value - each.low for each in estimates))
    above = math.hypot(*(each.high - each.value for each in estimates))
    return Estimate(value=value, low=value - below, high=value + above)


def product_of(left: Estimate, right: Estimate) -> Estimate:
    """Return the product of two independent estimates: their relative errors add up in squares."""
    value = left.value * right.value
    below = math.hypot((left.value - left.low) * right.value, (right.value - right.low) * left.value)
    above = math.hypot((left.high - left.value) * right.value, (right.high - right.value) * left.value)
    return Estimate(value=value, low=max(0.0, value - below), high=value + above)


def student_quantile(freedom: int) -> float:
    """Return how many standard errors to either side hold 95%, by Student's t."""
    return float(stdtrit(max(freedom, _LEAST_FREEDOM), 0.975))


def estimate_total(
    counts: Sequence[float], sizes: Sequence[float], whole_size: float, sampled_fraction: float
) -> Estimate:
    """Return the total of something from its counts in independent parts: their mean density times the whole size.

    The spread of parts chosen at equal distances is at most about that of parts drawn singly, which the interval
    assumes. What was sampled is known exactly.

    Args:
        counts: Count in each part.
        sizes: Size of each part.
        whole_size: Size of the whole, in the same units.
        sampled_fraction: Fraction of the whole that the parts cover; 1 if they are all of it.
    """
    size = sum(sizes)
    mean = sum(counts) / size if size else 0.0
    value = mean * whole_size
    if sampled_fraction >= 1:
        return Estimate.exact(value)
    number = len(counts)
    if number < 2 or not size:
        reach = _ONE_PART_REACH * value
    else:
        # Ratio of two sums: Cochran (1977), Sampling Techniques, 6.5.
        squares = sum((count - mean * each) ** 2 for count, each in zip(counts, sizes, strict=True))
        error = math.sqrt(number / (number - 1) * squares * (1 - sampled_fraction)) / size
        reach = student_quantile(number - 1) * error * whole_size
    return Estimate(value=value, low=max(value * sampled_fraction, value - reach), high=value + reach)
