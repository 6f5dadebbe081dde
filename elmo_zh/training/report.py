"""Report a training run: its plan, its cost, how well the model predicts, and the picture training.png."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from elmo_zh.config import Config, TrainConfig
from elmo_zh.id_store import IdStore
from elmo_zh.language import N_, _
from elmo_zh.pictures.canvas import format_figure, in_language, save_picture
from elmo_zh.pictures.figures import training_figure
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter, format_bytes, format_seconds
from elmo_zh.training.evaluation import measure_baselines, measure_text
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.training.trainer import Trainer


def report_baselines(store: IdStore, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Report and return the n-gram baselines' perplexity and bits per character on all held-out text, by name."""
    if not len(store.heldout):
        reporter.warn(_("No text is held out, so perplexity cannot be measured."))
        return {}
    nats = measure_baselines(store, seed)
    measure = measure_text(store, np.arange(len(store.heldout)))
    baselines = {
        name: {"perplexity": measure.perplexity(value), "bits_per_character": measure.bits_per_character(value)}
        for name, value in nats.items()
    }
    listed = ", ".join(f"{_(name)} {figures['perplexity']:,.1f}" for name, figures in baselines.items())
    reporter.note(_("Held-out perplexity of n-gram models, for comparison: {figures}.").format(figures=listed))
    return baselines


def report_plan(trainer: Trainer, config: TrainConfig) -> None:
    """Report the size of the text, and what training on it will take."""
    store, group, reporter = trainer.store, trainer.group, trainer.reporter
    num_steps = trainer.schedule.num_steps
    tokens = num_steps * step_tokens(config)
    device = trainer.device.type
    where = f"{device} x {group.size}" if group.size > 1 else device
    message = _("Training text: {train} tokens in {sentences} sentences; held-out text: {heldout} tokens.")
    sizes = (store.train.num_tokens, len(store.train), store.heldout.num_tokens)
    reporter.note(message.format(**_in_thousands(("train", "sentences", "heldout"), sizes)))
    message = _(
        "Plan: {steps} steps = {epochs} epochs = {tokens} predicted tokens per direction; {parameters} parameters, on"
        " {device} ({precision})."
    )
    amounts = _in_thousands(("steps", "tokens", "parameters"), (num_steps, tokens, trainer.model.num_parameters()))
    epochs, precision = f"{tokens / store.train.num_predictions:.2f}", trainer.computation.precision
    reporter.note(message.format(epochs=epochs, device=where, precision=precision, **amounts))


def _in_thousands(names: Sequence[str], values: Sequence[int]) -> dict[str, str]:
    return {name: f"{value:,}" for name, value in zip(names, values, strict=True)}


def report_resumption(trainer: Trainer) -> None:
    """Report that training continues, or that its budget is used up."""
    step, num_steps = trainer.step, trainer.schedule.num_steps
    message = _("Resuming from step {step} of {total}.")
    if step > num_steps:
        message = _(
            "Step {step} is beyond the budget of {total}. To train longer: raise train.max_tokens, train.epochs."
        )
    trainer.reporter.note(message.format(step=f"{step:,}", total=f"{num_steps:,}"))


def report_summary(counts: Mapping[str, Any], reporter: Reporter) -> None:
    """Report the cost of training, and how well the model predicts."""
    message = _("Trained on {tokens} tokens ({epochs} epochs, {steps} steps) in {time}; peak memory {memory}.")
    reporter.note(
        message.format(
            tokens=f"{counts['tokens']:,}",
            epochs=f"{counts['epochs']:.2f}",
            steps=f"{counts['steps']:,}",
            time=format_seconds(counts["training_seconds"]),
            memory=format_bytes(counts["memory"]["peak_bytes"]),
        )
    )
    if "heldout" not in counts:
        return
    heldout = counts["heldout"]
    message = _(
        "Results on all held-out text, checkpoint from step {step}: perplexity {perplexity} (forward {forward},"
        " backward"
        " {backward}), {bits} bits per character."
    )
    names = {"perplexity": "perplexity", "forward": "forward_perplexity", "backward": "backward_perplexity"}
    perplexities = {gap: f"{heldout[name]:,.1f}" for gap, name in names.items()}
    bits = f"{heldout['bits_per_character']:.3f}"
    reporter.note(message.format(step=f"{heldout['step']:,}", bits=bits, **perplexities))


def draw_run(run: RunDir, config: Config, counts: Mapping[str, Any]) -> None:
    """Draw the curves of a run's training as training.png."""
    model = config.model
    detail = N_(
        "{mode} mode, {layers} layers, cell {cell}, projection {projection}; trained for {time} ({epochs} epochs)"
    )
    sizes = {"layers": model.num_layers, "cell": model.cell_dim, "projection": model.projection_dim}
    amounts = {"time": format_seconds(counts["training_seconds"]), "epochs": f"{counts['epochs']:,.1f}"}
    details = [in_language(detail, mode=model.mode, **sizes, **amounts)]
    if heldout := counts.get("heldout"):
        detail = N_("all held-out text: perplexity {perplexity}, {bits} bits per character")
        perplexity, bits = format_figure(heldout["perplexity"]), f"{heldout['bits_per_character']:.3f}"
        details.append(in_language(detail, perplexity=perplexity, bits=bits))
    lines, title = MetricsFile(run.metrics).lines(), in_language(N_("biLM of the run {run}"), run=run.name)
    figure = training_figure(lines, counts["baselines"], title, details)
    save_picture(figure, run.training_picture)
