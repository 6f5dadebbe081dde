"""The verdict on a finished training run, in plain words: how good the model is, what limits it, and what helps most.

The verdict needs only figures, so it can be stored in the stage record and shown again without the model.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.config import Config
from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.invocation import program, train_command, train_option
from elmo_zh.language import translate
from elmo_zh.pictures.canvas import format_figure, name_corpus, save_picture
from elmo_zh.pictures.runs import training_figure
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import corpus_names
from elmo_zh.run.reporter import Reporter, aligned, counted, format_seconds
from elmo_zh.training.evaluation import RUN_TOKENS, measure_baselines, measure_text
from elmo_zh.training.metrics import MetricsFile
from elmo_zh.vocabulary.vocabulary import load_vocabulary

# Held-out perplexity changes by more than noise if it falls by this share in the second half of training, or ends this
# share above its lowest value.
_FALL, _RISE = 0.03, 0.02
# Perplexity flatters if more than this fraction of the held-out sentences share runs with the training text. Only text
# that repeats a few patterns has a perplexity below this one.
_MANY_COPIES, _PATTERN_PERPLEXITY = 0.3, 10.0
_MANY_UNKNOWN = 0.05
# Training has diverged if the perplexity is above this many times the vocabulary size.
_DIVERGED = 10
# With fewer tokens of training text, more text helps more than anything else.
_LITTLE_TEXT = 1_000_000
# Stands for the command that trains a model; the options of `pipeline` follow.
_TRAIN = "{train} "
# Stands for the option that names a model to start from.
_INIT = "{init}"
_MORE_TEXT = (
    f"More text would help most (or start from a model trained on more text: {_INIT})",
    f"{_TRAIN}more-texts/",
)


class Trend(Enum):
    """Where the held-out perplexity was heading when training ended."""

    FALLING = "falling"
    FLAT = "flat"
    RISING = "rising"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class TrainingFigures:
    """The figures on which the verdict is based."""

    train_tokens: int  # Number of tokens in the training text
    perplexity: float | None  # Perplexity on all held-out text, or None if no text is held out
    baselines: Mapping[str, float]  # Perplexity of the unigram and the bigram model on the same text, by name
    curve: Sequence[tuple[int, float]]  # Tokens trained, and perplexity on the held-out sample after them, in order
    unknown_rate: float  # Fraction of the held-out tokens that are outside the vocabulary
    num_rows: int  # Number of vocabulary rows
    started_from_model: bool  # Whether training started from another model
    share_of_copies: float = 0.0  # Fraction of held-out sentences that share a run of tokens with the training text
    near_copies_trained: int = 0  # Paragraphs that were not held out because they have near copies
    near_copies_heldout: int = 0  # Held-out paragraphs with near copies in the training text
    config: Config  # The run's settings

    @property
    def is_vocabulary_full(self) -> bool:
        """Whether vocab.size, rather than the text, limits the vocabulary."""
        return 0 < self.config.vocab.size <= self.num_rows

    @property
    def has_many_unknown(self) -> bool:
        """Whether unknown words limit the model; in character mode they do not, since the model can read them."""
        return self.config.model.mode == "token" and self.unknown_rate > _MANY_UNKNOWN

    @property
    def is_below_bigram(self) -> bool:
        """Whether the model's perplexity is below the bigram model's."""
        return self.perplexity is not None and self.perplexity < self.baselines["bigram"]

    @property
    def has_diverged(self) -> bool:
        """Whether the model predicts far worse than one that gives all words equal probability."""
        return self.perplexity is not None and self.perplexity > _DIVERGED * self.num_rows

    @property
    def flattery(self) -> str:
        """The reason why the perplexity says little about new text, or "" if none is known."""
        if self.share_of_copies > _MANY_COPIES:
            return (
                f"{self.share_of_copies:.0%} of the held-out sentences share a sequence of {RUN_TOKENS} tokens with the"
                " training text, so this perplexity flatters the model: on other text, the perplexity will be higher."
            )
        if self.near_copies_heldout:
            return (
                f"The training text contains near copies of {counted(self.near_copies_heldout, 'paragraph')} in the"
                " held-out text, so this perplexity flatters the model: on other text, the perplexity will be higher."
            )
        if self.perplexity is not None and self.perplexity < _PATTERN_PERPLEXITY:
            return (
                "A perplexity this low means that the text repeats a few patterns, so its held-out part is hardly new."
                " On other text, the perplexity will be higher."
            )
        return ""

    def trend(self) -> tuple[Trend, float]:
        """Return the trend, and by how much the perplexity fell or, if it rose, after how many tokens it was lowest."""
        points = [(tokens, perplexity) for tokens, perplexity in self.curve if tokens]
        if len(points) < 2:
            return Trend.UNKNOWN, 0.0
        end, last = points[-1]
        best_tokens, best = min(points, key=lambda point: point[1])
        if last > (1 + _RISE) * best:
            return Trend.RISING, best_tokens
        half = [perplexity for tokens, perplexity in points[:-1] if tokens <= end / 2] or [points[0][1]]
        fall = 1 - last / half[-1]
        return (Trend.FALLING, fall) if fall > _FALL else (Trend.FLAT, fall)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a finished training run: findings, and advice with a command."""

    findings: Sequence[str]  # Sentences on how good the model is and what limits it
    advice: str  # The change that helps most
    command: str  # The command; {program}, {run}, {train} stand for the program, the run's folder, how to train


