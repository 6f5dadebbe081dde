"""Measure how much of a text its most frequent words cover."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elmo_zh.language import N_
from elmo_zh.run.reporter import aligned

# Numbers of words at which coverage is shown.
ROUND_SIZES = tuple(1_000 * number for number in (1, 2, 5, 10, 20, 30, 50, 100, 200, 400, 800, 1_600))


def coverage_of(counts: Iterable[int], num_tokens: int = 0) -> NDArray[np.float64]:
    """Return the fraction of `num_tokens` (0: the sum of the counts) that the first 0, 1, 2, ... words cover."""
    covered = np.cumsum([0, *counts], dtype=np.float64)
    return covered / max(1.0, num_tokens or covered[-1])


def coverage_lines(curve: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of a table: the number of most frequent words, and the share of tokens that they cover."""
    if curve:
        rows = [(f"{each['words']:,}", f"{each['share']:.1%}") for each in curve]
        yield from aligned(rows, header=(N_("most frequent words"), N_("tokens covered")))
