"""The model card: what a model was trained on and how, how well it predicts, and how to make it again, in Markdown."""

import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elmo_zh.bundle.write import NOT_IN_BUNDLE, BundleSource
from elmo_zh.config import Config, preparation_settings, result_settings
from elmo_zh.corpus.cleaning.examples import visible
from elmo_zh.errors import RunError
from elmo_zh.run.layout import RunDir
from elmo_zh.run.markdown import code_span, spelled, table
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import counted, format_date, format_seconds
from elmo_zh.version import __version__

# More sources than these become one row.
_MOST_SOURCES = 50


def model_card(run: RunDir, config: Config, source: BundleSource) -> str:
    """Return the card of a run's model; it begins with RUN/about.md, if there is one.

    Args:
        run: The run; its stage records tell of the text and of the training.
        config: Its settings.
        source: What the bundle is written from.

    Raises:
        RunError: If RUN/about.md is not UTF-8.
    """
    records = {
        name: load_record(run.stage_record(name), damaged_is_none=True) for name in ("segment", "vocab", "train")
    }
    sections = [
        f"# Model card: {visible(run.name)}",
        _about(run),
        "## Model\n\n" + table(("", ""), _model_rows(source, config)),
        "## Text\n\n" + _describe_text(records["segment"], records["vocab"]),
        "## Training\n\n" + table(("", ""), _training_rows(records["train"], source, config)),
        "## Figures\n\n" + _describe_figures(records["train"], source.training),
        "## Limits\n\n" + _LIMITS,
        "## Make it again\n\n" + _describe_making(records["segment"]),
    ]
    return "\n\n".join(sections) + "\n"


def _about(run: RunDir) -> str:
    if not run.about.exists():
        return f"(Write purpose, sources and licences of the text into {run.about.name} in the run, and export again.)"
    try:
        return run.about.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise RunError(f"{run.about} is not UTF-8. Save it as UTF-8, and export again.") from None


_LIMITS = """\
- A word outside the vocabulary has the vector of `<UNK>`, which depends on its sentence only.
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
    """Return the sources with their sizes, and the numbers of tokens."""
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
    """Return the name of this machine's processor, or its architecture where the name is not known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _describe_figures(train: Mapping[str, Any], training: Mapping[str, Any]) -> str:
    """Return perplexity and bits per character of the held-out text, beside the n-gram models."""
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
    """Return the command, and the digests of the files that it needs."""
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
