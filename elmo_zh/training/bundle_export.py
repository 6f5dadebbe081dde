"""Export a checkpoint as a bundle."""

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.compatibility import describe_readers
from elmo_zh.bundle.description import OWN_PROGRAM
from elmo_zh.bundle.layout import BundleForm, BundleLayout, require_replaceable
from elmo_zh.bundle.options_json import training_options
from elmo_zh.bundle.read import History
from elmo_zh.bundle.warm_state import warm_up
from elmo_zh.bundle.word2vec_table import build_table, load_run_vectors, read_table
from elmo_zh.bundle.write import NOT_IN_BUNDLE, BundleSource, least_bytes, write_model
from elmo_zh.config import Config, preparation_settings, result_settings
from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.errors import OptionError, RunError
from elmo_zh.id_store.layout import load_id_store
from elmo_zh.invocation import command
from elmo_zh.model.language_model import LanguageModel, build_shape
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import corpus_names, ended_at, load_record
from elmo_zh.run.reporter import Reporter, counted, format_date, format_seconds
from elmo_zh.run.tables import code_span, spelled, table
from elmo_zh.training.checkpoint import CheckpointFolder
from elmo_zh.training.initial_weights import Start, load_start
from elmo_zh.training.optimizer import choose_dropout
from elmo_zh.version import __version__
from elmo_zh.vocabulary.spelling import load_spelling_model
from elmo_zh.vocabulary.vocabulary import Vocabulary, load_counts, load_vocabulary


def choose_step(checkpoints: CheckpointFolder, wanted: str, run: RunDir) -> int:
    """Return the step of a checkpoint given as "best" (lowest held-out perplexity), "last" or a step number."""
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
    """Write a checkpoint as a bundle with its model card, or in another program's layout."""
    require_replaceable(output, [run.checkpoints, run.vocab, run.character_counts, run.start], force=force)
    source = _load_source(run, config, step, form, reporter)
    require_disk_space(output, least_bytes(source, form))
    with atomic_path(output) as unfinished:
        write_model(unfinished, source, form, "export", reporter)
        if form.layout == "bundle":
            BundleLayout(unfinished).card.write_text(model_card(run, config, source), encoding="utf-8")
    reporter.note(f"export: wrote the checkpoint from step {step:,} to {output}")
    if not load_record(run.stage_record("train"), damaged_is_none=True).get("finished"):
        reporter.warn(
            f"The training of {run.path} is not finished. To finish it: {command('train', '--run', run.path)};"
            " then export again."
        )
    if form.layout not in ("safetensors", "bundle"):
        for line in describe_readers(source.bilm.shape):
            reporter.note(line)


def _load_source(run: RunDir, config: Config, step: int, form: BundleForm, reporter: Reporter) -> BundleSource:
    vocabulary = load_vocabulary(run.vocab)
    checkpoint = CheckpointFolder(run.checkpoints).load(step, with_optimizer=False)
    model = LanguageModel.build(build_shape(config.model, len(vocabulary)), tie_softmax=config.model.is_tied)
    model.require_same(checkpoint.state["model"], vocabulary.digest(), f"{run.checkpoints}/step-{step:08d}")
    model.load_named_tensors(checkpoint.model)
    if config.train.carry_state and form.layout == "bundle":
        _warm_up(model, run, config, reporter)
    start, trained = load_start(run), load_record(run.stage_record("train"), damaged_is_none=True)
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
        history=History.of(run.name, corpus_names(run), ended_at(trained) if trained.get("started_at") else ""),
        word2vec=_word2vec(run, vocabulary, start) if form.with_word2vec and form.layout == "bundle" else None,
    )


def _warm_up(model: LanguageModel, run: RunDir, config: Config, reporter: Reporter) -> None:
    store = load_id_store(run.ids, load_vocabulary(run.vocab), config.model.num_slots)
    sentences = (store.train[index] for index in range(len(store.train)))
    count = warm_up(model.bilm, store.lexicon, sentences)
    reporter.note(f"export: sentences will start from the mean LSTM state at the end of {count:,} training sentences.")


def _word2vec(run: RunDir, vocabulary: Vocabulary, start: Start | None) -> NDArray[np.float16] | None:
    """Return the word2vec vectors of the run, or of the model that it started from, or None if neither has any."""
    if run.word2vec.is_file():
        return build_table(load_run_vectors(run, vocabulary), len(vocabulary))
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


_MOST_SOURCES = 50


def model_card(run: RunDir, config: Config, source: BundleSource) -> str:
    """Return a run's model card, with a YAML header for model hubs and the additions in RUN/about.md."""
    records = {
        name: load_record(run.stage_record(name), damaged_is_none=True) for name in ("segment", "vocab", "train")
    }
    header, about = _about(run)
    sections = [
        f"---\n{_HUB_HEADER}{header}---",
        f"# Model card: {visible(run.name)}",
        about,
        "## Model\n\n" + table(("", ""), _model_rows(source, config)),
        "## Text\n\n" + _describe_text(records["segment"], records["vocab"]),
        "## Training\n\n" + table(("", ""), _training_rows(records["train"], source, config)),
        "## Figures\n\n" + _describe_figures(records["train"], source.training),
        "## Limits\n\n" + _LIMITS,
        "## Make it again\n\n" + _describe_making(records["segment"]),
    ]
    return "\n\n".join(sections) + "\n"


