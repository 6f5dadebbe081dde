"""The verdict on a finished training run, in plain words: how good the model is, what limits it, and what would help.

Its findings need only figures, so they can be stored in the stage record and shown again without the model.
docs/training.md explains the advice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from elmo_zh.config import Config
from elmo_zh.language import translate
from elmo_zh.run.reporter import counted

# Held-out perplexity changes by more than noise if it falls by this share in the second half of training, or ends this
# share above its lowest value.
_FALL, _RISE = 0.03, 0.02
_MANY_UNKNOWN = 0.05
# Training has diverged if the perplexity is above this many times the vocabulary size.
_DIVERGED = 10
# With fewer tokens of training text, more text helps more than anything else.
_LITTLE_TEXT = 1_000_000


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
    num_near_copies: int = 0  # Held-out paragraphs with near copies in the training text
    config: Config  # The run's settings


@dataclass(frozen=True)
class Finding:
    """Something that limits a model, or shows how good it is."""

    kind: str
    text: str
    advice: str = ""


class Trend(Enum):
    """Where the held-out perplexity was heading when training ended."""

    FALLING = "falling"
    FLAT = "flat"
    RISING = "rising"
    UNKNOWN = "unknown"


def find_trend(curve: Sequence[tuple[int, float]]) -> tuple[Trend, float]:
    """Return the trend, and by how much the perplexity fell or, if it rose, after how many tokens it was lowest."""
    points = [(tokens, perplexity) for tokens, perplexity in curve if tokens]
    if len(points) < 2:
        return Trend.UNKNOWN, 0.0
    end, last = points[-1]
    best_tokens, best = min(points, key=lambda point: point[1])
    if last > (1 + _RISE) * best:
        return Trend.RISING, best_tokens
    half = [perplexity for tokens, perplexity in points[:-1] if tokens <= end / 2] or [points[0][1]]
    fall = 1 - last / half[-1]
    return (Trend.FALLING, fall) if fall > _FALL else (Trend.FLAT, fall)


def judge(figures: TrainingFigures) -> list[Finding]:
    """Judge a finished training run by its figures."""
    if figures.perplexity is not None and figures.perplexity > _DIVERGED * figures.num_rows:
        text = f"The training has diverged: held-out perplexity {figures.perplexity:.3g} is far worse than guessing."
        return [Finding("diverged", text, "Start a new run with a lower train.learning_rate.")]
    findings = [*_judge_perplexity(figures), *_judge_trend(figures), *_judge_text(figures)]
    is_ready = not any(finding.advice for finding in findings)
    return [*findings, Finding("ready", "The model is ready to use.")] if is_ready else findings


def _judge_perplexity(figures: TrainingFigures) -> Iterator[Finding]:
    if figures.perplexity is None:
        text = "No text was held out, so it is not known how good the model is."
        yield Finding("not measured", text, "Use more text, with a paragraph on each line.")
        return
    unigram, bigram = figures.baselines["unigram"], figures.baselines["bigram"]
    reached, advice = f"The held-out perplexity, {figures.perplexity:,.1f}, is", "Train longer, or use more text."
    if figures.perplexity < bigram:
        yield Finding("below bigram", f"{reached} below the bigram model's {bigram:,.1f}, as it should be.")
    elif figures.perplexity < unigram:
        yield Finding("above bigram", f"{reached} not yet below the bigram model's {bigram:,.1f}.", advice)
    else:
        text = (
            f"{reached} no better than word frequencies alone ({unigram:,.1f}): the model has learned next to nothing."
        )
        yield Finding("above unigram", text, advice)
    if figures.num_near_copies:
        text = (
            f"The training text contains near copies of {counted(figures.num_near_copies, 'paragraph')} in the held-out"
            " text, so this perplexity flatters the model."
        )
        yield Finding("near copies", text, "Measure the model on other text with the command evaluate.")


def _judge_trend(figures: TrainingFigures) -> Iterator[Finding]:
    trend, value = find_trend(figures.curve)
    if trend is Trend.FALLING:
        text = f"The held-out perplexity was still falling at the end (by {value:.1%} in the second half of training)."
        yield Finding("falling", text, "Train longer: raise train.max_tokens and train.epochs, train and export again.")
    elif trend is Trend.RISING:
        text = f"Held-out perplexity was lowest after {value:,.0f} tokens, then rose: the model is memorising its text."
        other = "a lower train.learning_rate" if figures.started_from_model else "a smaller model"
        yield Finding("rising", text, f"Use more text, or start a new run with {other}.")
    elif trend is Trend.FLAT:
        yield Finding("flat", "The held-out perplexity has stopped falling.")


def _judge_text(figures: TrainingFigures) -> Iterator[Finding]:
    config = figures.config
    # In character mode, unknown words do not limit the model, since it can read them.
    if config.model.mode == "token" and figures.unknown_rate > _MANY_UNKNOWN:
        unknown = f"{figures.unknown_rate:.1%} of the held-out words are unknown:"
        if 0 < config.vocab.size <= figures.num_rows:
            text = f"{unknown} a vocabulary of {figures.num_rows:,} rows is too small for this text."
            yield Finding("small vocabulary", text, "Start a new run with a larger vocab.size.")
        else:
            advice = "" if config.text.split_unknown else "To split them, segment with: --set text.split_unknown=true"
            yield Finding("rare words", f"{unknown} they are too rare in the training text.", advice)
    if figures.train_tokens < _LITTLE_TEXT:
        advice = "" if figures.started_from_model else "Add text, or start from a model trained on more: --init starter"
        text = f"{figures.train_tokens:,} tokens is not much text; a good model needs millions."
        yield Finding("little text", text, advice)


def describe_verdict(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines that show users the findings, as stored in a stage record."""
    lines = (line for finding in findings for line in (finding["text"], finding["advice"]) if line)
    return [translate("Verdict:"), *(f"  {line}" for line in lines)]
