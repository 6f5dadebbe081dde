"""training.png: how the loss and the held-out perplexity fell."""

from pathlib import Path
from typing import Any

from elmo_zh.pictures import save_picture


def draw_training(lines: list[dict[str, Any]], output: Path, baselines: dict[str, float]) -> None:
    """Draw training loss and held-out perplexity over the tokens trained, the baselines as flat lines."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    figure = Figure(figsize=(8, 7), layout="constrained")
    loss_axes, perplexity_axes = figure.subplots(2, 1, sharex=True)
    losses = [line for line in lines if "train_loss" in line]
    loss_axes.plot([line["tokens"] for line in losses], [line["train_loss"] for line in losses], linewidth=1)
    loss_axes.set_ylabel("training loss (nats per token)")
    loss_axes.grid(alpha=0.3)
    measured = [line for line in lines if line.get("heldout_set") == "sample"]
    tokens = [line["tokens"] for line in measured]
    perplexity_axes.plot(
        tokens, [line["heldout_perplexity"] for line in measured], marker="o", label="biLM, held-out sample"
    )
    for name, value in baselines.items():
        perplexity_axes.axhline(
            value, linestyle="--", color="gray" if name == "unigram" else "black", label=f"{name} baseline"
        )
    perplexity_axes.set_yscale("log")
    for labels in (perplexity_axes.yaxis.set_major_formatter, perplexity_axes.yaxis.set_minor_formatter):
        labels(StrMethodFormatter("{x:,.0f}"))
    perplexity_axes.set_ylabel("exact held-out perplexity")
    perplexity_axes.set_xlabel("tokens trained (one direction)")
    perplexity_axes.grid(alpha=0.3, which="both")
    perplexity_axes.legend()
    save_picture(figure, output)
