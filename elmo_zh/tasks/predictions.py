"""The prediction of a task model for a text: a class with probabilities, a number, or tags and spans."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmo_zh.tasks.data.schemes import spans_of, tags_of


@dataclass(frozen=True)
class ClassPrediction:
    """The class of a text or a pair.

    Attributes:
        label: The most probable class.
        probabilities: The probability of each class.
    """

    label: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class NumberPrediction:
    """The number of a text or a pair, in regression."""

    value: float


@dataclass(frozen=True)
class PredictedSpan:
    """A span of characters.

    Attributes:
        start: Its first character in the text as given.
        end: The one after its last.
        label: Its type.
        text: The characters.
        probability: That it is a span of this type; None unless it was asked for.
    """

    start: int
    end: int
    label: str
    text: str
    probability: float | None = None


@dataclass(frozen=True, eq=False)
class TagPrediction:
    """The tags of a text.

    Attributes:
        text: The text as given.
        units: The characters or words that have tags.
        offsets: First character of each unit and the one after its last, int32, shape (n, 2).
        tags: The tag of each unit, in the scheme of the training data.
        spans: The spans that the tags mark; empty for tags that mark none.
        marks_spans: Whether tags mark spans at all.
        probabilities: The probability of each unit's tag, of spans of its BIOES tag; None unless they were asked for.
    """

    text: str
    units: list[str]
    offsets: NDArray[np.int32] = field(repr=False)
    tags: list[str]
    spans: list[PredictedSpan]
    marks_spans: bool
    probabilities: list[float] | None = None


Prediction = ClassPrediction | NumberPrediction | TagPrediction


def tag_prediction(text: str, offsets: NDArray[np.int32], tags: Sequence[str], scheme: str) -> TagPrediction:
    """Return the tags of a text as they are, or for a scheme its spans and their tags in that scheme.

    Args:
        text: The text.
        offsets: Start and end of each unit, int32, shape (n, 2).
        tags: BIOES tags, or tags that mark no spans.
        scheme: Scheme of the tags to return; "" if they mark no spans.
    """
    units = [text[start:end] for start, end in offsets]
    if not scheme:
        return TagPrediction(text, units, offsets, list(tags), [], marks_spans=False)
    spans = spans_of(tags)[0]
    found = []
    for first, end, kind in spans:
        start, stop = int(offsets[first, 0]), int(offsets[end - 1, 1])
        found.append(PredictedSpan(start, stop, kind, text[start:stop]))
    return TagPrediction(text, units, offsets, tags_of(spans, len(tags), scheme), found, marks_spans=True)
