"""coverage.png: how much of the text the most frequent words cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.pictures.canvas import (
    BASELINE_COLOURS,
    DATA_COLOUR,
    EndLabel,
    add_title,
    format_count,
    label_ends,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Numbers of words whose coverage is written at it, unless its end or the vocabulary's line is within the factors.
_MARKED = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_NEAR_ABOVE, _NEAR_BELOW = 1.5, 8


def coverage_figure(
    covered: NDArray[np.float64], vocabulary: tuple[int, float] | None, title: str, details: Sequence[str]
) -> Figure:
    """Draw how much of a text its 0, 1, 2, ... most frequent words cover, marking the vocabulary."""
    from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

    figure, (axes,) = new_axes(9, 5.5)
    most = len(covered) - 1
    axes.plot(range(1, most + 1), covered[1:], color=DATA_COLOUR, linewidth=1.8)
    axes.set(xscale="log", xlim=(1, max(2, most)), ylim=(0, 1))
    axes.set(xlabel="most frequent words", ylabel="tokens of the training text covered")
    axes.xaxis.set_major_locator(LogLocator(10, numticks=10))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda count, _: format_count(count))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    _mark_sizes(axes, covered, vocabulary[0] if vocabulary else most)
    if vocabulary:
        _mark_vocabulary(axes, *vocabulary, is_right=vocabulary[0] > most**0.5)
    text = f"{most:,} words\n{covered[most]:.1%}"
    label_ends(axes, [EndLabel(text=text, height=float(covered[most]), colour=DATA_COLOUR)])
    add_title(figure, title, details)
    return figure


def _mark_sizes(axes: Axes, covered: NDArray[np.float64], line: int) -> None:
    shown = (words for words in _MARKED if not words / _NEAR_BELOW < line < words * _NEAR_ABOVE)
    for words in (words for words in shown if words * _NEAR_ABOVE < len(covered)):
        axes.plot([words], [covered[words]], "o", color=DATA_COLOUR, markersize=4)
        style: dict[str, Any] = {"ha": "right", "fontsize": 9, "color": DATA_COLOUR}
        axes.annotate(
            f"{covered[words]:.1%}", xy=(words, covered[words]), xytext=(-6, 4), textcoords="offset points", **style
        )


def _mark_vocabulary(axes: Axes, num_words: int, coverage: float, *, is_right: bool) -> None:
    """Draw a line at the vocabulary's size, labelled at the bottom, where the curve is far away."""
    colour = BASELINE_COLOURS[0]
    axes.axvline(num_words, linestyle="--", linewidth=1.2, color=colour, clip_on=False)
    axes.plot([num_words], [coverage], "o", color=colour, markersize=6, clip_on=False)
    style: dict[str, Any] = {"va": "bottom", "fontsize": 9, "color": colour}
    place: dict[str, Any] = {"xytext": (-8, 0), "ha": "right"} if is_right else {"xytext": (8, 0), "ha": "left"}
    text = f"vocabulary: {num_words:,} words,\n{coverage:.1%} of the tokens"
    axes.annotate(text, xy=(num_words, 0.03), textcoords="offset points", **place, **style)
