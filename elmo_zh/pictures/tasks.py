"""Draw the pictures of tasks: training and learning curves, confusion matrix, and predicted against true numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.pictures.canvas import DATA_COLOUR, QUIET_COLOUR, add_title, drawable, in_language, new_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LABELS, _LABEL_CHARACTERS = 30, 20


def curve_figure(lines: Sequence[Mapping[str, Any]], metric: str, title: str) -> Figure:
    """Draw loss and development score by epoch, one line per seed."""
    from matplotlib.ticker import MaxNLocator

    figure, (score_axes, loss_axes) = new_axes(8, 6, (1, 1))
    seeds = list(dict.fromkeys(line["seed"] for line in lines))
    for number, seed in enumerate(seeds):
        epochs = [line for line in lines if line["seed"] == seed]
        style: dict[str, Any] = {"marker": "o", "markersize": 4, "alpha": 1 - 0.6 * number / len(seeds)}
        for axes, name in ((score_axes, "dev_score"), (loss_axes, "train_loss")):
            points = [line["epoch"] for line in epochs], [line[name] for line in epochs]
            axes.plot(*points, label=in_language("seed {seed}", seed=seed), color=DATA_COLOUR, **style)
    score_axes.set_ylabel(in_language("{metric} on the development examples", metric=metric))
    loss_axes.set(ylabel=in_language("training loss"), xlabel=in_language("epoch"))
    loss_axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(seeds) > 1:
        score_axes.legend(frameon=False)
    best = max(line["dev_score"] for line in lines)
    add_title(figure, title, [in_language("best {metric}: {best}", metric=metric, best=f"{best:.4f}")])
    return figure


def learning_figure(
    curves: Mapping[str, Sequence[tuple[int, Sequence[float]]]], metric: str, title: str, detail: str
) -> Figure:
    """Draw the scores of all seeds and their mean against the number of training examples."""
    figure, (axes,) = new_axes(8, 5)
    for number, (model, points) in enumerate(zip(drawable([*map(in_language, curves)]), curves.values(), strict=True)):
        colour = f"C{number}"
        means = [float(np.mean(scores)) for _, scores in points]
        axes.plot([count for count, _ in points], means, label=model, marker="o", color=colour)
        seeds = [(count, score) for count, scores in points for score in scores]
        axes.scatter([count for count, _ in seeds], [score for _, score in seeds], s=9, color=colour, alpha=0.5)
    counts = [count for count, _ in next(iter(curves.values()))]
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.minorticks_off()
    axes.set(
        xlabel=in_language("training examples"), ylabel=in_language("{metric} on the test examples", metric=metric)
    )
    axes.legend(frameon=False)
    add_title(figure, title, [detail])
    return figure


def confusion_figure(matrix: NDArray[np.int64], labels: Sequence[str], title: str) -> Figure:
    """Draw how often examples of each frequent label (row) were given each of these labels (column)."""
    shown = np.sort(np.argsort(-matrix.sum(axis=1), kind="stable")[:_MOST_LABELS])
    named = drawable([label[:_LABEL_CHARACTERS] for label in labels])
    matrix, names = matrix[np.ix_(shown, shown)], [named[place] for place in shown]
    fractions = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    size = 3.5 + 0.42 * len(names)
    figure, (axes,) = new_axes(size, size)
    axes.grid(visible=False)
    axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=in_language("predicted label"), ylabel=in_language("true label"))
    for row, column in np.argwhere(matrix):
        colour = "white" if fractions[row, column] > 0.5 else QUIET_COLOUR
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": colour}
        axes.text(column, row, f"{matrix[row, column]:,}", **style)
    left_out = len(labels) - len(names)
    add_title(
        figure,
        title,
        [in_language("number of rare labels left out: {left_out}", left_out=left_out)] if left_out else [],
    )
    return figure


def scatter_figure(gold: Sequence[float], predicted: Sequence[float], title: str, detail: str) -> Figure:
    """Draw predicted against true numbers, with the line on which both are equal."""
    figure, (axes,) = new_axes(6, 6)
    # Many points hide each other, so they are drawn more transparent.
    axes.scatter(gold, predicted, s=12, alpha=max(0.1, min(0.7, 100 / len(gold))), color=DATA_COLOUR, linewidths=0)
    ends = (min(*gold, *predicted), max(*gold, *predicted))
    axes.plot(ends, ends, color=QUIET_COLOUR, linewidth=0.8, zorder=0)
    axes.set(xlabel=in_language("true value"), ylabel=in_language("predicted value"))
    add_title(figure, title, [detail])
    return figure
