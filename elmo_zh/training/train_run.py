"""The train stage: from the token id store to checkpoints, with all checks and reports around training."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory, peak_memory_bytes
from elmo_zh.config import Config
from elmo_zh.id_store import IdStore, load_id_store
from elmo_zh.invocation import needs
from elmo_zh.language import N_, _
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.pictures.canvas import can_draw, in_language, save_picture
from elmo_zh.pictures.figures import training_figure
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageResult
from elmo_zh.run.reporter import Reporter, first_ten, format_bytes, format_seconds
from elmo_zh.training.checkpoint import CheckpointFolder, MetricsFile
from elmo_zh.training.computation import Computation, choose_computation, require_memory
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup
from elmo_zh.training.evaluation import evaluate_heldout, measure_baselines, text_cost
from elmo_zh.training.initial_weights import Start, new_weights, prepare_start
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.training.trainer import Trainer
from elmo_zh.training.verdict import TrainingFigures, describe_verdict, judge
from elmo_zh.vocabulary.vocabulary import load_counts, load_vocabulary


def train_run(run: RunDir, config: Config, reporter: Reporter, group: ProcessGroup = SINGLE_PROCESS) -> StageResult:
    """Train a run's model until its budget or its time is used up, from the start or from the last checkpoint.

    All ranks of a process group call this. Only rank 0 reports and writes; the other ranks return an empty result.
    """
    vocabulary = load_vocabulary(run.vocab)
    # Raises RunError unless words are sorted by descending count, as drawing negatives requires.
    group.on_rank_0(lambda: bool(load_counts(run.vocab_counts, vocabulary)))
    store = load_id_store(run.ids, vocabulary, config.model.num_slots)
    device = group.choose_device(config.train.device)
    checkpoints = CheckpointFolder(run.checkpoints, config.train.keep_checkpoints, group)
    computation = _choose_computation(config, device, checkpoints, reporter)
    group.on_rank_0(lambda: require_memory(config.model, config.train, len(vocabulary), device))
    baselines = group.on_rank_0(lambda: _measured_baselines(store, config.train.seed, reporter))
    # Called only now, so that the memory for counting bigrams has been returned to the system.
    keep_freed_memory()
    starts: list[Start] = []  # empty except on rank 0, which sends its weights to the others
    if config.train.init:
        group.on_rank_0(lambda: starts.append(prepare_start(run, config, vocabulary, store, reporter)))
    start = starts[0] if starts else None
    trainer = Trainer(
        model=LanguageModel.from_settings(config.model, len(vocabulary)),
        store=store,
        vocabulary_digest=vocabulary.digest(),
        config=config.train,
        checkpoints=checkpoints,
        metrics=MetricsFile(run.metrics, is_used=group.is_rank_0),
        device=device,
        computation=computation,
        reporter=reporter,
        initialise=start.fill if start else new_weights(run, config, vocabulary),
        group=group,
    )
    is_resumed = trainer.resume()
    if start and not is_resumed:
        start.report(reporter)
    _report_plan(trainer, is_resumed=is_resumed)
    trainer.train()
    heldout = _evaluate_best(trainer)
    if not group.is_rank_0:
        return StageResult(outputs=[])
    tokens = trainer.step * step_tokens(config.train)
    counts: dict[str, Any] = {
        "steps": trainer.step,
        "tokens": tokens,
        "epochs": round(tokens / store.train.num_predictions, 3),
        "training_seconds": round(trainer.elapsed_seconds, 3),
        "computation": asdict(computation),
        "memory": {"peak_bytes": peak_memory_bytes()},
        "baselines": baselines,
        **({"started_from": {"digest": start.info["digest"], **start.info["rows"]}} if start else {}),
        **({"heldout": heldout} if heldout else {}),
    }
    return _report_result(run, config, trainer, counts)


def _choose_computation(
    config: Config, device: torch.device, checkpoints: CheckpointFolder, reporter: Reporter
) -> Computation:
    """Choose how to compute; settings left open keep the values they had before an interruption."""
    steps = checkpoints.steps()
    previous = checkpoints.state(steps[-1]).get("computation", {}) if steps else {}

    def choose() -> str:
        return choose_computation(config.train, config.model, device, previous).precision

    # Rank 0 measures for all ranks, even if they have different processors.
    known = {**previous, "precision": checkpoints.group.on_rank_0(choose)}
    computation = choose_computation(config.train, config.model, device, known)
    if differences := computation.differences(previous):
        message = _("From here on, the results may differ slightly from an uninterrupted run's: {differences}.")
        reporter.warn(message.format(differences=first_ten(differences)))
    return computation


# Reports and results


def _measured_baselines(store: IdStore, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Return each n-gram baseline's perplexity and bits per character on all held-out text; warn if it is empty."""
    if not len(store.heldout):
        reporter.warn(_("No text was held out, so it is not known how good the model is."))
        return {}
    baselines = {}
    for name, nats in measure_baselines(store, seed).items():
        measured = text_cost(store, np.arange(len(store.heldout)), nats, nats).figures()
        baselines[name] = {"perplexity": measured.perplexity, "bits_per_character": measured.bits_per_character}
    return baselines


