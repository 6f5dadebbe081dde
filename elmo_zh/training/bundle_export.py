"""Export a checkpoint as a bundle."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BundleForm, BundleLayout, require_replaceable
from elmo_zh.bundle.options_json import training_options
from elmo_zh.bundle.read import OWN_PROGRAM, History
from elmo_zh.bundle.weights import warm_up
from elmo_zh.bundle.word2vec_table import build_table, load_run_vectors, read_table
from elmo_zh.bundle.write import BundleSource, least_bytes, write_model
from elmo_zh.config import Config
from elmo_zh.errors import OptionError, RunError
from elmo_zh.id_store import load_id_store
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.model.language_model import LanguageModel, build_shape, weights_of
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import atomic_path, require_disk_space
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import corpus_names, ended_at, load_record
from elmo_zh.run.reporter import Reporter
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.initial_weights import Start, load_start
from elmo_zh.training.model_card import model_card
from elmo_zh.training.optimizer import choose_dropout
from elmo_zh.vocabulary.spelling import load_spelling_model
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_counts, load_vocabulary


def choose_step(checkpoints: CheckpointFolder, wanted: str, run: RunDir) -> int:
    """Return the step of a checkpoint given as "best" (lowest held-out perplexity), "last" or a step number."""
    steps = checkpoints.steps()
    if not steps:
        message = _("{path} is missing. Create it with: {command}")
        raise RunError(message.format(path=checkpoints.path / "step-*", command=command("train", "--run", run.path)))
    if wanted == "last":
        return steps[-1]
    if wanted == "best":
        best = checkpoints.best_step()
        # Without held-out figures there is no reason to prefer another checkpoint to the last.
        return steps[-1] if best is None else best
    if not wanted.isdecimal() or int(wanted) not in steps:
        kind = RunError if wanted.isdecimal() else OptionError
        message = _("There is no checkpoint {step} in {path}. Available: best, last, {steps}.")
        raise kind(message.format(step=wanted, path=checkpoints.path, steps=", ".join(map(str, steps))))
    return int(wanted)


def export_checkpoint(
    run: RunDir,
    config: Config,
    step: int,
    output: Path,
    *,
    form: BundleForm,
    force: bool,
    reporter: Reporter,
) -> None:
    """Write a checkpoint as a bundle with its model card, or in another program's layout."""
    require_replaceable(output, [run.checkpoints, run.vocab, run.character_counts, run.start], force=force)
    source = _load_source(run, config, step, form, reporter)
    require_disk_space(output, least_bytes(source, form))
    with atomic_path(output) as unfinished:
        write_model(unfinished, source, form)
        if form.layout == "bundle":
            BundleLayout(unfinished).card.write_text(model_card(run, config, source), encoding="utf-8")
    message = _("export: wrote the checkpoint from step {step} to {path}")
    reporter.note(message.format(step=f"{step:,}", path=output))
    if not load_record(run.stage_record("train"), damaged_is_none=True).get("finished"):
        message = _("The training of {run} is not finished. To finish it: {command}; then export again.")
        reporter.warn(message.format(run=run.path, command=command("train", "--run", run.path)))


def _load_source(run: RunDir, config: Config, step: int, form: BundleForm, reporter: Reporter) -> BundleSource:
    vocabulary = load_vocabulary(run.vocab)
    checkpoint = CheckpointFolder(run.checkpoints).load(step, with_optimizer=False)
    model = LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied)
    model.require_same(checkpoint.state["model"], vocabulary.digest(), f"{run.checkpoints}/step-{step:08d}")
    model.load_named_tensors(checkpoint.model)
    weights = weights_of(model.bilm, model.softmax)
    if config.train.carry_state and form.layout == "bundle":
        weights = _warmed_up(weights, run, config, reporter)
    start, trained = load_start(run), load_record(run.stage_record("train"), damaged_is_none=True)
    counts = load_counts(run.vocab_counts, vocabulary)
    training = _training_figures(checkpoint.state, counts)
    train_config = choose_dropout(config.train, _epoch_tokens(counts))
    return BundleSource(
        weights=weights,
        vocabulary=vocabulary,
        spelling=load_spelling_model(run.character_counts),
        user_dictionary=run.user_dictionary if run.user_dictionary.exists() else None,
        text=config.text,
        training_options=training_options(train_config, training["train_tokens"], training["epochs"]),
        carry_state=config.train.carry_state,
        training=training,
        origin={"program": OWN_PROGRAM, **({"started_from": start.describe()} if start else {})},
        history=History.of(run.name, corpus_names(run), ended_at(trained) if trained.get("started_at") else ""),
        word2vec=_word2vec(run, vocabulary, start) if form.with_word2vec and form.layout == "bundle" else None,
    )


def _warmed_up(weights: ModelWeights, run: RunDir, config: Config, reporter: Reporter) -> ModelWeights:
    store = load_id_store(run.ids, load_vocabulary(run.vocab), config.model.num_slots)
    sentences = (store.train[index] for index in range(len(store.train)))
    warm_state, count = warm_up(weights, store.lexicon, sentences)
    message = _("{command}: sentences will start from the mean state at the end of {count} training sentences.")
    reporter.note(message.format(command="export", count=f"{count:,}"))
    return replace(weights, warm_state=warm_state)


def _word2vec(run: RunDir, vocabulary: Vocabulary, start: Start | None) -> NDArray[np.float16] | None:
    """Return the word2vec vectors of the run, or of the model that it started from, or None if neither has any."""
    if run.word2vec.is_file() and len((vectors := load_run_vectors(run, vocabulary)).rows):
        return build_table(vectors, len(vocabulary))
    return read_table(start.word2vec, len(vocabulary)) if start and start.word2vec.is_file() else None


def _epoch_tokens(counts: Sequence[int]) -> int:
    """Return the number of predictions in one pass over the training text: one per word and per sentence end."""
    return sum(counts[2:]) + counts[0]


def _training_figures(state: Any, counts: list[int]) -> dict[str, Any]:
    """Return a checkpoint's counts and its held-out figures: on all held-out text if scored, else on the sample."""
    figures: dict[str, Any] = {
        "step": state["step"],
        "tokens": state["tokens"],
        "train_tokens": sum(counts[2:]),
        "epochs": round(state["tokens"] / _epoch_tokens(counts), 3),
    }
    for heldout_set in ("full", "sample"):
        heldout = state.get(f"heldout_{heldout_set}")
        if heldout:
            return {**figures, "heldout_set": heldout_set, "heldout": heldout}
    return figures
