"""The train stage: from the token id store to checkpoints, with all checks and reports around training."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory, peak_memory_bytes
from elmo_zh.config import AUTOMATIC, Config
from elmo_zh.errors import RunError
from elmo_zh.id_store import IdStore, load_id_store
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.pictures.canvas import can_draw
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageResult, load_record
from elmo_zh.run.reporter import Reporter
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.computation import Computation, choose_computation, require_memory
from elmo_zh.training.distributed import SINGLE_PROCESS, ProcessGroup
from elmo_zh.training.evaluation import evaluate_heldout
from elmo_zh.training.initial_weights import Start, initialise_model, prepare_start, scale_vectors, unigram_bias
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import choose_dropout, step_tokens
from elmo_zh.training.report import draw_run, report_baselines, report_plan, report_resumption, report_summary
from elmo_zh.training.trainer import Trainer
from elmo_zh.training.verdict import TrainingFigures, describe_verdict, judge
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_counts, load_vocabulary
from elmo_zh.word2vec.vectors import load_word_vectors


@dataclass(frozen=True, kw_only=True)
class _Context:
    run: RunDir
    config: Config
    vocabulary: Vocabulary
    store: IdStore  # The run's training and held-out sentences
    reporter: Reporter  # Receives notes, warnings and progress; silent on ranks other than 0
    group: ProcessGroup


def train_run(run: RunDir, config: Config, reporter: Reporter, group: ProcessGroup = SINGLE_PROCESS) -> StageResult:
    """Train a run's model until its budget is used up, from the start or from the last checkpoint.

    All ranks of a process group call this. Only rank 0 reports and writes; the other ranks return an empty result.
    """
    vocabulary = load_vocabulary(run.vocab)
    # Raises RunError unless words are sorted by descending count, as drawing negatives requires.
    group.on_rank_0(lambda: bool(load_counts(run.vocab_counts, vocabulary)))
    store = load_id_store(run.ids, vocabulary, config.model.num_slots)
    context = _Context(run=run, config=config, vocabulary=vocabulary, store=store, reporter=reporter, group=group)
    _require_documents(context)
    device = group.choose_device(config.train.device)
    checkpoints = CheckpointFolder(run.checkpoints, config.train.keep_checkpoints, group)
    computation = _choose_computation(context, device, checkpoints)
    group.on_rank_0(lambda: require_memory(config.model, config.train, len(vocabulary), device))
    baselines = group.on_rank_0(lambda: report_baselines(store, config.train.seed, reporter))
    # Called only now, so that the memory for counting bigrams has been returned to the system.
    keep_freed_memory()
    starts: list[Start] = []  # empty except on rank 0, which sends its weights to the others
    if config.train.init:
        group.on_rank_0(lambda: starts.append(prepare_start(run, config, vocabulary, store, reporter)))
    start = starts[0] if starts else None
    trainer = _build_trainer(context, device, computation, checkpoints, start)
    is_resumed = trainer.resume()
    if not is_resumed:
        group.on_rank_0(lambda: _check_and_report_start(context, trainer, start))
    report_plan(trainer, config.train)
    if is_resumed:
        report_resumption(trainer)
    _advise(context)
    trainer.train()
    heldout = _evaluate_best(context, trainer)
    if not group.is_rank_0:
        return StageResult(outputs=[])
    tokens = trainer.step * step_tokens(config.train)
    counts: dict[str, Any] = {
        "steps": trainer.step,
        "tokens": tokens,
        "epochs": round(tokens / store.train.num_predictions, 3),
        "training_seconds": round(trainer.elapsed_seconds, 3),
        "computation": trainer.computation.describe(),
        "memory": {"peak_bytes": peak_memory_bytes()},
        "baselines": baselines,
        **(start.counts() if start else {}),
        **({"heldout": heldout} if heldout else {}),
    }
    return _report_result(context, trainer, start, counts)


# Checks of the inputs


def _require_documents(context: _Context) -> None:
    """Raise RunError if documents are shuffled and there are so few that several streams would read the same one."""
    num_documents, config = context.store.train.num_documents, context.config.train
    if config.shuffle == "documents" and num_documents < config.batch_size:
        message = _(
            "train.shuffle = documents needs at least train.batch_size = {needed} documents, but the training text has"
            " only {there}. Set train.shuffle=sentences, or segment the text again with --document paragraph."
        )
        raise RunError(message.format(needed=config.batch_size, there=num_documents))


def _require_vectors_of_this_vocabulary(run: RunDir) -> None:
    """Raise RunError if word2vec.txt was made for a different vocabulary; this matters only when training starts."""
    made_for = load_record(run.stage_record("word2vec")).get("inputs", {}).get("vocab.data", {}).get("digest")
    if made_for and made_for != file_digest(run.vocab):
        message = _("{path} was made for another vocabulary. Recreate it with: {command}")
        raise RunError(message.format(path=run.word2vec, command=command("word2vec", "--run", run.path)))


# Building the trainer


def _choose_computation(context: _Context, device: torch.device, checkpoints: CheckpointFolder) -> Computation:
    """Choose how to compute; settings left open keep the values they had before an interruption."""
    steps = checkpoints.steps()
    previous = checkpoints.state(steps[-1]).get("computation", {}) if steps else {}
    config = context.config

    def choose() -> dict[str, Any]:
        return choose_computation(config.train, config.model, device, previous, context.reporter.note).describe()

    # Rank 0 measures for all ranks, even if they have different processors.
    chosen = context.group.on_rank_0(choose)
    known = {**previous, "precision": chosen["precision"]}
    computation = choose_computation(config.train, config.model, device, known)
    if differences := computation.differences(previous):
        message = _("From here on, the results may differ slightly from an uninterrupted run's: {differences}.")
        context.reporter.warn(message.format(differences=", ".join(differences)))
    return computation


def _build_trainer(
    context: _Context,
    device: torch.device,
    computation: Computation,
    checkpoints: CheckpointFolder,
    start: Start | None,
) -> Trainer:
    config, vocabulary = context.config, context.vocabulary
    vectors = bias = None
    # The other ranks receive the weights of rank 0.
    if not start and context.group.is_rank_0:
        if config.word2vec.enabled:
            vectors = load_word_vectors(context.run.word2vec, vocabulary, config.model.projection_dim)
            if config.train.vector_scale and len(vectors.rows):
                vectors = replace(vectors, vectors=scale_vectors(vectors.vectors, config.train.vector_scale))
        if config.train.softmax_bias == "unigram":
            bias = unigram_bias(load_counts(context.run.vocab_counts, vocabulary))
    return Trainer(
        model=LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied),
        store=context.store,
        vocabulary_digest=vocabulary.digest(),
        config=config.train,
        checkpoints=checkpoints,
        metrics=MetricsFile(
            context.run.metrics,
            context.run.tensorboard if config.train.tensorboard else None,
            is_used=context.group.is_rank_0,
        ),
        device=device,
        computation=computation,
        reporter=context.reporter,
        initialise=start.fill if start else lambda model: initialise_model(model, config.train.seed, vectors, bias),
        group=context.group,
    )


# Reports and results


def _check_and_report_start(context: _Context, trainer: Trainer, start: Start | None) -> None:
    """Report and score the bundle that training starts from, or check that word vectors match the vocabulary."""
    if start:
        start.report(context.reporter)
        start.measure(trainer, context.store, context.reporter)
    elif context.config.word2vec.enabled:
        _require_vectors_of_this_vocabulary(context.run)


def _advise(context: _Context) -> None:
    config, epoch_tokens = context.config, context.store.train.num_predictions
    if config.train.dropout == AUTOMATIC:
        dropout = choose_dropout(config.train, epoch_tokens).dropout
        message = _("train.dropout is {value}, based on the number of epochs.")
        context.reporter.note(message.format(value=f"{dropout:g}"))


def _evaluate_best(context: _Context, trainer: Trainer) -> dict[str, Any] | None:
    """Score the best checkpoint on all held-out text; return its step and figures, or None without held-out text."""
    checkpoints, store = trainer.checkpoints, context.store
    best = checkpoints.best_step()
    if best is None:
        return None
    known = checkpoints.state(best).get("heldout_full")
    if known:
        return {"step": best, **known}
    if best != trainer.step:
        trainer.model.load_named_tensors(checkpoints.load(best, with_optimizer=False).model)
    with context.reporter.progress("evaluate", unit="tokens", total=store.heldout.num_predictions) as progress:
        figures = evaluate_heldout(trainer.model, store, np.arange(len(store.heldout)), progress, context.group)
    trainer.append_figures(figures, "full", step=best)
    checkpoints.update_state(best, {"heldout_full": asdict(figures)})
    return {"step": best, **asdict(figures)}


def _report_result(context: _Context, trainer: Trainer, start: Start | None, counts: dict[str, Any]) -> StageResult:
    run, reporter, heldout = context.run, context.reporter, counts.get("heldout")
    report_summary(counts, reporter)
    if heldout and start:
        start.report_result(heldout, reporter)
    outputs = [*trainer.checkpoints.files(heldout["step"] if heldout else trainer.step), run.metrics]
    if can_draw():
        draw_run(run, context.config, counts)
        outputs.append(run.training_picture)
    else:
        reporter.note(_("matplotlib is not installed, so training.png is not drawn."))
    findings = [asdict(finding) for finding in judge(_gather_figures(context, start, counts))]
    for line in describe_verdict(findings):
        reporter.note(line)
    details = {} if trainer.is_finished else {"continues": True}
    return StageResult(outputs=outputs, counts={**counts, "findings": findings}, details=details)


def _gather_figures(context: _Context, start: Start | None, counts: Mapping[str, Any]) -> TrainingFigures:
    heldout, samples = counts.get("heldout") or {}, MetricsFile(context.run.metrics).lines()
    segmented = load_record(context.run.stage_record("segment"), damaged_is_none=True).get("counts", {})
    return TrainingFigures(
        train_tokens=context.store.train.num_tokens,
        perplexity=heldout.get("perplexity"),
        baselines={name: figures["perplexity"] for name, figures in counts["baselines"].items()},
        curve=[(line["tokens"], line["heldout_perplexity"]) for line in samples if line.get("heldout_set") == "sample"],
        unknown_rate=heldout.get("oov_rate", 0.0),
        num_rows=len(context.vocabulary),
        started_from_model=start is not None,
        num_near_copies=segmented.get("near_copies_heldout", 0),
        config=context.config,
    )
