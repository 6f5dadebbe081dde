"""Export a checkpoint as a bundle with its model card, or in another layout."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BundleForm, BundleLayout, is_model
from elmo_zh.bundle.options_json import training_options
from elmo_zh.bundle.read import OWN_PROGRAM, BundleContent, History
from elmo_zh.bundle.weights import warm_up
from elmo_zh.bundle.word2vec_table import build_table, read_table
from elmo_zh.bundle.write import NOT_IN_BUNDLE, write_model
from elmo_zh.config import Config, preparation_settings, result_settings
from elmo_zh.corpus.counts import visible
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import OptionError, RunError
from elmo_zh.id_store import load_id_store
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.model.language_model import LanguageModel, weights_of
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.run.files import atomic_path
from elmo_zh.run.layout import RunDir
from elmo_zh.run.outputs import claimed_output
from elmo_zh.run.record import corpus_names, ended_at, load_record
from elmo_zh.run.reporter import Reporter, format_date
from elmo_zh.run.tables import table
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.initial_weights import Start, load_start
from elmo_zh.training.optimizer import choose_dropout
from elmo_zh.version import __version__
from elmo_zh.vocabulary.spelling import load_spelling_model
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_counts, load_vocabulary
from elmo_zh.word2vec.vectors import load_word_vectors


def choose_step(checkpoints: CheckpointFolder, wanted: str, run: RunDir) -> int:
    """Return the step for "best" (lowest held-out perplexity, or the last if none), "last" or a step number."""
    steps = checkpoints.steps()
    if not steps:
        raise RunError.missing(checkpoints.path / "step-*", command("train", "--run", run.path))
    if wanted == "last":
        return steps[-1]
    if wanted == "best":
        best = checkpoints.best_step()
        # Without held-out figures there is no reason to prefer another checkpoint to the last.
        return steps[-1] if best is None else best
    if not wanted.isdecimal() or int(wanted) not in steps:
        kind = RunError if wanted.isdecimal() else OptionError
        raise kind.unexpected(f"--checkpoint {wanted}", ", ".join(["best", "last", *map(str, steps)]))
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
    """Write a checkpoint as a bundle with its model card, or in another layout."""
    inputs = [run.checkpoints, run.vocab, run.character_counts, run.start]
    with claimed_output(output, inputs, is_model, force=force):
        source = _load_source(run, config, step, form)
        with atomic_path(output) as unfinished:
            write_model(unfinished, source, form)
            if form.layout == "bundle":
                BundleLayout(unfinished).card.write_text(_model_card(run, config, source), encoding="utf-8")
    message = _("export: wrote the checkpoint from step {step} to {path}")
    reporter.note(message.format(step=f"{step:,}", path=output))
    if not load_record(run.stage_record("train"), damaged_is_none=True).get("finished"):
        message = _("The training of {run} is not finished. To finish it: {command}; then export again.")
        reporter.warn(message.format(run=run.path, command=command("train", "--run", run.path)))


def _load_source(run: RunDir, config: Config, step: int, form: BundleForm) -> BundleContent:
    vocabulary = load_vocabulary(run.vocab)
    checkpoints = CheckpointFolder(run.checkpoints)
    checkpoint = checkpoints.load(step, with_optimizer=False)
    model = LanguageModel.from_settings(config.model, len(vocabulary))
    model.require_same(checkpoint.state["model"], vocabulary.digest(), checkpoints.folder(step))
    model.load_named_tensors(checkpoint.model)
    weights = weights_of(model.bilm, model.softmax)
    if config.train.carry_state and form.layout == "bundle":
        weights = _warm(weights, run, config)
    start, trained = load_start(run), load_record(run.stage_record("train"), damaged_is_none=True)
    started_from = {name: start.info[name] for name in ("digest", "tokens", "origin")} if start else {}
    counts = load_counts(run.vocab_counts, vocabulary)
    training = _training_figures(checkpoint.state, counts)
    train_config = choose_dropout(config.train, _epoch_tokens(counts))
    return BundleContent(
        weights=weights,
        vocabulary=vocabulary,
        spelling=load_spelling_model(run.character_counts),
        user_dictionary=run.user_dictionary if run.user_dictionary.exists() else None,
        text=config.text,
        training_options=training_options(train_config, training["train_tokens"], training["epochs"]),
        carry_state=config.train.carry_state,
        training=training,
        origin={"program": OWN_PROGRAM, **({"started_from": started_from} if started_from else {})},
        history=History.of(run.name, corpus_names(run), ended_at(trained) if trained.get("started_at") else ""),
        word2vec=_word2vec(run, vocabulary, start) if form.layout == "bundle" else None,
    )


def _warm(weights: ModelWeights, run: RunDir, config: Config) -> ModelWeights:
    store = load_id_store(run.ids, load_vocabulary(run.vocab), config.model.num_slots)
    sentences = (store.train[index] for index in range(len(store.train)))
    return replace(weights, warm_state=warm_up(weights, store.lexicon, sentences)[0])


def _word2vec(run: RunDir, vocabulary: Vocabulary, start: Start | None) -> NDArray[np.float16] | None:
    """Return the word2vec vectors of the run, or of the model that it started from, or None if neither has any."""
    if run.word2vec.is_file() and len((vectors := load_word_vectors(run.word2vec, vocabulary)).rows):
        return build_table(vectors, len(vocabulary))
    return read_table(start.word2vec, len(vocabulary)) if start and start.word2vec.is_file() else None


def _epoch_tokens(counts: Sequence[int]) -> int:
    """Return each LM's number of predictions in one pass over the training text: one per word and one per sentence."""
    return sum(counts[2:]) + counts[0]


