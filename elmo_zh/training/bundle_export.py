"""Export of a checkpoint as a bundle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.compatibility import describe_readers
from elmo_zh.bundle.description import OWN_PROGRAM
from elmo_zh.bundle.layout import BundleForm, BundleLayout, require_replaceable
from elmo_zh.bundle.options import training_options
from elmo_zh.bundle.read import History
from elmo_zh.bundle.warm_state import warm_up
from elmo_zh.bundle.word2vec import build_table, load_run_vectors, read_table
from elmo_zh.bundle.write import BundleSource, least_bytes, write_model
from elmo_zh.config import Config
from elmo_zh.errors import OptionError, RunError
from elmo_zh.id_store.layout import load_id_store
from elmo_zh.invocation import command
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import ended_at, load_record
from elmo_zh.run.reporter import Reporter
from elmo_zh.training.adaptation import Start, load_start
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.model_card import model_card
from elmo_zh.training.optimizer import choose_dropout
from elmo_zh.vocabulary.spelling import load_spelling_model
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_counts, load_vocabulary


def choose_step(checkpoints: CheckpointFolder, wanted: str, run: RunDir) -> int:
    """Return the step that "best" (lowest held-out perplexity), "last" or a step number refers to.

    Raises:
        RunError: If there is no such checkpoint.
        OptionError: If it is none of the three.
    """
    steps = checkpoints.steps()
    if not steps:
        raise RunError(f"{checkpoints.path} holds no checkpoint. Make one with: {command('train', '--run', run.path)}")
    if wanted == "last":
        return steps[-1]
    if wanted == "best":
        best = checkpoints.best_step()
        # Without held-out figures there is no reason to prefer another checkpoint to the last.
        return steps[-1] if best is None else best
    if not wanted.isdecimal() or int(wanted) not in steps:
        listed = ", ".join(map(str, steps))
        kind = RunError if wanted.isdecimal() else OptionError
        raise kind(f"There is no checkpoint {wanted} in {checkpoints.path}. Available: best, last, {listed}.")
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
    """Write a checkpoint as a bundle with its model card, or in another program's layout.

    Args:
        run: The run.
        config: Its settings.
        step: Step of the checkpoint.
        output: Folder to write.
        form: Layout of the files and number type of the weights.
        force: Replace an existing model.
        reporter: Receives notes and warnings.

    Raises:
        OutputError: If `output` exists and is not a bundle, or is a bundle and `force` is off.
        RunError: If the checkpoint was made for another model or vocabulary.
    """
    require_replaceable(output, [run.checkpoints, run.vocab, run.character_counts, run.start], force=force)
    source = _load_source(run, config, step, form, reporter)
    require_disk_space(output, least_bytes(source, form))
    with atomic_path(output) as unfinished:
        write_model(unfinished, source, form, "export", reporter)
        if form.layout == "bundle":
            BundleLayout(unfinished).card.write_text(model_card(run, config, source), encoding="utf-8")
    reporter.note(f"export: checkpoint of step {step:,} written to {output}")
    if not load_record(run.stage_record("train"), damaged_is_none=True).get("finished"):
        reporter.warn(
            f"The training of {run.path} is not finished. To finish it: {command('train', '--run', run.path)};"
            " then export again."
        )
    if form.layout != "safetensors":
        for line in describe_readers(source.bilm.shape):
            reporter.note(line)


def _load_source(run: RunDir, config: Config, step: int, form: BundleForm, reporter: Reporter) -> BundleSource:
    """Load a checkpoint and all that a bundle holds beside its weights."""
    vocabulary = load_vocabulary(run.vocab)
    checkpoint = CheckpointFolder(run.checkpoints).load(step, with_optimizer=False)
    model = LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied)
    model.require_same(checkpoint.state["model"], vocabulary.digest(), f"{run.checkpoints}/step-{step:08d}")
    model.load_named_tensors(checkpoint.model)
    if config.train.carry_state and form.layout == "bundle":
        _warm_up(model, run, config, reporter)
    start = load_start(run)
    counts = load_counts(run.vocab_counts, vocabulary)
    training = _training_figures(checkpoint.state, counts)
    train_config = choose_dropout(config.train, _epoch_tokens(counts))
    return BundleSource(
        bilm=model.bilm,
        softmax=model.softmax,
        vocabulary=vocabulary,
        spelling=load_spelling_model(run.character_counts),
        user_dictionary=run.user_dictionary if run.user_dictionary.exists() else None,
        text=config.text,
        training_options=training_options(train_config, training["train_tokens"], training["epochs"]),
        carry_state=config.train.carry_state,
        training=training,
        origin={"program": OWN_PROGRAM, **({"started_from": start.describe()} if start else {})},
        history=_history(run),
        word2vec=_word2vec(run, vocabulary, start) if form.with_word2vec and form.layout == "bundle" else None,
    )


def _warm_up(model: LanguageModel, run: RunDir, config: Config, reporter: Reporter) -> None:
    """Set the initial state of a model trained with carried state to its mean state at training sentence ends."""
    store = load_id_store(run.ids, load_vocabulary(run.vocab), config.model.num_slots)
    sentences = (store.train[index] for index in range(len(store.train)))
    count = warm_up(model.bilm, store.lexicon, sentences)
    reporter.note(f"export: sentences will start from the mean state after {count:,} training sentences.")


def _word2vec(run: RunDir, vocabulary: Vocabulary, start: Start | None) -> NDArray[np.float16] | None:
    """Return the run's word2vec vectors, else those of the model that it started from; None if there are none."""
    if run.word2vec.is_file():
        return build_table(load_run_vectors(run, vocabulary), len(vocabulary))
    return read_table(start.word2vec, len(vocabulary)) if start and start.word2vec.is_file() else None


def _history(run: RunDir) -> History:
    """Return the history of a run's model; if its training is not finished, with the date of its start."""
    segmented, trained = (load_record(run.stage_record(stage), damaged_is_none=True) for stage in ("segment", "train"))
    trained_at = ended_at(trained) if trained.get("started_at") else ""
    return History.of(run.name, list(segmented.get("inputs", {})), trained_at)


def _epoch_tokens(counts: Sequence[int]) -> int:
    """Return the number of predictions in one pass over the training text: its words, and the end of each sentence."""
    return sum(counts[2:]) + counts[0]


def _training_figures(state: Any, counts: list[int]) -> dict[str, Any]:
    """Return the counts of a checkpoint and its held-out figures, on all held-out text if it was scored."""
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
