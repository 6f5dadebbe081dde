"""The distance of words between consecutive periods, with intervals, as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from elmo_zh.pictures.canvas import add_title, can_write, font_families, new_axes
from elmo_zh.pictures.usages import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Part of the distance between two boundaries over which the words are spread, so that their intervals do not overlap.
_SPREAD = 0.5


class Point(NamedTuple):
    """A distance between two periods, its interval, and whether it is significant."""

    distance: float
    low: float
    high: float
    is_found: bool


def drift_figure(curves: Mapping[str, Sequence[Point]], boundaries: Sequence[str], measure: str) -> Figure:
    """Return the curve of each word over the boundaries between periods; what is not significant is a hollow marker.

    Numbers, as they come, stand for words and boundaries that no installed font has.
    """
    figure, (axes,) = new_axes(max(8.0, 4 + 1.5 * len(boundaries)), 5.5)
    for number, (word, points) in enumerate(curves.items()):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        offset = _SPREAD * ((number + 0.5) / len(curves) - 0.5)
        places = [place + offset for place in range(len(points))]
        values = [point.distance for point in points]
        label = word if can_write(word) else f"word {number + 1}"
        axes.plot(places, values, color=colour, linewidth=1, alpha=0.6)
        axes.vlines(places, [point.low for point in points], [point.high for point in points], color=colour, alpha=0.6)
        faces = [colour if point.is_found else "white" for point in points]
        axes.scatter(places, values, s=34, marker=marker, facecolors=faces, edgecolors=colour, zorder=3)
        axes.plot([], [], color=colour, marker=marker, label=label)
    axes.axhline(0, color="black", linewidth=0.8)
    names = [name if can_write(name) else str(number + 1) for number, name in enumerate(boundaries)]
    axes.set_xticks(range(len(names)), names, fontfamily=font_families("".join(names)))
    axes.set_xlim(-0.5, len(boundaries) - 0.5)
    axes.set_ylabel(measure)
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    for text in legend.get_texts():
        if families := font_families(text.get_text()):
            text.set_fontfamily(families)
    add_title(figure, "Change of use between periods", ["95% intervals; filled: q below 0.05"])
    return figure