def _training_figures(state: Any, counts: list[int]) -> dict[str, Any]:
    """Return a checkpoint's counts and any held-out figures: on all held-out text if scored, else on the sample."""
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


# The model card: model, text, training and figures, as the run's records have them

_MOST_SOURCES = 50
_HUB_HEADER = "language: zh\nlibrary_name: elmo-zh\ntags: [elmo, bilm, word-embeddings]\n"
_UNKNOWN_WORDS_LIMIT = """\
- elmo-zh composes the vector of a word outside the vocabulary from the known words in it; other programs give it the \
vector of `<UNK>`.
"""
_LIMITS = """\
- Text that differs from the training text in kind or script is predicted worse; `elmo-zh evaluate` measures \
its perplexity.
- The model repeats what its text says, prejudices and errors included, and can contain phrases of it."""


def _model_card(run: RunDir, config: Config, source: BundleContent) -> str:
    """Return a run's model card, with a YAML header for model hubs and the additions in RUN/about.md."""
    segment, train = (load_record(run.stage_record(name), damaged_is_none=True) for name in ("segment", "train"))
    header, about = _about(run)
    sections = {
        "Model": table(("", ""), _rows(train, source, config)),
        "Text": _describe_text(segment),
        "Figures": _describe_figures(train.get("counts") or {}, source.training.get("heldout")),
        "Limits": _UNKNOWN_WORDS_LIMIT * (source.shape.characters is None) + _LIMITS,
    }
    shown = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return f"---\n{_HUB_HEADER}{header}---\n\n# Model card: {visible(run.name)}\n\n{about}\n\n{shown}\n"


def _about(run: RunDir) -> tuple[str, str]:
    """Return the header and the text of RUN/about.md; without the file, no header and a request to write the file."""
    if not run.about.exists():
        return "", "(Write purpose, sources and licences of the text into about.md in the run, and export again.)"
    text = "\n".join(iter_lines(run.about)).strip()
    header = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    return (header[1], text[header.end() :].strip()) if header else ("", text)


def _rows(train: Mapping[str, Any], source: BundleContent, config: Config) -> Iterator[tuple[str, str]]:
    shape, training = source.shape, source.training
    yield "kind", f"ELMo: forward and backward LSTM language model, {shape.mode} mode"
    yield "layers", f"{shape.num_layers} in each direction, cell {shape.cell_dim}, projection {shape.projection_dim}"
    yield "vectors", f"{2 * shape.projection_dim} numbers for each token and layer, {shape.num_layers + 1} layers"
    yield "vocabulary", f"{shape.num_tokens:,} rows"
    yield "text", _join(preparation_settings(config.text, without=NOT_IN_BUNDLE))
    yield "sentences start from", "the state carried over" if source.carry_state else "zero state"
    yield "predicted tokens in each direction", f"{training['tokens']:,} ({training['epochs']:.2f} epochs)"
    if train.get("started_at"):
        yield "date", format_date(train["started_at"])
    yield "program", f"elmo-zh {__version__}"
    if started_from := source.origin.get("started_from"):
        yield "started from", f"the bundle with digest {started_from['digest']}"
    dropout = {"dropout": source.training_options["dropout"]}
    yield "settings", _join({**result_settings(config.train, without=("init",)), **dropout})


def _describe_text(segment: Mapping[str, Any]) -> str:
    """Return a table of the sources, all after the first _MOST_SOURCES in one row, and the text's size, if known."""
    counts, sources, files = (segment.get(name) or {} for name in ("counts", "sources", "inputs"))
    if not counts:
        return "Unknown: the run has no record of its text."
    names = sorted(sources)
    rows = [
        (_code(visible(name)), sources[name]["kept_characters"], files.get(name, {}).get("digest", ""))
        for name in names[:_MOST_SOURCES]
    ]
    if others := names[_MOST_SOURCES:]:
        rows.append((f"{len(others):,} more", sum(sources[name]["kept_characters"] for name in others), ""))
    return (
        f"{table(('source', 'characters', 'SHA-256'), rows)}\n\n"
        f"{counts['train_tokens']:,} tokens in {counts['train_sentences']:,} sentences to train on,"
        f" {counts['heldout_tokens']:,} tokens in {counts['heldout_sentences']:,} sentences held out."
    )


def _describe_figures(counts: Mapping[str, Any], heldout: Mapping[str, Any] | None) -> str:
    if not heldout:
        return "None: no text was held out."
    figures = {"this": heldout, **(counts.get("baselines") or {})}
    rows = [
        (f"{name} model", f"{value['perplexity']:,.1f}", f"{value['bits_per_character']:.3f}")
        for name, value in figures.items()
    ]
    return (
        f"{table(('held-out text', 'perplexity', 'bits per character'), rows)}\n\n"
        f"Exact, over the whole vocabulary, {heldout['num_predictions']:,} predictions in each direction;"
        f" {heldout['oov_rate']:.1%} of the words are unknown."
    )


def _join(settings: Mapping[str, Any]) -> str:
    spelled = {name: str(value).lower() if isinstance(value, bool) else value for name, value in settings.items()}
    return ", ".join(_code(f"{name} = {value}") for name, value in spelled.items())


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"
