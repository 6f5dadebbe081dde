"""The train stage: from the id store to checkpoints, with everything said before, during and after."""

import os
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from elmo_zh.allocator import keep_freed_memory, peak_memory_bytes
from elmo_zh.config import Config
from elmo_zh.errors import RunError
from elmo_zh.id_store.load import load_id_store
from elmo_zh.id_store.sentences import IdStore
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.model.token_encoder import fill_rows
from elmo_zh.pictures import can_draw
from elmo_zh.run.files import file_digest
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageResult, load_record
from elmo_zh.run.reporter import Reporter, format_seconds
from elmo_zh.training.adaptation import Start, prepare_start
from elmo_zh.training.baselines import measure_baselines
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.computation import Computation, choose_computation
from elmo_zh.training.distributed import ALONE, Group
from elmo_zh.training.event_files import MetricsWithEvents
from elmo_zh.training.heldout_sample import evaluate_heldout, measure_text
from elmo_zh.training.memory import predict_memory
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.training.optimizer import step_tokens
from elmo_zh.training.shared_checkpoints import NoMetrics, SharedCheckpoints
from elmo_zh.training.summary import report_summary
from elmo_zh.training.trainer import Trainer
from elmo_zh.training.training_picture import draw_training
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_counts, load_vocabulary
from elmo_zh.word2vec import WordVectors, load_word_vectors


def train_run(run: RunDir, config: Config, reporter: Reporter, group: Group = ALONE) -> StageResult:
    """Train a run's model, or go on with it, to the end of its budget.

    Of several ranks all call this, rank 0 alone tells and writes anything, and the others' result is empty.

    Raises:
        RunError: If an input does not fit, there is too little memory, or training fails again and again.
    """
    vocabulary = load_vocabulary(run.vocab)
    group.first(lambda: _require_counts(run, vocabulary))
    store = load_id_store(run.ids, vocabulary, config.model.num_slots)
    _require_documents(config, store)
    device = group.choose_device(config.train.device)
    checkpoints = _open_checkpoints(run, config, group)
    computation = _choose_computation(config, device, checkpoints, reporter)
    memory = _predict_memory(config, store, computation.precision, group)
    group.first(lambda: _require_memory(memory, device))
    baselines = group.first(lambda: _report_baselines(config, store, reporter))
    # Only now: what counting took is given back.
    keep_freed_memory()
    start = _prepare_start(run, config, vocabulary, reporter, group)
    trainer = _build_trainer(run, config, vocabulary, store, device, computation, checkpoints, start, reporter, group)
    step_seconds = trainer.measure_step_seconds()
    resumed = trainer.resume()
    if not resumed:
        group.first(lambda: _report_start(run, config, trainer, store, start, reporter))
    _report_plan(trainer, config, store, step_seconds, memory, reporter, group)
    if resumed:
        reporter.note(f"Going on from step {trainer.step:,} of {trainer.schedule.num_steps:,}.")
    trainer.train()
    best = trainer.checkpoints.best_step()
    heldout = None if best is None else {"step": best, **_evaluate_best(trainer, best, store, reporter, group)}
    if not group.is_first:
        return StageResult(outputs=[])
    return _finish(run, trainer, config, store, baselines, start, heldout, memory, reporter)


def _open_checkpoints(run: RunDir, config: Config, group: Group) -> CheckpointFolder | SharedCheckpoints:
    folder = CheckpointFolder(run.checkpoints, config.train.keep_checkpoints)
    return folder if group.size == 1 else SharedCheckpoints(folder, group)


def _choose_computation(
    config: Config, device: torch.device, checkpoints: CheckpointFolder | SharedCheckpoints, reporter: Reporter
) -> Computation:
    """Return how to compute: as the run did before, where the settings leave it open."""
    steps = checkpoints.steps()
    before = checkpoints.state(steps[-1]).get("computation", {}) if steps else {}
    computation = choose_computation(config.train, device, before)
    for difference in computation.differences(before):
        reporter.warn(
            f"{difference[0].upper()}{difference[1:]}: what follows is not bit for bit what it would have been."
        )
    return computation


def _open_metrics(run: RunDir, config: Config) -> MetricsFile:
    return MetricsWithEvents(run.metrics, run.tensorboard) if config.train.tensorboard else MetricsFile(run.metrics)


def _require_counts(run: RunDir, vocabulary: Vocabulary) -> None:
    """Raise RunError unless words come by falling count, as sampling negatives needs."""
    load_counts(run.vocab_counts, vocabulary)


