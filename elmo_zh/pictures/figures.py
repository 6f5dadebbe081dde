"""Draw figures: of a training run, of tasks, of a word's usages, and of distances between periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.language import N_
from elmo_zh.pictures.canvas import (
    BASELINE_COLOUR,
    DATA_COLOUR,
    QUIET_COLOUR,
    add_title,
    can_write,
    drawable,
    format_count,
    format_figure,
    in_language,
    new_axes,
    ticks_of_logarithms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The thick line of the training loss is the mean over this fraction of the logged values.
_SMOOTHED_FRACTION = 0.05
# The perplexity of a model that has diverged is not drawn: axes cannot reach to infinity.
_MOST_PERPLEXITY = 1e100
_MOST_LABELS, _LABEL_CHARACTERS = 30, 20
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart, and a marker for each.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Above this number, points are drawn smaller and more transparent.
_MANY = 300


def training_figure(
    lines: Sequence[Mapping[str, Any]], baselines: Mapping[str, Any], title: str, details: Sequence[str]
) -> Figure:
    """Draw the perplexities and losses in metrics.jsonl, with the n-gram models' perplexities as horizontal lines."""
    from matplotlib.ticker import MaxNLocator

    figure, (perplexity_axes, loss_axes) = new_axes(9, 7.5, (3, 2))
    losses = [line for line in lines if "train_loss" in line]
    _draw_perplexity(perplexity_axes, lines, baselines)
    _draw_loss(loss_axes, losses)
    last = max((line["tokens"] for line in lines), default=0) or 1
    loss_axes.set_xlim(0, last)
    loss_axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    loss_axes.xaxis.set_major_formatter(lambda count, _: format_count(count))
    loss_axes.set_xlabel(in_language(N_("training tokens, per direction")))
    add_title(figure, title, details)
    return figure


def _draw_perplexity(axes: Axes, lines: Sequence[Mapping[str, Any]], baselines: Mapping[str, Any]) -> None:
    """Draw the baselines' and the model's held-out perplexities; omit the model's at step 0, usually far higher."""
    samples = [line for line in lines if line.get("heldout_set") == "sample" and line["step"]]
    samples = [line for line in samples if line["heldout_perplexity"] < _MOST_PERPLEXITY]  # false for NaN too
    values = [line["heldout_perplexity"] for line in samples]
    if values:  # a curve without points would leave the axes no room
        style: dict[str, Any] = {"color": DATA_COLOUR, "marker": "o", "markersize": 4, "clip_on": False}
        label = f"biLM {format_figure(values[-1])}"
        axes.plot([line["tokens"] for line in samples], values, label=label, **style)
    for (name, figures), dashes in zip(baselines.items(), ("--", ":"), strict=False):
        label = f"{in_language(name)} {format_figure(figures['perplexity'])}"
        axes.axhline(figures["perplexity"], linestyle=dashes, linewidth=1.4, color=BASELINE_COLOUR, label=label)
    axes.margins(y=0.12)
    axes.set(yscale="log", ylabel=in_language(N_("held-out perplexity")))
    axes.set_yticks(ticks_of_logarithms(*axes.get_ylim()))
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    if values or baselines:
        axes.legend(frameon=False)


def _draw_loss(axes: Axes, losses: Sequence[Mapping[str, Any]]) -> None:
    axes.set_ylabel(in_language(N_("training loss (nats per token)")))
    if not losses:
        return
    tokens, values = (np.array([line[name] for line in losses], np.float64) for name in ("tokens", "train_loss"))
    axes.plot(tokens, values, color=DATA_COLOUR, linewidth=0.8, alpha=0.4)
    # The mean of each value and its neighbours, fewer at the ends.
    window = np.ones(2 * round(_SMOOTHED_FRACTION / 2 * len(values)) + 1)
    smooth = np.convolve(values, window, "same") / np.convolve(np.ones(len(values)), window, "same")
    label = in_language(N_("smoothed: {value}"), value=f"{smooth[-1]:.2f}")
    axes.plot(tokens, smooth, color=DATA_COLOUR, linewidth=1.8, label=label)
    axes.legend(frameon=False)


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
    loss_axes.set(ylabel=in_language("training loss"), xlabel=in_language("epochs"))
    loss_axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(seeds) > 1:
        score_axes.legend(frameon=False)
    add_title(figure, title, [])
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


def drift_figure(curves: Mapping[str, Sequence[Point]], boundaries: Sequence[str], by: str, layer: int) -> Figure:
    """Draw a curve for each word across the boundaries between periods; hollow markers show non-significant changes."""
    # The legend has a line for each word.
    figure, (axes,) = new_axes(max(8.0, 4 + 1.5 * len(boundaries)), max(5.5, 1.5 + 0.25 * len(curves)))
    for number, (label, points) in enumerate(zip(drawable([*curves]), curves.values(), strict=True)):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]
        offset = _SPREAD * ((number + 0.5) / len(curves) - 0.5)
        places = [place + offset for place in range(len(points))]
        values = [point.distance for point in points]
        axes.plot(places, values, color=colour, linewidth=1, alpha=0.6)
        axes.vlines(places, [point.low for point in points], [point.high for point in points], color=colour, alpha=0.6)
        faces = [colour if point.is_found else "white" for point in points]
        axes.scatter(places, values, s=34, marker=marker, facecolors=faces, edgecolors=colour, zorder=3)
        axes.plot([], [], color=colour, marker=marker, label=label)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(boundaries)), drawable(boundaries))
    axes.set_xlim(-0.5, len(boundaries) - 0.5)
    axes.set_ylabel(in_language("{by}, layer {layer}", by=by, layer=layer))
    _add_legend(axes, fontsize=10)
    detail = in_language("bars: 95% intervals; filled markers: q below 0.05")
    add_title(figure, in_language("Changes in usage between periods"), [detail])
    return figure
