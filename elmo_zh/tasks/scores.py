"""Scores of predictions, and intervals for their differences by the paired bootstrap (Efron and Tibshirani 1993)."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import confusion_matrix

from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.readers.examples import Example, spans_of
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, TagPrediction

Rows = NDArray[np.float64]
# Bootstrap draws for a score that is a ratio of sums, and for a rank correlation, which sorts anew in each draw.
_DRAWS, _DRAWS_OF_RANKS = 10_000, 1_000
_CHUNK_NUMBERS = 2**22


def confusion(gold: Sequence[Any], predicted: Sequence[Any], labels: Sequence[Any]) -> NDArray[np.int64]:
    """Count how often each label (row) was predicted as each label (column), int64, shape (K, K)."""
    # scikit-learn wonders about many classes, and about one.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        matrix: NDArray[np.int64] = confusion_matrix(gold, predicted, labels=labels)
    return matrix


def score_classes(gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, Any]:
    """Return `accuracy`, `macro_f1` (the mean over labels that occur) and each label's F1 in `by_label`."""
    labels = sorted({*gold, *predicted})
    matrix = confusion(gold, predicted, labels)
    counts = zip(matrix.diagonal().tolist(), matrix.sum(axis=0).tolist(), matrix.sum(axis=1).tolist(), strict=True)
    by_label = {label: _prf(*own) for label, own in zip(labels, counts, strict=True)}
    macro_f1 = float(np.mean([scores["f1"] for scores in by_label.values()]))
    return {"accuracy": _ratio(int(matrix.trace()), len(gold)), "macro_f1": macro_f1, "by_label": by_label}


def score_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return micro-averaged `precision`, `recall` and `f1` of whole spans, and each type's scores in `by_label`.

    A span is correct if its borders and its type are. Tags may follow any scheme.
    """
    correct, found, wanted = Counter[str](), Counter[str](), Counter[str]()
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = set(spans_of(gold_tags)[0]), set(spans_of(predicted_tags)[0])
        wanted.update(kind for _, _, kind in gold_spans)
        found.update(kind for _, _, kind in predicted_spans)
        correct.update(kind for _, _, kind in gold_spans & predicted_spans)
    by_label = {kind: _prf(correct[kind], found[kind], wanted[kind]) for kind in sorted({*found, *wanted})}
    overall = _prf(correct.total(), found.total(), wanted.total())
    return {name: overall[name] for name in ("f1", "precision", "recall")} | {"by_label": by_label}


def score_numbers(gold: Sequence[float], predicted: Sequence[float]) -> dict[str, Any]:
    """Return the correlations `pearson` and `spearman`, and the root mean square error `rmse`."""
    true, predictions = np.array(gold, np.float64), np.array(predicted, np.float64)
    return {
        "pearson": _correlation(true, predictions),
        "spearman": rank_correlation(true, predictions),
        "rmse": float(np.sqrt(np.mean((true - predictions) ** 2))),
    }


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Spearman's correlation; 0 if either array is constant."""
    return _correlation(rankdata(a), rankdata(b))


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _prf(correct: int, found: int, wanted: int) -> dict[str, Any]:
    precision, recall = _ratio(correct, found), _ratio(correct, wanted)
    return {
        "f1": _ratio(2 * correct, found + wanted),
        "precision": precision,
        "recall": recall,
        "count": wanted,
    }


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def main_metric(settings: HeadSettings, *, marks_spans: bool) -> str:
    """Return the name of the score that decides when to stop: accuracy, macro_f1, f1 of spans, or spearman."""
    if settings.kind == "tag":
        return "f1" if marks_spans else "accuracy"
    return "spearman" if settings.regression else settings.metric


def score_predictions(
    examples: Sequence[Example], predictions: Sequence[Prediction], *, marks_spans: bool
) -> dict[str, Any]:
    """Score predictions against labelled examples: classes, numbers, spans, or tags that do not mark spans."""
    first = predictions[0]
    if isinstance(first, TagPrediction):
        gold = [example.labels for example in examples]
        found = [each.tags for each in predictions if isinstance(each, TagPrediction)]
        if marks_spans:
            return score_spans(gold, found)
        return score_classes(*([tag for tags in each for tag in tags] for each in (gold, found)))
    labels = [example.labels[0] for example in examples]
    if isinstance(first, NumberPrediction):
        values = [each.value for each in predictions if isinstance(each, NumberPrediction)]
        return score_numbers([float(label) for label in labels], values)
    return score_classes(labels, [each.label for each in predictions if isinstance(each, ClassPrediction)])


def confusable_labels(
    examples: Sequence[Example], predictions: Sequence[Prediction], *, marks_spans: bool
) -> tuple[list[str], list[str]]:
    """Return the true and predicted labels for a confusion matrix; for spans, the type of each unit."""
    gold: list[str] = []
    found: list[str] = []
    for example, prediction in zip(examples, predictions, strict=True):
        if isinstance(prediction, TagPrediction):
            gold += [_type(tag) if marks_spans else tag for tag in example.labels]
            found += [_type(tag) if marks_spans else tag for tag in prediction.tags]
        elif isinstance(prediction, ClassPrediction):
            gold.append(example.labels[0])
            found.append(prediction.label)
    return gold, found


def _type(tag: str) -> str:
    return tag[2:] or tag


