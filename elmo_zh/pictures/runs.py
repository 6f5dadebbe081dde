"""Draw the picture of a run, training.png, with loss and perplexity against tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elmo_zh.language import N_
from elmo_zh.pictures.canvas import (
    BASELINE_COLOUR,
    DATA_COLOUR,
    add_title,
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


def training_figure(
    lines: Sequence[Mapping[str, Any]], baselines: Mapping[str, Any], title: str, details: Sequence[str]
) -> Figure:
    """Draw the figures in metrics.jsonl, with the perplexities of the n-gram models as horizontal lines."""
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
    """Draw the perplexities after training began: before, they are far above the rest."""
    samples = [line for line in lines if line.get("heldout_set") == "sample" and line["step"]]
    samples = [line for line in samples if line["heldout_perplexity"] < _MOST_PERPLEXITY]  # false for NaN too
    values = [line["heldout_perplexity"] for line in samples]
    label = f"biLM {format_figure(values[-1])}" if values else "biLM"
    style: dict[str, Any] = {"color": DATA_COLOUR, "marker": "o", "markersize": 4, "clip_on": False}
    axes.plot([line["tokens"] for line in samples], values, label=label, **style)
    for (name, figures), dashes in zip(baselines.items(), ("--", ":"), strict=False):
        label = f"{in_language(name)} {format_figure(figures['perplexity'])}"
        axes.axhline(figures["perplexity"], linestyle=dashes, linewidth=1.4, color=BASELINE_COLOUR, label=label)
    axes.margins(y=0.12)
    axes.set(yscale="log", ylabel=in_language(N_("held-out perplexity")))
    axes.set_yticks(ticks_of_logarithms(*axes.get_ylim()))
    axes.set_yticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
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