def _require_documents(config: Config, store: IdStore) -> None:
    """Raise RunError if there are fewer documents than streams, several of which would then read the same at once."""
    num_documents = store.train.num_documents
    if config.train.shuffle == "documents" and num_documents < config.train.batch_size:
        raise RunError(
            f"train.shuffle = documents needs as many documents as streams (train.batch_size ="
            f" {config.train.batch_size}), and the training text has {num_documents}. Set train.shuffle=sentences, or"
            " segment the text again with another --document, such as paragraph."
        )


def _prepare_start(
    run: RunDir, config: Config, vocabulary: Vocabulary, reporter: Reporter, group: Group
) -> Start | None:
    """Return, on rank 0, what training starts from where that is a bundle; the other ranks are given its weights."""
    made: list[Start] = []
    if config.train.init:
        group.first(lambda: made.append(prepare_start(run, config, vocabulary, reporter)))
    return made[0] if made else None


def _report_start(
    run: RunDir, config: Config, trainer: Trainer, store: IdStore, start: Start | None, reporter: Reporter
) -> None:
    """Tell and check what the first step starts from."""
    if start:
        start.report(reporter)
        start.measure(trainer, store, reporter)
    elif config.word2vec.enabled:
        _require_vectors_of_this_vocabulary(run)


def _require_vectors_of_this_vocabulary(run: RunDir) -> None:
    """Raise RunError if word2vec.txt is known to be of another vocabulary; that matters at the start only."""
    made_for = load_record(run.stage_record("word2vec")).get("inputs", {}).get("vocab.data", {}).get("digest")
    if made_for and made_for != file_digest(run.vocab):
        raise RunError(
            f"{run.word2vec} was made for another vocabulary than {run.vocab}."
            f" Make it again with: elmo-zh word2vec --run {run.path}"
        )


def _predict_memory(config: Config, store: IdStore, precision: str, group: Group) -> int:
    """Return the bytes that each process takes."""
    lexicon = store.lexicon
    mine = replace(config.train, batch_size=len(group.share_of(config.train.batch_size)))
    return predict_memory(
        config.model,
        mine,
        2 if precision == "bfloat16" else 4,
        len(lexicon.vocabulary),
        store.train.num_tokens,
        len(lexicon.other_words),
    )


def _require_memory(needed: int, device: torch.device) -> None:
    if device.type == "cpu":
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > there:
            raise RunError(
                f"Training this model takes about {needed / 1e9:,.1f} GB of memory, and this machine has"
                f" {there / 1e9:,.1f} GB. Lower model.cell_dim, vocab.size or train.batch_size."
            )


def _build_trainer(
    run: RunDir,
    config: Config,
    vocabulary: Vocabulary,
    store: IdStore,
    device: torch.device,
    computation: Computation,
    checkpoints: CheckpointFolder | SharedCheckpoints,
    start: Start | None,
    reporter: Reporter,
    group: Group,
) -> Trainer:
    vectors = None
    # The other ranks are given rank 0's weights.
    if config.word2vec.enabled and not start and group.is_first:
        vectors = load_word_vectors(run.word2vec, vocabulary, config.model.projection_dim)
    return Trainer(
        model=LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied),
        store=store,
        vocabulary_digest=vocabulary.digest(),
        config=config.train,
        checkpoints=checkpoints,
        metrics=_open_metrics(run, config) if group.is_first else NoMetrics(run.metrics),
        device=device,
        computation=computation,
        reporter=reporter,
        initialise=start.fill if start else lambda model: initialise_model(model, config.train.seed, vectors),
        group=group,
    )


def initialise_model(model: LanguageModel, seed: int, vectors: WordVectors | None) -> None:
    """Draw all weights from the seed, then fill in word vectors, row by row by word.

    They go into the token table or, in character mode, which has none, into the softmax. Rows without a word vector,
    those of the specials among them, are drawn from a normal distribution with the mean and deviation that the ready
    rows have in each dimension.
    """
    generator = model.initialise(seed)
    if vectors is not None and len(vectors.rows):
        table = model.bilm.token_table.weight if model.bilm.shape.characters is None else model.softmax.weight
        fill_rows(table, torch.from_numpy(vectors.rows), torch.from_numpy(vectors.vectors), generator)


