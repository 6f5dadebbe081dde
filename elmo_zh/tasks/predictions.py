"""A task's predictions for a text, and the rows that represent them: JSON objects, rows of a table, or CoNLL."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config.task_settings import HeadSettings, PredictionForm
from elmo_zh.corpus.readers.examples import OUTSIDE, Example, spans_of, tags_of


@dataclass(frozen=True)
class ClassPrediction:
    """The predicted class of a text or a pair.

    Attributes:
        label: The most probable class.
        probabilities: The probability of each class.
    """

    label: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class NumberPrediction:
    """The predicted number for a text or a pair, in regression."""

    value: float


@dataclass(frozen=True)
class PredictedSpan:
    """A predicted span of characters.

    Attributes:
        start: Its first character in the text as given.
        end: One past its last character.
        label: Its type.
        text: The characters.
        probability: Probability that it is a span of this type; None unless requested.
    """

    start: int
    end: int
    label: str
    text: str
    probability: float | None = None


@dataclass(frozen=True, eq=False)
class TagPrediction:
    """The predicted tags of a text.

    Attributes:
        text: The text as given.
        units: The characters or words that have tags.
        offsets: Start and end of each unit in characters, int32, shape (n, 2).
        tags: The tag of each unit, in the scheme of the training data.
        spans: The spans marked by the tags; may be empty.
        marks_spans: Whether the task's tags mark spans.
        probabilities: The probability of each unit's tag (for spans, its BIOES tag); None unless requested.
    """

    text: str
    units: list[str]
    offsets: NDArray[np.int32] = field(repr=False)
    tags: list[str]
    spans: list[PredictedSpan]
    marks_spans: bool
    probabilities: list[float] | None = None


Prediction = ClassPrediction | NumberPrediction | TagPrediction


def class_prediction(labels: Sequence[str], probabilities: Sequence[float]) -> ClassPrediction:
    """Turn the class probabilities of a text, in the order of the labels, into a prediction."""
    found = dict(zip(labels, probabilities, strict=True))
    return ClassPrediction(max(found, key=lambda label: found[label]), found)


def class_predictions(logs: NDArray[np.float64], labels: Sequence[str]) -> list[Prediction]:
    """Turn log-probabilities of the classes, shape (N, K), into predictions."""
    return [class_prediction(labels, row) for row in np.exp(logs).tolist()]


def tag_prediction(text: str, offsets: NDArray[np.int32], tags: Sequence[str], scheme: str) -> TagPrediction:
    """Convert a text's BIOES tags to spans and to the tags of a scheme; without a scheme, keep the tags."""
    units = [text[start:end] for start, end in offsets]
    if not scheme:
        return TagPrediction(text, units, offsets, list(tags), [], marks_spans=False)
    spans = spans_of(tags)[0]
    found = []
    for first, end, kind in spans:
        start, stop = int(offsets[first, 0]), int(offsets[end - 1, 1])
        found.append(PredictedSpan(start, stop, kind, text[start:stop]))
    return TagPrediction(text, units, offsets, tags_of(spans, len(tags), scheme), found, marks_spans=True)


def predict_majority(
    train: Sequence[Example], test: Sequence[Example], settings: HeadSettings, scheme: str
) -> list[Prediction]:
    """Predict the most frequent training label for every text; for numbers, their mean; for spans, no spans."""
    if settings.regression:
        mean = float(np.mean([float(example.labels[0]) for example in train]))
        return [NumberPrediction(mean) for _ in test]
    counts = Counter(label for example in train for label in example.labels)
    label = OUTSIDE if scheme else max(sorted(counts), key=lambda each: counts[each])
    return [
        ClassPrediction(label, {label: 1.0})
        if example.units is None
        else tag_prediction(example.texts[0], example.units, [label] * len(example.labels), scheme and "BIOES")
        for example in test
    ]


def columns_of(form: PredictionForm, *, of_tags: bool, of_numbers: bool, num_texts: int) -> list[str]:
    """Return the column names of a table of predictions, which depend on the kind of task."""
    if of_tags:
        return ["line", "start", "end", "label", *(["probability"] if form.probabilities else []), "text"]
    return [*(["value"] if of_numbers else ["label", "probability"]), *_named([""] * num_texts)]


def rows_of(kind: str, number: int, texts: Sequence[str], prediction: Prediction) -> Iterator[dict[str, Any]]:
    """Yield one prediction as a JSON object, or as one row per text, span or unit; `number` counts texts from 0."""
    if kind == "jsonl":
        yield {**_named(texts), **_values(prediction)}
    elif isinstance(prediction, TagPrediction):
        yield from _spans(number, prediction)
    elif isinstance(prediction, NumberPrediction):
        yield {"value": f"{prediction.value:.6g}", **_named(texts)}
    else:
        probability = f"{prediction.probabilities[prediction.label]:.6f}"
        yield {"label": prediction.label, "probability": probability, **_named(texts)}


def _named(texts: Sequence[str]) -> dict[str, str]:
    return {"text": texts[0]} if len(texts) == 1 else {"text1": texts[0], "text2": texts[1]}


def _values(prediction: Prediction) -> dict[str, Any]:
    if isinstance(prediction, ClassPrediction):
        rounded = {label: round(value, 6) for label, value in prediction.probabilities.items()}
        return {"label": prediction.label, "probabilities": rounded}
    if isinstance(prediction, NumberPrediction):
        return {"value": prediction.value}
    if prediction.marks_spans:
        return {"spans": [_span(span) for span in prediction.spans]}
    found = {"units": prediction.units, "offsets": prediction.offsets.tolist(), "tags": prediction.tags}
    if prediction.probabilities is not None:
        found["probabilities"] = [round(value, 6) for value in prediction.probabilities]
    return found


def _span(span: PredictedSpan) -> dict[str, Any]:
    found = asdict(span)
    if span.probability is None:
        del found["probability"]
    else:
        found["probability"] = round(span.probability, 6)
    return found


def _spans(number: int, prediction: TagPrediction) -> Iterator[dict[str, Any]]:
    if prediction.marks_spans:
        found = [(span.start, span.end, span.label, span.probability, span.text) for span in prediction.spans]
    else:
        rows = zip(
            prediction.offsets.tolist(), prediction.tags, _probabilities(prediction), prediction.units, strict=True
        )
        found = [(start, end, tag, probability, unit) for (start, end), tag, probability, unit in rows]
    for start, end, label, probability, text in found:
        shown = {} if probability is None else {"probability": f"{probability:.6f}"}
        yield {"line": number, "start": start, "end": end, "label": label, **shown, "text": text}


def conll_of(prediction: TagPrediction, scheme: str | None) -> str:
    """Return a tagged text in CoNLL, with spans marked in the given scheme or else as in the training data."""
    tags = prediction.tags
    if scheme and prediction.marks_spans:
        tags = tags_of(spans_of(tags)[0], len(tags), scheme)
    rows = zip(prediction.units, _probabilities(prediction), tags, strict=True)
    # The tag stays the last column, where readers of CoNLL expect it.
    cells = ([unit, *([] if each is None else [f"{each:.6f}"]), tag] for unit, each, tag in rows)
    return "".join("\t".join(row) + "\n" for row in cells) + "\n"


def _probabilities(prediction: TagPrediction) -> Sequence[float | None]:
    return [None] * len(prediction.units) if prediction.probabilities is None else prediction.probabilities