_HUB_HEADER = "language: zh\nlibrary_name: elmo-zh\ntags: [elmo, bilm, word-embeddings]\n"


def _about(run: RunDir) -> tuple[str, str]:
    """Split RUN/about.md into its header, which stands between two lines of ---, and its text."""
    if not run.about.exists():
        missing = (
            f"(Write purpose, sources and licences of the text into {run.about.name} in the run, and export again.)"
        )
        return "", missing
    try:
        text = run.about.read_text(encoding="utf-8").strip()
        header = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
        return (header[1], text[header.end() :].strip()) if header else ("", text)
    except UnicodeDecodeError:
        raise RunError(f"{run.about} is not UTF-8. Save it as UTF-8, and export again.") from None


_LIMITS = """\
- elmo-zh reads a word outside the vocabulary by the known words in it; other programs give it the vector of `<UNK>`.
- Text of another kind or script than the training text is predicted worse. The command `evaluate` says by how much.
- The model repeats what its text says, prejudices and errors included, and can contain phrases of it."""


def _model_rows(source: BundleSource, config: Config) -> Iterable[tuple[str, str]]:
    shape, text = source.bilm.shape, preparation_settings(config.text, without=NOT_IN_BUNDLE)
    yield "kind", f"ELMo: forward and backward LSTM language model, {shape.mode} mode"
    yield "layers", f"{shape.num_layers} in each direction, cell {shape.cell_dim}, projection {shape.projection_dim}"
    yield "vectors", f"{2 * shape.projection_dim} numbers for each token and layer, {shape.num_layers + 1} layers"
    yield "vocabulary", f"{shape.num_tokens:,} rows"
    yield "text", _join(text)
    yield "sentences start from", "the state carried over" if source.carry_state else "zero state"


def _describe_text(segment: Mapping[str, Any], vocab: Mapping[str, Any]) -> str:
    sources, counts = segment.get("sources") or {}, segment.get("counts") or {}
    if not counts:
        return "Unknown: the run has no record of its text."
    shown = dict(sorted(sources.items())[:_MOST_SOURCES])
    rows = [(code_span(visible(name)), found["kept_characters"]) for name, found in shown.items()]
    if len(sources) > len(shown):
        rest = sum(found["kept_characters"] for name, found in sources.items() if name not in shown)
        rows.append((f"{len(sources) - len(shown):,} more", rest))
    coverage = (vocab.get("counts") or {}).get("coverage")
    known = f" {coverage:.2%} of the training tokens are in the vocabulary." if coverage else ""
    return (
        f"{table(('source', 'characters'), rows)}\n\n"
        f"{counts['train_tokens']:,} tokens in {counts['train_sentences']:,} sentences to train on,"
        f" {counts['heldout_tokens']:,} tokens in {counts['heldout_sentences']:,} sentences held out.{known}"
    )


def _training_rows(train: Mapping[str, Any], source: BundleSource, config: Config) -> Iterable[tuple[str, str]]:
    counts, training = train.get("counts") or {}, source.training
    yield "predicted tokens in each direction", f"{training['tokens']:,} ({training['epochs']:.2f} epochs)"
    if counts:
        how = counts["computation"]
        threads = counted(how["num_threads"], "thread")
        yield "time", f"{format_seconds(counts['training_seconds'])}, evaluations included"
        yield "machine", f"{how['device']} ({_processor()}), {threads}, {how['precision']}"
    if train.get("started_at"):
        yield "date", format_date(train["started_at"])
    yield "program", f"elmo-zh {__version__}"
    if started_from := source.origin.get("started_from"):
        yield "started from", f"the bundle with digest {started_from['digest']}"
    dropout = {"dropout": source.training_options["dropout"]}
    yield "settings", _join({**result_settings(config.train, without=("init",)), **dropout})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _describe_figures(train: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    heldout = training.get("heldout")
    if not heldout:
        return "None: no text was held out."
    rows = [("this model", f"{heldout['perplexity']:,.1f}", f"{heldout['bits_per_character']:.3f}")]
    for name, found in ((train.get("counts") or {}).get("baselines") or {}).items():
        rows.append((f"{name} model", f"{found['perplexity']:,.1f}", f"{found['bits_per_character']:.3f}"))
    return (
        f"{table(('held-out text', 'perplexity', 'bits per character'), rows)}\n\n"
        f"Exact, over the whole vocabulary, {heldout['num_predictions']:,} predictions in each direction;"
        f" {heldout['oov_rate']:.1%} of the words are unknown."
    )


def _describe_making(segment: Mapping[str, Any]) -> str:
    files = sorted((segment.get("inputs") or {}).items())
    listed = [f"{found['digest']}  {visible(name)}" for name, found in files[:_MOST_SOURCES]]
    if len(files) > _MOST_SOURCES:
        listed.append(f"{len(files) - _MOST_SOURCES:,} more")
    return "\n\n".join(
        [
            "The command `pipeline TEXT --config config.toml`, where TEXT is a folder with these files and"
            " `config.toml` is that of the run, with the settings above:",
            "\n".join(f"    {line}" for line in listed),
        ]
    )


def _join(settings: Mapping[str, Any]) -> str:
    return ", ".join(code_span(f"{name} = {spelled(value)}") for name, value in settings.items())
