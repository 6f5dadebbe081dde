"""The usages of a word as a map: the two principal components of its occurrences, coloured by usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.pictures.canvas import add_title, can_write, font_families, new_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; a marker each as well.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# From so many points on they are drawn small and see-through.
_MANY = 300


def usages_figure(
    places: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    names: Sequence[Sequence[str]],
    title: str,
    details: Sequence[str],
) -> Figure:
    """Return the map of occurrences, of whose places (n, d) the first two numbers are drawn, coloured by usage.

    Lines of the legend of each usage that have a character which no installed font has are left out.
    """
    figure, (axes,) = new_axes(9, 6.5)
    flat = np.zeros((len(places), 2))
    flat[:, : places.shape[1]] = places[:, :2]
    size, alpha = (14, 0.5) if len(flat) > _MANY else (34, 0.75)
    for number, name in enumerate(names):
        own = flat[labels == number]
        kind = number % len(COLOURS)
        axes.scatter(
            own[:, 0], own[:, 1], s=size, alpha=alpha, color=COLOURS[kind], marker=MARKERS[kind], linewidths=0,
            label="\n".join(filter(can_write, name)),
        )  # fmt: skip
    axes.set(xlabel="first principal component", ylabel="second principal component")
    # Distances are compared by eye, so both axes have one scale.
    axes.set_aspect("equal", adjustable="datalim")
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
    for text in legend.get_texts():
        if families := font_families(text.get_text().replace("\n", "")):
            text.set_fontfamily(families)
    add_title(figure, title, list(filter(can_write, details)))
    return figure