def _report_plan(trainer: Trainer, *, is_resumed: bool) -> None:
    """Report the plan and, if training is resumed, the step from which it continues."""
    config, reporter = trainer.config, trainer.reporter
    num_steps, num_predictions = trainer.schedule.num_steps, trainer.store.train.num_predictions
    message = _(
        "Plan: {steps} steps = {epochs} epochs = {tokens} predicted tokens per direction; {parameters} parameters, on"
        " {device} ({precision})."
    )
    tokens = num_steps * step_tokens(config)
    amounts = {"steps": num_steps, "tokens": tokens, "parameters": trainer.model.num_parameters()}
    device = trainer.device.type + (f" x {trainer.group.size}" if trainer.group.size > 1 else "")
    gaps = {name: f"{amount:,}" for name, amount in amounts.items()} | {"epochs": f"{tokens / num_predictions:.2f}"}
    reporter.note(message.format(device=device, precision=trainer.computation.precision, **gaps))
    if is_resumed:
        message = _("Resuming from step {step} of {total}.")
        reporter.note(message.format(step=f"{trainer.step:,}", total=f"{num_steps:,}"))


def _evaluate_best(trainer: Trainer) -> dict[str, Any] | None:
    """Score the best checkpoint on all held-out text; return its step and figures, or None without held-out text."""
    checkpoints, store = trainer.checkpoints, trainer.store
    best = checkpoints.best_step()
    if best is None:
        return None
    known = checkpoints.state(best).get("heldout_full")
    if known:
        return {"step": best, **known}
    if best != trainer.step:
        trainer.model.load_named_tensors(checkpoints.load(best, with_optimizer=False).model)
    with trainer.reporter.progress("evaluate", unit="tokens", total=store.heldout.num_predictions) as progress:
        figures = evaluate_heldout(trainer.model, store, np.arange(len(store.heldout)), progress, trainer.group)
    trainer.append_figures(figures, "full", step=best)
    checkpoints.update_state(best, {"heldout_full": asdict(figures)})
    return {"step": best, **asdict(figures)}


def _report_result(run: RunDir, config: Config, trainer: Trainer, counts: dict[str, Any]) -> StageResult:
    reporter, heldout = trainer.reporter, counts.get("heldout") or {}
    message = _("Trained on {tokens} tokens ({epochs} epochs, {steps} steps) in {time}; peak memory {memory}.")
    amounts = {"tokens": f"{counts['tokens']:,}", "epochs": f"{counts['epochs']:.2f}", "steps": f"{counts['steps']:,}"}
    time, memory = format_seconds(counts["training_seconds"]), format_bytes(counts["memory"]["peak_bytes"])
    reporter.note(message.format(time=time, memory=memory, **amounts))
    if heldout:
        message = _(
            "Results on all held-out text, checkpoint from step {step}: perplexity {perplexity} (forward {forward},"
            " backward {backward}), {bits} bits per character."
        )
        names = {"perplexity": "perplexity", "forward": "forward_perplexity", "backward": "backward_perplexity"}
        perplexities = {gap: f"{heldout[name]:,.1f}" for gap, name in names.items()}
        bits = f"{heldout['bits_per_character']:.3f}"
        reporter.note(message.format(step=f"{heldout['step']:,}", bits=bits, **perplexities))
    lines = trainer.metrics.lines()
    outputs = [*trainer.checkpoints.files(heldout.get("step", trainer.step)), run.metrics]
    if can_draw():
        title = in_language(N_("biLM of the run {run}"), run=run.name)
        save_picture(training_figure(lines, counts["baselines"], title, ()), run.training_picture)
        outputs.append(run.training_picture)
    else:
        reporter.note(needs("training.png", "matplotlib", "words"))
    figures = TrainingFigures(
        train_tokens=trainer.store.train.num_tokens,
        perplexity=heldout.get("perplexity"),
        bigram=counts["baselines"].get("bigram", {}).get("perplexity", math.inf),
        curve=[(line["tokens"], line["heldout_perplexity"]) for line in lines if line.get("heldout_set") == "sample"],
        unknown_rate=heldout.get("oov_rate", 0.0),
        num_rows=trainer.model.bilm.shape.num_tokens,
        started_from_model="started_from" in counts,
        config=config,
    )
    findings = [asdict(finding) for finding in judge(figures)]
    for line in describe_verdict(findings):
        reporter.note(line)
    details = {} if trainer.is_finished else {"continues": True}
    return StageResult(outputs=outputs, counts={**counts, "findings": findings}, details=details)