def _report_plan(
    trainer: Trainer,
    config: Config,
    store: IdStore,
    step_seconds: float,
    memory: int,
    reporter: Reporter,
    group: Group,
) -> None:
    """Tell what is about to happen before the first step."""
    steps, epoch_tokens = trainer.schedule.num_steps, store.train.num_predictions
    tokens = steps * step_tokens(config.train)
    seconds = step_seconds * max(0, steps - trainer.step)
    device = trainer.device.type
    where, each = (f"{device} in {group.size} processes", " each") if group.size > 1 else (device, "")
    reporter.note(
        f"Training text: {store.train.num_tokens:,} tokens in {len(store.train):,} sentences;"
        f" held out: {store.heldout.num_tokens:,} tokens in {len(store.heldout):,} sentences."
    )
    reporter.note(
        f"Plan: {tokens:,} predicted tokens in each direction = {tokens / epoch_tokens:.2f} epochs = {steps:,} steps;"
        f" {trainer.model.num_parameters():,} parameters, about {memory / 1e9:.1f} GB of memory{each},"
        f" about {format_seconds(seconds)} on {where} ({trainer.computation.precision}) and evaluation."
    )


def _report_baselines(config: Config, store: IdStore, reporter: Reporter) -> dict[str, Any]:
    """Return perplexity and bits per character of the n-gram baselines on all held-out text, by name."""
    if not len(store.heldout):
        reporter.warn("No text is held out, so perplexity cannot be measured.")
        return {}
    nats = measure_baselines(store, config.train.seed)
    measure = measure_text(store, np.arange(len(store.heldout)))
    baselines = {
        name: {"perplexity": measure.perplexity(value), "bits_per_character": measure.bits_per_character(value)}
        for name, value in asdict(nats).items()
    }
    told = ", ".join(
        f"{name} {figures['perplexity']:,.1f} ({figures['bits_per_character']:.3f} bits per character)"
        for name, figures in baselines.items()
    )
    reporter.note(f"Held-out perplexity to beat, on the same predictions: {told}.")
    return baselines


def _finish(
    run: RunDir,
    trainer: Trainer,
    config: Config,
    store: IdStore,
    baselines: dict[str, Any],
    start: Start | None,
    heldout: dict[str, Any] | None,
    memory: int,
    reporter: Reporter,
) -> StageResult:
    counts: dict[str, Any] = {
        "steps": trainer.step,
        "tokens": trainer.step * step_tokens(config.train),
        "epochs": round(trainer.step * step_tokens(config.train) / store.train.num_predictions, 3),
        "training_seconds": round(trainer.elapsed_seconds, 3),
        "computation": trainer.computation.describe(),
        "memory": {"predicted_bytes": memory, "peak_bytes": peak_memory_bytes()},
        "baselines": baselines,
        **(start.counts() if start else {}),
    }
    if heldout:
        counts["heldout"] = heldout
    report_summary(counts, reporter)
    if heldout and start:
        start.report_result(heldout, reporter)
    outputs = [*trainer.checkpoints.files(heldout["step"] if heldout else trainer.step), run.metrics]
    if can_draw():
        draw_training(
            MetricsFile(run.metrics).lines(),
            run.training_picture,
            {name: b["perplexity"] for name, b in baselines.items()},
        )
        outputs.append(run.training_picture)
    else:
        reporter.note("matplotlib is not installed, so training.png is not drawn.")
    reporter.note(f"The budget is used up. To train on, repeat the command with {_more(config)}.")
    return StageResult(outputs=outputs, counts=counts)


def _evaluate_best(trainer: Trainer, best: int, store: IdStore, reporter: Reporter, group: Group) -> dict[str, Any]:
    """Score all held-out text with the best checkpoint's weights, unless that is done; return the figures."""
    checkpoints = trainer.checkpoints
    known = checkpoints.state(best).get("heldout_full")
    if known:
        return dict(known)
    if best != trainer.step:
        trainer.model.load_named_tensors(checkpoints.load(best, with_optimizer=False).model)
    with reporter.progress("evaluate", unit="tokens", total=store.heldout.num_predictions) as progress:
        figures = evaluate_heldout(trainer.model, store, np.arange(len(store.heldout)), progress, group)
    trainer.append_figures(figures, "full", step=best)
    checkpoints.update_state(best, heldout_full=asdict(figures))
    return asdict(figures)


def _more(config: Config) -> str:
    """Return how to ask for twice the budget."""
    wanted = []
    if config.train.max_tokens:
        wanted.append(f"train.max_tokens={2 * config.train.max_tokens}")
    if config.train.epochs:
        wanted.append(f"train.epochs={2 * config.train.epochs:g}")
    return f'SET="{" ".join(wanted)}" (make train) or --set for each (elmo-zh)'
