"""Report on a training: baselines before it, and the summary and training.png after it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from elmo_zh.config import Config
from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.pictures.canvas import format_figure, name_corpus, save_picture
from elmo_zh.pictures.training import training_figure
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import corpus_files
from elmo_zh.run.reporter import Reporter, counted, format_seconds
from elmo_zh.training.baselines import measure_baselines
from elmo_zh.training.heldout_sample import measure_text
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.vocabulary.vocabulary import load_vocabulary


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
        f"Trained {counts['tokens']:,} tokens ({counts['epochs']:.2f} epochs, {counted(counts['steps'], 'step')}) in"
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


def draw_run(run: RunDir, config: Config, counts: Mapping[str, Any]) -> None:
    """Draw training.png of a run.

    Args:
        run: The run.
        config: Its settings.
        counts: The counts of the stage record.
    """
    model, num_rows = config.model, len(load_vocabulary(run.vocab))
    details = [
        f"{model.mode} mode, {model.num_layers} layers, cell {model.cell_dim}, projection {model.projection_dim};"
        f" vocabulary of {num_rows:,} rows; trained for {format_seconds(counts['training_seconds'])}"
        f" ({counts['epochs']:,.1f} epochs)"
    ]
    if heldout := counts.get("heldout"):
        details.append(
            f"checkpoint of step {heldout['step']:,} on all held-out text: perplexity"
            f" {format_figure(heldout['perplexity'])}, {heldout['bits_per_character']:.3f} bits per character"
        )
    title = f"biLM trained on {name_corpus(run.name, corpus_files(run))}"
    figure = training_figure(MetricsFile(run.metrics).lines(), counts["baselines"], title, details)
    save_picture(figure, run.training_picture)
