"""Report a training run: its plan, its cost, how well the model predicts, and the picture training.png."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from elmo_zh.config import Config, TrainConfig
from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.language import translate
from elmo_zh.pictures.canvas import format_figure, save_picture
from elmo_zh.pictures.runs import training_figure
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter, counted, format_seconds
from elmo_zh.training.evaluation import measure_baselines, measure_text
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.training.trainer import Trainer
from elmo_zh.vocabulary.vocabulary import load_vocabulary


def report_baselines(store: IdStore, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Report and return the n-gram baselines' perplexity and bits per character on all held-out text, by name."""
    if not len(store.heldout):
        reporter.warn("No text is held out, so perplexity cannot be measured.")
        return {}
    nats = measure_baselines(store, seed)
    measure = measure_text(store, np.arange(len(store.heldout)))
    baselines = {
        name: {"perplexity": measure.perplexity(value), "bits_per_character": measure.bits_per_character(value)}
        for name, value in nats.items()
    }
    listed = ", ".join(
        f"{translate(name)} {figures['perplexity']:,.1f} ({figures['bits_per_character']:.3f} bits per character)"
        for name, figures in baselines.items()
    )
    reporter.note(f"Held-out perplexity of n-gram baselines, for comparison with the model: {listed}.")
    return baselines


def report_plan(trainer: Trainer, config: TrainConfig) -> None:
    """Report the size of the text, and what training on it will take."""
    store, group, reporter = trainer.store, trainer.group, trainer.reporter
    num_steps = trainer.schedule.num_steps
    tokens = num_steps * step_tokens(config)
    device = trainer.device.type
    where = f"{device} in {group.size} processes" if group.size > 1 else device
    reporter.note(
        f"Training text: {counted(store.train.num_tokens, 'token')} in {counted(len(store.train), 'sentence')};"
        f" held-out text: {counted(store.heldout.num_tokens, 'token')} in"
        f" {counted(len(store.heldout), 'sentence')}."
    )
    reporter.note(
        f"Plan: {counted(num_steps, 'step')} = {tokens / store.train.num_predictions:.2f} epochs = {tokens:,} predicted"
        f" tokens per direction; {trainer.model.num_parameters():,} parameters, on {where}"
        f" ({trainer.computation.precision})."
    )


def report_resumption(trainer: Trainer) -> None:
    """Report that training continues, or that its budget is used up."""
    step, num_steps = trainer.step, trainer.schedule.num_steps
    if step <= num_steps:
        trainer.reporter.note(f"Resuming from step {step:,} of {num_steps:,}.")
    else:
        trainer.reporter.note(
            f"Nothing to train: this run has already trained for {counted(step, 'step')}, more than its budget of"
            f" {num_steps:,}. To train longer, raise train.max_tokens and train.epochs."
        )


def report_summary(counts: Mapping[str, Any], reporter: Reporter) -> None:
    """Report the cost of training, and how well the model predicts."""
    reporter.note(
        f"Trained on {counts['tokens']:,} tokens ({counts['epochs']:.2f} epochs, {counted(counts['steps'], 'step')}) in"
        f" {format_seconds(counts['training_seconds'])}, including evaluations; peak memory"
        f" {counts['memory']['peak_bytes'] / 1e9:.1f} GB."
    )
    if "heldout" not in counts:
        return
    heldout = counts["heldout"]
    reporter.note(
        f"Results on all held-out text ({heldout['num_predictions']:,} predictions), checkpoint from step"
        f" {heldout['step']:,}: perplexity {heldout['perplexity']:,.1f} (forward {heldout['forward_perplexity']:,.1f},"
        f" backward {heldout['backward_perplexity']:,.1f}), {heldout['bits_per_character']:.3f} bits per character."
    )


def draw_run(run: RunDir, config: Config, counts: Mapping[str, Any]) -> None:
    """Draw the curves of a run's training as training.png."""
    model, num_rows = config.model, len(load_vocabulary(run.vocab))
    kind = "token mode" if model.mode == "token" else "character mode"
    details = [
        f"{kind}, layers: {model.num_layers} (cell size {model.cell_dim}, projection size {model.projection_dim});"
        f" vocabulary of {num_rows:,} rows; trained for {format_seconds(counts['training_seconds'])}"
        f" ({counts['epochs']:,.1f} epochs)"
    ]
    if heldout := counts.get("heldout"):
        details.append(
            f"checkpoint from step {heldout['step']:,} on all held-out text: perplexity"
            f" {format_figure(heldout['perplexity'])}, {heldout['bits_per_character']:.3f} bits per character"
        )
    lines = MetricsFile(run.metrics).lines()
    figure = training_figure(lines, counts["baselines"], f"biLM of the run {run.name}", details)
    save_picture(figure, run.training_picture)
