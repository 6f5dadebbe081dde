"""The model card of a run: model, text, training and figures, as the run's records have them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from elmo_zh.bundle.write import NOT_IN_BUNDLE, BundleSource
from elmo_zh.config import Config, preparation_settings, result_settings
from elmo_zh.corpus.counts import visible
from elmo_zh.errors import RunError
from elmo_zh.language import _
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import load_record
from elmo_zh.run.reporter import format_date, format_seconds
from elmo_zh.run.tables import table
from elmo_zh.version import __version__

_MOST_SOURCES = 50
_HUB_HEADER = "language: zh\nlibrary_name: elmo-zh\ntags: [elmo, bilm, word-embeddings]\n"
_LIMITS = """\
- elmo-zh reads a word outside the vocabulary by the known words in it; other programs give it the vector of `<UNK>`.
- Text of another kind or script than the training text is predicted worse. The command `evaluate` says by how much.
- The model repeats what its text says, prejudices and errors included, and can contain phrases of it."""


def model_card(run: RunDir, config: Config, source: BundleSource) -> str:
    """Return a run's model card, with a YAML header for model hubs and the additions in RUN/about.md."""
    segment, train = (load_record(run.stage_record(name), damaged_is_none=True) for name in ("segment", "train"))
    header, about = _about(run)
    sections = {
        "Model": table(("", ""), _model_rows(source, config)),
        "Text": _describe_text(segment),
        "Training": table(("", ""), _training_rows(train, source, config)),
        "Figures": _describe_figures(train.get("counts") or {}, source.training.get("heldout")),
        "Limits": _LIMITS,
    }
    shown = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return f"---\n{_HUB_HEADER}{header}---\n\n# Model card: {visible(run.name)}\n\n{about}\n\n{shown}\n"


def _about(run: RunDir) -> tuple[str, str]:
    """Split RUN/about.md into its header, which stands between two lines of ---, and its text."""
    if not run.about.exists():
        return "", "(Write purpose, sources and licences of the text into about.md in the run, and export again.)"
    try:
        text = run.about.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise RunError(_("{path} is not UTF-8. Save it as UTF-8, and export again.").format(path=run.about)) from None
    header = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    return (header[1], text[header.end() :].strip()) if header else ("", text)


def _model_rows(source: BundleSource, config: Config) -> Iterator[tuple[str, str]]:
    shape = source.weights.shape
    yield "kind", f"ELMo: forward and backward LSTM language model, {shape.mode} mode"
    yield "layers", f"{shape.num_layers} in each direction, cell {shape.cell_dim}, projection {shape.projection_dim}"
    yield "vectors", f"{2 * shape.projection_dim} numbers for each token and layer, {shape.num_layers + 1} layers"
    yield "vocabulary", f"{shape.num_tokens:,} rows"
    yield "text", _join(preparation_settings(config.text, without=NOT_IN_BUNDLE))
    yield "sentences start from", "the state carried over" if source.carry_state else "zero state"


def _describe_text(segment: Mapping[str, Any]) -> str:
    """List the sources, with the digests of the files that a run on the same text would need."""
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


def _training_rows(train: Mapping[str, Any], source: BundleSource, config: Config) -> Iterator[tuple[str, str]]:
    training = source.training
    yield "predicted tokens in each direction", f"{training['tokens']:,} ({training['epochs']:.2f} epochs)"
    if counts := train.get("counts"):
        yield "time", f"{format_seconds(counts['training_seconds'])}, evaluations included"
        yield "machine", f"{counts['computation']['device']}, {counts['computation']['precision']}"
    if train.get("started_at"):
        yield "date", format_date(train["started_at"])
    yield "program", f"elmo-zh {__version__}"
    if started_from := source.origin.get("started_from"):
        yield "started from", f"the bundle with digest {started_from['digest']}"
    dropout = {"dropout": source.training_options["dropout"]}
    yield "settings", _join({**result_settings(config.train, without=("init",)), **dropout})


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
