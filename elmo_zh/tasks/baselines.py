"""Models that need no vectors, to compare networks with: the most frequent label, and TF-IDF of characters."""

import importlib.util
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from elmo_zh.tasks.examples import OUTSIDE, Example
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, tag_prediction

# The inverse strength of the linear model's penalty; the best one on the development examples is taken.
_PENALTIES = (1.0, 10.0, 100.0)


def can_fit_tfidf() -> bool:
    """Return whether scikit-learn is installed."""
    return importlib.util.find_spec("sklearn") is not None


def predict_majority(
    train: Sequence[Example], test: Sequence[Example], *, regression: bool, marks_spans: bool
) -> list[Prediction]:
    """Return the most frequent label of the training examples for all; for numbers their mean, for spans none."""
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


def predict_tfidf(train: Sequence[Example], dev: Sequence[Example], test: Sequence[Example]) -> list[Prediction]:
    """Return the classes that logistic regression predicts from the characters and pairs of characters of each text."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    if len({example.labels for example in train}) < 2 or not any(example.texts[0] for example in train):
        return predict_majority(train, test, regression=False, marks_spans=False)
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True)
    (texts, labels), (dev_texts, dev_labels) = _columns(train), _columns(dev)
    features, dev_features = vectorizer.fit_transform(texts), vectorizer.transform(dev_texts)
    models = [LogisticRegression(C=penalty, max_iter=1000).fit(features, labels) for penalty in _PENALTIES]
    best = max(models, key=lambda model: float(model.score(dev_features, dev_labels)))
    found: list[Any] = best.predict(vectorizer.transform(_columns(test)[0])).tolist()
    return [ClassPrediction(label, {label: 1.0}) for label in found]


def _columns(examples: Sequence[Example]) -> tuple[list[str], list[str]]:
    return [example.texts[0] for example in examples], [example.labels[0] for example in examples]