def judge(figures: TrainingFigures) -> Verdict:
    """Judge a finished training run by its figures."""
    trend, _ = figures.trend()
    advice, command = _choose_advice(figures, trend)
    return Verdict(findings=tuple(_find(figures)), advice=advice, command=command)


def _find(figures: TrainingFigures) -> Iterator[str]:
    if figures.perplexity is None:
        yield "No text was held out, so it is not known how good the model is."
    elif figures.has_diverged:
        yield f"The training has diverged: held-out perplexity {figures.perplexity:.3g} is far worse than guessing."
        return
    else:
        yield from _compare_heldout(figures, figures.perplexity)
    trend, value = figures.trend()
    if trend is Trend.FALLING:
        yield f"The held-out perplexity was still falling at the end (by {value:.1%} in the second half of training)."
    elif trend is Trend.RISING:
        yield f"Held-out perplexity was lowest after {value:,.0f} tokens, then rose: the model is memorising its text."
    elif trend is Trend.FLAT:
        yield "The held-out perplexity has stopped falling."
    if figures.has_many_unknown and figures.is_vocabulary_full:
        yield (
            f"{figures.unknown_rate:.1%} of the held-out words are unknown: a vocabulary of {figures.num_rows:,} rows"
            " is too small for this text."
        )
    elif figures.has_many_unknown:
        yield f"{figures.unknown_rate:.1%} of the held-out words are unknown: they are too rare in the training text."
        if not figures.config.text.split_unknown:
            yield "To split such words into known words and characters, segment with: --set text.split_unknown=true"
    if figures.train_tokens < _LITTLE_TEXT:
        yield f"{figures.train_tokens:,} tokens is not much text; a good model needs millions."


def _compare_heldout(figures: TrainingFigures, perplexity: float) -> Iterator[str]:
    compared = _compare(perplexity, figures.baselines)
    is_good = figures.is_below_bigram and not figures.flattery
    yield f"{compared}, as it should be." if is_good else f"{compared}."
    if figures.flattery:
        yield figures.flattery
    if figures.near_copies_trained and not figures.near_copies_heldout:
        yield (
            f"The held-out text has no near copies in the training text, because"
            f" text with near copies ({counted(figures.near_copies_trained, 'paragraph')}) was not held out."
        )


def _compare(perplexity: float, baselines: Mapping[str, float]) -> str:
    unigram, bigram = baselines["unigram"], baselines["bigram"]
    if perplexity < bigram:
        return f"The held-out perplexity, {perplexity:,.1f}, is below the bigram model's {bigram:,.1f}"
    if perplexity < unigram:
        return f"The held-out perplexity, {perplexity:,.1f}, is not yet below the bigram model's {bigram:,.1f}"
    return (
        f"The held-out perplexity, {perplexity:,.1f}, is no better than word frequencies alone"
        f" ({unigram:,.1f}), so the model has learned next to nothing"
    )


