"""The usages of a word as a map: the two principal components of its occurrences, coloured by usage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.pictures.canvas import add_title, can_write, font_families, save_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; a marker each as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# From so many points on they are drawn small and see-through.
_MANY = 300


def draw_usages(
    places: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    names: Sequence[Sequence[str]],
    output: Path,
    title: str,
    details: Sequence[str],
) -> None:
    """Draw a map of occurrences as PNG.

    Args:
        places: Place of each occurrence, of which the first two numbers are drawn, shape (n, d).
        labels: Usage of each, from 0, shape (n,).
        names: Lines of the legend for each usage; those with a character that no installed font has are left out.
        output: Path of the picture.
        title: The title.
        details: Lines below the title.
    """
    save_picture(build_usages_figure(places, labels, names, title, details), output)


def build_usages_figure(
    places: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    names: Sequence[Sequence[str]],
    title: str,
    details: Sequence[str],
) -> Figure:
    """Return the figure that `draw_usages` saves."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axes = figure.subplots()
    flat = np.zeros((len(places), 2))
    flat[:, : places.shape[1]] = places[:, :2]
    size, alpha = (14, 0.5) if len(flat) > _MANY else (34, 0.75)
    for number, name in enumerate(names):
        own = flat[labels == number]
        kind = number % len(_COLOURS)
        axes.scatter(
            own[:, 0], own[:, 1], s=size, alpha=alpha, color=_COLOURS[kind], marker=_MARKERS[kind], linewidths=0,
            label="\n".join(filter(can_write, name)),
        )  # fmt: skip
    axes.set(xlabel="first principal component", ylabel="second principal component")
    # Distances are compared by eye, so both axes have one scale.
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
    for text in legend.get_texts():
        if families := font_families(text.get_text().replace("\n", "")):
            text.set_fontfamily(families)
    add_title(figure, title, list(filter(can_write, details)))
    return figure
