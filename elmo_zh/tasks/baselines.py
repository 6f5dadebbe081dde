"""The majority baseline: always predict the most frequent label."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from elmo_zh.tasks.examples import OUTSIDE, Example
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, tag_prediction


def predict_majority(
    train: Sequence[Example], test: Sequence[Example], *, regression: bool, marks_spans: bool
) -> list[Prediction]:
    """Predict the most frequent training label for all examples; the mean for numbers, and no spans for spans."""
    if regression:
        mean = float(np.mean([float(example.labels[0]) for example in train]))
        return [NumberPrediction(mean) for _ in test]
    counts = Counter(label for example in train for label in example.labels)
    label = OUTSIDE if marks_spans else max(sorted(counts), key=lambda each: counts[each])
    return [_prediction(example, label, marks_spans) for example in test]


def _prediction(example: Example, label: str, marks_spans: bool) -> Prediction:
    if example.units is None:
        return ClassPrediction(label, {label: 1.0})
    tags = [label] * len(example.labels)
    return tag_prediction(example.texts[0], example.units, tags, "BIOES" if marks_spans else "")