@dataclass(frozen=True)
class Difference:
    """The difference between two scores over all test examples, and its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def points(self) -> str:
        """Return the difference in points with its interval, such as +1.50 (-0.20 to +3.10)."""
        value, low, high = (f"{100 * each:+.2f}" for each in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


def example_rows(
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    *,
    metric: str,
    marks_spans: bool = False,
    labels: Iterable[str] = (),
) -> Rows:
    """Return how much each example contributes to the score, float64, shape (N, 2).

    For accuracy: right labels and all labels. For F1 of spans: twice the right spans, and predicted plus true spans;
    the score is the sum of the first column over the sum of the second. For numbers: the true and the predicted number.
    For macro F1: the true and the predicted class, numbered from 0 in order of name among all `labels`.
    """
    classes = {*labels, *(each.label for each in predictions if isinstance(each, ClassPrediction))}
    classes |= {example.labels[0] for example in examples}
    numbers = {name: number for number, name in enumerate(sorted(classes))}

    def row(example: Example, prediction: Prediction) -> tuple[float, float]:
        if isinstance(prediction, NumberPrediction):
            return float(example.labels[0]), prediction.value
        if isinstance(prediction, TagPrediction):
            return _tag_row(example, prediction, marks_spans)
        if metric == "macro_f1":
            return numbers[example.labels[0]], numbers[prediction.label]
        return float(prediction.label == example.labels[0]), 1.0

    rows = [row(example, each) for example, each in zip(examples, predictions, strict=True)]
    return np.array(rows, np.float64).reshape(-1, 2)


def _tag_row(example: Example, prediction: TagPrediction, marks_spans: bool) -> tuple[float, float]:
    if not marks_spans:
        right = sum(gold == found for gold, found in zip(example.labels, prediction.tags, strict=True))
        return float(right), float(len(example.labels))
    gold, found = set(spans_of(example.labels)[0]), set(spans_of(prediction.tags)[0])
    return 2.0 * len(gold & found), float(len(gold) + len(found))


def score_rows(rows: Rows, *, metric: str) -> float:
    """Compute a score from the contributions of all examples."""
    if metric == "spearman":
        return rank_correlation(rows[:, 0], rows[:, 1])
    return float(_ratios(_summands(rows[None], metric)[0].sum(axis=0)))


def bootstrap_difference(first: Sequence[Rows], second: Sequence[Rows], *, metric: str, seed: int) -> Difference:
    """Return how much higher the first model scores than the second, averaged over runs, with a 95% interval."""
    models, generator = (np.stack(first), np.stack(second)), np.random.default_rng(seed)
    if metric == "spearman":
        drawn = _draw_ranks(models, generator)
    else:
        drawn = _draw_ratios([_summands(model, metric) for model in models], generator)
    low, high = np.quantile(drawn, (0.025, 0.975))
    ours, others = (np.mean([score_rows(rows, metric=metric) for rows in model]) for model in models)
    return Difference(float(ours - others), float(low), float(high))


def _draw_ratios(models: Sequence[Rows], generator: np.random.Generator) -> Rows:
    """Return the difference between the scores in each draw; an example drawn k times counts k times."""
    num_examples = models[0].shape[1]
    chunk = max(1, min(_DRAWS, _CHUNK_NUMBERS // num_examples))
    found = []
    for start in range(0, _DRAWS, chunk):
        size = min(chunk, _DRAWS - start)
        drawn = generator.integers(num_examples, size=(size, num_examples))
        drawn += np.arange(size)[:, None] * num_examples
        counts = np.bincount(drawn.ravel(), minlength=size * num_examples).reshape(size, num_examples)
        ours, others = (_ratios(_sums(counts.astype(np.float64), model)).mean(axis=0) for model in models)
        found.append(ours - others)
    return np.concatenate(found)


def _draw_ranks(models: Sequence[Rows], generator: np.random.Generator) -> Rows:
    num_examples = models[0].shape[1]

    def score(model: Rows) -> float:
        return float(np.mean([rank_correlation(rows[:, 0], rows[:, 1]) for rows in model]))

    draws = (generator.integers(num_examples, size=num_examples) for _ in range(_DRAWS_OF_RANKS))
    return np.array([score(models[0][:, drawn]) - score(models[1][:, drawn]) for drawn in draws])


def _summands(models: Rows, metric: str) -> Rows:
    """Return each example's summands, float64, shape (S, N, K, 2), for S training runs with rows of shape (S, N, 2).

    For macro F1, a class gets two numbers: 2 if it is predicted correctly, else 0; and 1 if it is the true class plus 1
    if it is the predicted one. For other metrics, K is 1.
    """
    if metric != "macro_f1":
        return models[:, :, None]
    is_of_class = models[..., None, :] == np.arange(models.max(initial=0) + 1)[:, None]
    gold, found = is_of_class[..., 0], is_of_class[..., 1]
    return np.stack([2.0 * (gold & found), gold.astype(np.float64) + found], axis=-1)


def _sums(counts: Rows, summands: Rows) -> Rows:
    """Return the sums for D draws, float64, shape (S, D, K, 2), given each example's `counts` in them, shape (D, N)."""
    num_trainings, num_examples, num_classes, _ = summands.shape
    flat = counts @ summands.reshape(num_trainings, num_examples, 2 * num_classes)
    return flat.reshape(num_trainings, len(counts), num_classes, 2)


def _ratios(sums: Rows) -> Rows:
    """Return ratios along the last axis, averaged over the classes whose denominator is above 0."""
    wholes = sums[..., 1]
    ratios = np.divide(sums[..., 0], wholes, out=np.zeros(wholes.shape), where=wholes > 0)
    found: Rows = ratios.sum(axis=-1) / np.maximum(1, (wholes > 0).sum(axis=-1))
    return found
