"""The verdict on a training run: how good the model is, what limits it, and what would help.

Its findings are names and figures, so they can be stored in the stage record and shown again without the model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elmo_zh.config import Config
from elmo_zh.language import N_, _

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
    bigram: float  # Perplexity of the bigram model on the same text
    curve: Sequence[tuple[int, float]]  # Tokens trained, and perplexity on the held-out sample after them, in order
    unknown_rate: float  # Fraction of the held-out tokens that are outside the vocabulary
    num_rows: int  # Number of vocabulary rows
    started_from_model: bool  # Whether training started from another model
    config: Config  # The run's settings


@dataclass(frozen=True)
class Finding:
    """Something that limits a model, or shows how good it is: a name in the table below, and its figures."""

    kind: str
    figures: Mapping[str, str] = field(default_factory=dict)


def find_trend(points: Sequence[tuple[int, float]]) -> tuple[str, float]:
    """Return the trend, and the fraction by which the perplexity fell in the second half of training.

    The trend is "falling", "rising", or "" if it is neither or there are too few points. If it is rising, the number is
    instead the count of tokens after which the perplexity was lowest.
    """
    if len(points) < 2:
        return "", 0.0
    end, last = points[-1]
    best_tokens, best = min(points, key=lambda point: point[1])
    if last > (1 + _RISE) * best:
        return "rising", best_tokens
    half = [perplexity for tokens, perplexity in points[:-1] if tokens <= end / 2] or [points[0][1]]
    fall = 1 - last / half[-1]
    return "falling" if fall > _FALL else "", fall


_TRAIN_LONGER = N_(
    "Train longer: raise train.epochs and train.max_tokens (0 means no limit), then train and export again."
)
_ADD_TEXT = N_("Add text, or start from a model trained on more: --init starter")
# What is found, and what would help; docs/training.md explains the advice.
_FINDINGS = {
    "diverged": (
        N_("The training has diverged: held-out perplexity {perplexity} is far worse than guessing."),
        N_("Start a new run with a lower train.learning_rate."),
    ),
    "not measured": (
        N_("No text was held out, so it is not known how good the model is."),
        N_("Start a new run with more text, or with a larger text.heldout_share."),
    ),
    "below bigram": (N_("Held-out perplexity {perplexity} is below the bigram model's {bigram}, as it should be."), ""),
    "above bigram": (
        N_("Held-out perplexity {perplexity} is not yet below the bigram model's {bigram}."),
        _TRAIN_LONGER,
    ),
    "falling": (
        N_("The held-out perplexity was still falling at the end (by {fall} in the second half of training)."),
        _TRAIN_LONGER,
    ),
    "rising": (
        N_("Held-out perplexity was lowest after {best_tokens} tokens, then rose: the model is memorising its text."),
        N_("Use more text, or start a new run with a smaller model or a lower train.learning_rate."),
    ),
    "unknown words": (
        N_("{unknown} of the held-out words are outside the vocabulary of {rows} rows."),
        N_("Start a new run with a larger vocab.size, or with text.split_unknown=true."),
    ),
    "little text": (
        N_("{tokens} tokens is not much text; a good model needs millions."),
        _ADD_TEXT,
    ),
    "ready": (N_("The model is ready to use."), ""),
}


def judge(figures: TrainingFigures) -> list[Finding]:
    """Return the findings on a training run."""
    findings = [*_iter_findings(figures)]
    is_ready = not any(_FINDINGS[finding.kind][1] for finding in findings)
    return [*findings, Finding("ready")] if is_ready else findings


def _iter_findings(figures: TrainingFigures) -> Iterator[Finding]:
    perplexity = figures.perplexity
    if perplexity is not None and perplexity > _DIVERGED * figures.num_rows:
        yield Finding("diverged", {"perplexity": f"{perplexity:.3g}"})
        return
    if perplexity is None:
        yield Finding("not measured")
    else:
        kind = "below bigram" if perplexity < figures.bigram else "above bigram"
        yield Finding(kind, {"perplexity": f"{perplexity:,.1f}", "bigram": f"{figures.bigram:,.1f}"})
    # Random initial weights say nothing about the trend; those of another model are what training should improve.
    trend, value = find_trend([point for point in figures.curve if point[0] or figures.started_from_model])
    if trend:
        yield Finding(trend, {"fall": f"{value:.1%}", "best_tokens": f"{value:,.0f}"})
    # In character mode, unknown words do not limit the model, since it can read them.
    config = figures.config
    if config.model.mode == "token" and figures.unknown_rate > _MANY_UNKNOWN and not config.text.split_unknown:
        yield Finding("unknown words", {"unknown": f"{figures.unknown_rate:.1%}", "rows": f"{figures.num_rows:,}"})
    if figures.train_tokens < _LITTLE_TEXT and not figures.started_from_model:
        yield Finding("little text", {"tokens": f"{figures.train_tokens:,}"})


def describe_verdict(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines that show users the findings of a stage record."""
    lines = [_("Verdict:")]
    for finding in findings:
        if finding["kind"] in _FINDINGS:  # records of earlier versions have others
            lines += [f"  {_(line).format(**finding['figures'])}" for line in _FINDINGS[finding["kind"]] if line]
    return lines
