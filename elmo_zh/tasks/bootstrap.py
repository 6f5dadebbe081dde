"""Intervals of the difference of two scores: the paired bootstrap over test examples (Efron and Tibshirani 1993).

Examples are drawn with replacement, the same ones for both models, and the whole score is computed again from what each
example adds to it. The interval is that of the examples; the models are those that were trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.tasks.data.examples import Example
from elmo_zh.tasks.data.schemes import spans_of
from elmo_zh.tasks.predictions import ClassPrediction, NumberPrediction, Prediction, TagPrediction
from elmo_zh.tasks.scores import rank_correlation

Rows = NDArray[np.float64]
# Draws of a score that is a ratio of sums, and of a rank correlation, which has to be sorted anew for each.
_DRAWS, _DRAWS_OF_RANKS = 10_000, 1_000
_CHUNK_NUMBERS = 2**22


@dataclass(frozen=True)
class Difference:
    """The difference of two scores.

    Attributes:
        value: The difference on all test examples.
        low: Lower end of its 95% interval.
        high: Upper end.
    """

    value: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def example_rows(
    examples: Sequence[Example], predictions: Sequence[Prediction], *, metric: str, marks_spans: bool = False
) -> Rows:
    """Return what each example adds to the score, float64, shape (N, 2).

    For accuracy these are the right labels and all labels, for the F1 of spans twice the right spans and the predicted
    plus the true ones: the score is the sum of the first column over that of the second. For numbers they are the true
    number and the predicted one; for macro F1 the true class and the predicted one, numbered from 0 by their names.

    Args:
        examples: The test examples.
        predictions: The prediction of each.
        metric: Name of the score (`main_metric`).
        marks_spans: Whether tags mark spans.
    """
    classes = {each.label for each in predictions if isinstance(each, ClassPrediction)}
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
    """Return the score of all examples."""
    if metric == "spearman":
        return rank_correlation(rows[:, 0], rows[:, 1])
    return float(_ratios(_summands(rows[None], metric)[0].sum(axis=0)))


def bootstrap_difference(first: Sequence[Rows], second: Sequence[Rows], *, metric: str, seed: int) -> Difference:
    """Return how much the first model scores higher than the second, with a percentile interval of 95%.

    Args:
        first: The rows of the first model, one array (N, 2) for each of its trainings; their scores are averaged.
        second: Those of the second model, for the same examples in the same order.
        metric: Name of the score.
        seed: Seed of the draws.
    """
    models, generator = (np.stack(first), np.stack(second)), np.random.default_rng(seed)
    if metric == "spearman":
        drawn = _draw_ranks(models, generator)
    else:
        drawn = _draw_ratios([_summands(model, metric) for model in models], generator)
    low, high = np.quantile(drawn, (0.025, 0.975))
    ours, others = (np.mean([score_rows(rows, metric=metric) for rows in model]) for model in models)
    return Difference(float(ours - others), float(low), float(high))


def _draw_ratios(models: Sequence[Rows], generator: np.random.Generator) -> Rows:
    """Return the difference in each draw; an example that was drawn k times counts k times."""
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
    """Return what is summed up over the examples of S trainings, float64, shape (S, N, K, 2).

    For macro F1 there are summands for each of K classes: twice 1 if it is rightly predicted, and 1 if it is the true
    one plus 1 if it is the predicted one. Else K is 1.

    Args:
        models: Rows of `example_rows`, float64, shape (S, N, 2).
        metric: Name of the score.
    """
    if metric != "macro_f1":
        return models[:, :, None]
    is_of_class = models[..., None, :] == np.arange(models.max(initial=0) + 1)[:, None]
    gold, found = is_of_class[..., 0], is_of_class[..., 1]
    return np.stack([2.0 * (gold & found), gold.astype(np.float64) + found], axis=-1)


def _sums(counts: Rows, summands: Rows) -> Rows:
    """Return the sums of D draws, float64, shape (S, D, K, 2), of which `counts`, (D, N), has the examples' counts."""
    num_trainings, num_examples, num_classes, _ = summands.shape
    flat = counts @ summands.reshape(num_trainings, num_examples, 2 * num_classes)
    return flat.reshape(num_trainings, len(counts), num_classes, 2)


def _ratios(sums: Rows) -> Rows:
    """Return the first number over the second along the last axis, and the mean of those whose second is above 0."""
    wholes = sums[..., 1]
    ratios = np.divide(sums[..., 0], wholes, out=np.zeros(wholes.shape), where=wholes > 0)
    found: Rows = ratios.sum(axis=-1) / np.maximum(1, (wholes > 0).sum(axis=-1))
    return found
