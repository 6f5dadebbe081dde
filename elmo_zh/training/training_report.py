"""What the user sees of a training: baselines before it, and the summary and training.png after it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.config import TrainConfig
from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.pictures.save import save_picture
from elmo_zh.run.reporter import Reporter, format_seconds
from elmo_zh.training.baselines import measure_baselines
from elmo_zh.training.heldout_sample import measure_text


def report_baselines(store: IdStore, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Report and return perplexity and bits per character of the n-gram baselines on all held-out text, by name."""
    if not len(store.heldout):
        reporter.warn("No text is held out, so perplexity cannot be measured.")
        return {}
    nats = measure_baselines(store, seed)
    measure = measure_text(store, np.arange(len(store.heldout)))
    baselines = {
        name: {"perplexity": measure.perplexity(value), "bits_per_character": measure.bits_per_character(value)}
        for name, value in asdict(nats).items()
    }
    listed = ", ".join(
        f"{name} {figures['perplexity']:,.1f} ({figures['bits_per_character']:.3f} bits per character)"
        for name, figures in baselines.items()
    )
    reporter.note(f"Held-out perplexity of n-gram baselines, on the same predictions: {listed}.")
    return baselines


def report_summary(counts: Mapping[str, Any], reporter: Reporter) -> None:
    """Report what was trained, what it took, and how well the model predicts compared with the baselines.

    Args:
        counts: The counts of the stage record.
        reporter: Receives the lines.
    """
    reporter.note(
        f"Trained {counts['tokens']:,} tokens ({counts['epochs']:.2f} epochs, {counts['steps']:,} steps) in"
        f" {format_seconds(counts['training_seconds'])}, including evaluations; peak memory"
        f" {counts['memory']['peak_bytes'] / 1e9:.1f} GB (predicted"
        f" {counts['memory']['predicted_bytes'] / 1e9:.1f} GB)."
    )
    if "heldout" not in counts:
        return
    heldout = counts["heldout"]
    reporter.note(
        f"Results on all held-out text ({heldout['num_predictions']:,} predictions), checkpoint of step"
        f" {heldout['step']:,}:"
    )
    reporter.note(f"  {'':16}{'perplexity':>12}{'bits per character':>20}")
    rows = [
        ("biLM", heldout["perplexity"], heldout["bits_per_character"]),
        ("  forward LM", heldout["forward_perplexity"], None),
        ("  backward LM", heldout["backward_perplexity"], None),
        *(
            (name, figures["perplexity"], figures["bits_per_character"])
            for name, figures in counts["baselines"].items()
        ),
    ]
    for name, perplexity, bits in rows:
        reporter.note(f"  {name:16}{perplexity:12,.1f}" + (f"{bits:20.3f}" if bits is not None else ""))


def report_used_budget(train: TrainConfig, reporter: Reporter) -> None:
    """Report that the training budget is used up, and the settings for twice as much."""
    doubled = []
    if train.max_tokens:
        doubled.append(f"train.max_tokens={2 * train.max_tokens}")
    if train.epochs:
        doubled.append(f"train.epochs={2 * train.epochs:g}")
    reporter.note(
        "The training budget is used up. To train longer, repeat the command with"
        f' SET="{" ".join(doubled)}" (make train) or with --set for each setting (elmo-zh).'
    )


def draw_training(lines: list[dict[str, Any]], output: Path, baselines: Mapping[str, Any]) -> None:
    """Draw training.png: training loss and held-out perplexity over the tokens trained.

    Args:
        lines: The lines of metrics.jsonl.
        output: Path of the picture.
        baselines: Figures that `report_baselines` returned, drawn as horizontal lines.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import StrMethodFormatter

    figure = Figure(figsize=(8, 7), layout="constrained")
    loss_axes, perplexity_axes = figure.subplots(2, 1, sharex=True)
    losses = [line for line in lines if "train_loss" in line]
    loss_axes.plot([line["tokens"] for line in losses], [line["train_loss"] for line in losses], linewidth=1)
    loss_axes.set_ylabel("training loss (nats per token)")
    loss_axes.grid(alpha=0.3)
    samples = [line for line in lines if line.get("heldout_set") == "sample"]
    tokens = [line["tokens"] for line in samples]
    perplexity_axes.plot(
        tokens, [line["heldout_perplexity"] for line in samples], marker="o", label="biLM, held-out sample"
    )
    for name, figures in baselines.items():
        perplexity_axes.axhline(
            figures["perplexity"],
            linestyle="--",
            color="gray" if name == "unigram" else "black",
            label=f"{name} baseline",
        )
    perplexity_axes.set_yscale("log")
    for set_formatter in (perplexity_axes.yaxis.set_major_formatter, perplexity_axes.yaxis.set_minor_formatter):
        set_formatter(StrMethodFormatter("{x:,.0f}"))
    perplexity_axes.set_ylabel("exact held-out perplexity")
    perplexity_axes.set_xlabel("tokens trained (one direction)")
    perplexity_axes.grid(alpha=0.3, which="both")
    perplexity_axes.legend()
    save_picture(figure, output)
