"""Draw a map of a word's occurrences, coloured by usage, and curves of words' distances between periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.pictures.canvas import add_title, can_write, drawable, in_language, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart, and a marker for each.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Above this number, points are drawn smaller and more transparent.
_MANY = 300


def usages_figure(
    places: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    names: Sequence[Sequence[str]],
    title: str,
    details: Sequence[str],
) -> Figure:
    """Draw occurrences, coloured by usage, at the first two coordinates of their positions, shape (n, d)."""
    figure, (axes,) = new_axes(9, 6.5)
    flat = np.zeros((len(places), 2))
    flat[:, : places.shape[1]] = places[:, :2]
    size, alpha = (14, 0.5) if len(flat) > _MANY else (34, 0.75)
    for number, name in enumerate(names):
        style: dict[str, Any] = {
            "s": size,
            "alpha": alpha,
            "linewidths": 0,
            "label": "\n".join(filter(can_write, name)),
        }
        kind = number % len(COLOURS)
        axes.scatter(*flat[labels == number].T, color=COLOURS[kind], marker=MARKERS[kind], **style)
    axes.set(xlabel=in_language("first principal component"), ylabel=in_language("second principal component"))
    # Readers compare distances by eye, so both axes have the same scale.
    axes.set_aspect("equal", adjustable="datalim")
    _add_legend(axes, fontsize=9)
    add_title(figure, title, list(filter(can_write, details)))
    return figure


def _add_legend(axes: Axes, fontsize: int) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=fontsize)


# Words are spread over this fraction of the distance between boundaries, so that their intervals do not overlap.
_SPREAD = 0.5


class Point(NamedTuple):
    """A distance between two periods, with its interval and significance."""

    distance: float
    low: float
    high: float
    is_found: bool


def drift_figure(curves: Mapping[str, Sequence[Point]], boundaries: Sequence[str], measure: str) -> Figure:
    """Draw a curve for each word across the boundaries between periods; hollow markers show non-significant changes."""
    # The legend has a line for each word.
    figure, (axes,) = new_axes(max(8.0, 4 + 1.5 * len(boundaries)), max(5.5, 1.5 + 0.25 * len(curves)))
    for number, (word, points) in enumerate(curves.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        offset = _SPREAD * ((number + 0.5) / len(curves) - 0.5)
        places = [place + offset for place in range(len(points))]
        values = [point.distance for point in points]
        label = word if can_write(word) else in_language("word {number}", number=number + 1)
        axes.plot(places, values, color=colour, linewidth=1, alpha=0.6)
        axes.vlines(places, [point.low for point in points], [point.high for point in points], color=colour, alpha=0.6)
        faces = [colour if point.is_found else "white" for point in points]
        axes.scatter(places, values, s=34, marker=marker, facecolors=faces, edgecolors=colour, zorder=3)
        axes.plot([], [], color=colour, marker=marker, label=label)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(boundaries)), drawable(boundaries))
    axes.set_xlim(-0.5, len(boundaries) - 0.5)
    axes.set_ylabel(in_language(measure))
    _add_legend(axes, fontsize=10)
    detail = in_language("bars: 95% intervals; filled markers: q below 0.05")
    add_title(figure, in_language("Changes in usage between periods"), [detail])
    return figure
