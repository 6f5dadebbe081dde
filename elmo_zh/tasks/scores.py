"""Scores of predictions: accuracy and F1 of classes, F1 of spans, correlation of numbers.

Tests compare them with scikit-learn, seqeval and SciPy, which this module does without, so that `task` needs no extra.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.tasks.data.schemes import spans_of


def confusion_matrix(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> NDArray[np.int64]:
    """Return how often each label (row) was predicted as each label (column); others are left out.

    Returns:
        int64, shape (K, K).
    """
    numbers = {label: number for number, label in enumerate(labels)}
    found = np.zeros((len(labels), len(labels)), np.int64)
    for pair, count in Counter(zip(gold, predicted, strict=True)).items():
        if pair[0] in numbers and pair[1] in numbers:
            found[numbers[pair[0]], numbers[pair[1]]] += count
    return found


def score_classes(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, Any]:
    """Return `accuracy`, `macro_f1` (the mean over the labels that occur) and the F1 of each label in `by_label`."""
    labels = sorted({*gold, *predicted})
    matrix = confusion_matrix(gold, predicted, labels)
    by_label = {
        label: _prf(int(matrix[place, place]), int(matrix[:, place].sum()), int(matrix[place].sum()))
        for place, label in enumerate(labels)
    }
    return {
        "accuracy": _ratio(int(matrix.trace()), len(gold)),
        "macro_f1": float(np.mean([each["f1"] for each in by_label.values()])) if by_label else 0.0,
        "by_label": by_label,
    }


def score_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return micro-averaged `precision`, `recall` and `f1` of whole spans, and those of each type in `by_label`.

    Args:
        gold: The tags of each text, of any scheme.
        predicted: The predicted ones. A span counts if its borders and its type are right.
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
    """Return Pearson's `pearson` and Spearman's `spearman` correlation, and the root mean square error `rmse`."""
    given, found = np.array(gold, np.float64), np.array(predicted, np.float64)
    return {
        "pearson": _correlation(given, found),
        "spearman": rank_correlation(given, found),
        "rmse": float(np.sqrt(np.mean((given - found) ** 2))),
    }


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Spearman's correlation; 0 where one of them is constant."""
    from scipy.stats import rankdata

    return _correlation(rankdata(a), rankdata(b))


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Pearson's correlation; 0 where one of them is constant."""
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