def _choose_advice(figures: TrainingFigures, trend: Trend) -> tuple[str, str]:
    config, may_fall = figures.config, trend in (Trend.FALLING, Trend.UNKNOWN)
    if figures.perplexity is None:
        return _MORE_TEXT
    if figures.has_diverged:
        return "A lower learning rate would help most", _new_run(
            {"train.learning_rate": config.train.learning_rate / 10}
        )
    if may_fall and not figures.is_below_bigram:
        return _train_longer(figures)
    if figures.train_tokens < _LITTLE_TEXT and not figures.started_from_model:
        return _MORE_TEXT
    if trend is Trend.RISING and figures.started_from_model:
        return "A lower learning rate would help most", _new_run(
            {"train.learning_rate": config.train.learning_rate / 2}
        )
    if trend is Trend.RISING:
        sizes = {"model.cell_dim": config.model.cell_dim, "model.projection_dim": config.model.projection_dim}
        return "A smaller model would help most", _new_run({name: max(1, size // 2) for name, size in sizes.items()})
    if figures.has_many_unknown and figures.is_vocabulary_full:
        return "A larger vocabulary would help most", _new_run({"vocab.size": 2 * config.vocab.size})
    if may_fall:
        return _train_longer(figures)
    return _use(figures) if figures.is_below_bigram else _MORE_TEXT


def _use(figures: TrainingFigures) -> tuple[str, str]:
    if figures.flattery:
        return "Measure the model on text that it has not seen", "{program} evaluate other.txt --model {run}/model"
    return "The model is ready to use", "{program} embed file.txt --model {run}/model"


def _train_longer(figures: TrainingFigures) -> tuple[str, str]:
    """Return the advice to train twice as long, naming the limits that have to be raised."""
    train, changes = figures.config.train, []
    limits = [limit for limit in (train.max_tokens, train.epochs * figures.train_tokens) if limit]
    if 0 < train.max_tokens < 2 * min(limits):
        changes.append(f"--set train.max_tokens={2 * train.max_tokens}")
    if 0 < train.epochs * figures.train_tokens < 2 * min(limits):
        changes.append(f"--set train.epochs={2 * train.epochs:.12g}")
    advice = "Training longer would help most (export the model again afterwards)"
    return advice, f"{{program}} train --run {{run}} {' '.join(changes)}"


def _new_run(settings: Mapping[str, float]) -> str:
    changes = " ".join(f"--set {name}={value:.12g}" for name, value in settings.items())
    return f"{_TRAIN}my-texts/ --run runs/new {changes}"


def describe_verdict(verdict: Mapping[str, Any], run: Path) -> list[str]:
    """Return the lines that show users a verdict, as stored in a stage record."""
    command = verdict["command"].replace("{program}", program()).replace("{run}", shlex.quote(str(run)))
    if command.startswith(_TRAIN):
        command = train_command(*shlex.split(command.removeprefix(_TRAIN)))
    advice = verdict["advice"].replace(_INIT, train_option("--init", "starter"))
    return [translate("Verdict:"), *(f"  {line}" for line in (*verdict["findings"], f"{advice}: {command}"))]


def report_baselines(store: IdStore, seed: int, reporter: Reporter) -> dict[str, Any]:
    """Report and return the n-gram baselines' perplexity and bits per character on all held-out text, by name."""
    if not len(store.heldout):
        reporter.warn("No text is held out, so perplexity cannot be measured.")
        return {}
    nats = measure_baselines(store, seed)
    measure = measure_text(store, np.arange(len(store.heldout)))
    baselines = {
        name: {"perplexity": measure.perplexity(value), "bits_per_character": measure.bits_per_character(value)}
        for name, value in nats.items()
    }
    listed = ", ".join(
        f"{translate(name)} {figures['perplexity']:,.1f} ({figures['bits_per_character']:.3f} bits per character)"
        for name, figures in baselines.items()
    )
    reporter.note(f"Held-out perplexity of n-gram baselines, for comparison with the model: {listed}.")
    return baselines


def report_summary(counts: Mapping[str, Any], reporter: Reporter) -> None:
    """Report the cost of training, and how well the model predicts compared with the baselines."""
    reporter.note(
        f"Trained on {counts['tokens']:,} tokens ({counts['epochs']:.2f} epochs, {counted(counts['steps'], 'step')}) in"
        f" {format_seconds(counts['training_seconds'])}, including evaluations; peak memory"
        f" {counts['memory']['peak_bytes'] / 1e9:.1f} GB (predicted"
        f" {counts['memory']['predicted_bytes'] / 1e9:.1f} GB)."
    )
    if "heldout" not in counts:
        return
    heldout = counts["heldout"]
    reporter.note(
        f"Results on all held-out text ({heldout['num_predictions']:,} predictions), checkpoint from step"
        f" {heldout['step']:,}:"
    )
    rows = [
        ("biLM", heldout["perplexity"], heldout["bits_per_character"]),
        (f"  {translate('forward LM')}", heldout["forward_perplexity"], None),
        (f"  {translate('backward LM')}", heldout["backward_perplexity"], None),
        *(
            (translate(name), figures["perplexity"], figures["bits_per_character"])
            for name, figures in counts["baselines"].items()
        ),
    ]
    cells = [(name, f"{value:,.1f}", "" if bits is None else f"{bits:.3f}") for name, value, bits in rows]
    for line in aligned(cells, header=("", "perplexity", "bits per character")):
        reporter.note(f"  {line}")


def draw_run(run: RunDir, config: Config, counts: Mapping[str, Any]) -> None:
    """Draw the curves of a run's training as training.png."""
    model, num_rows = config.model, len(load_vocabulary(run.vocab))
    kind = "token mode" if model.mode == "token" else "character mode"
    details = [
        f"{kind}, layers: {model.num_layers} (cell size {model.cell_dim}, projection size {model.projection_dim});"
        f" vocabulary of {num_rows:,} rows; trained for {format_seconds(counts['training_seconds'])}"
        f" ({counts['epochs']:,.1f} epochs)"
    ]
    if heldout := counts.get("heldout"):
        details.append(
            f"checkpoint from step {heldout['step']:,} on all held-out text: perplexity"
            f" {format_figure(heldout['perplexity'])}, {heldout['bits_per_character']:.3f} bits per character"
        )
    title = f"biLM trained on {name_corpus(run.name, corpus_names(run))}"
    figure = training_figure(MetricsFile(run.metrics).lines(), counts["baselines"], title, details)
    save_picture(figure, run.training_picture)
