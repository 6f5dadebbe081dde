"""Scores against scikit-learn, seqeval and SciPy."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from elmo_zh.tasks.examples import tags_of
from elmo_zh.tasks.scores import confusion_matrix, score_classes, score_numbers, score_spans

DRAWN = np.random.default_rng(5)


def drawn_labels(labels: str, count: int = 211) -> list[str]:
    return [labels[number] for number in DRAWN.integers(len(labels), size=count)]


def drawn_tags(count: int) -> list[list[str]]:
    """Tags of spans, some of which begin and end alike."""
    texts = []
    for _ in range(count):
        spans, place = [], 0
        while place < 12:
            length = int(DRAWN.integers(1, 4))
            if DRAWN.random() < 0.6:
                spans.append((place, place + length, "XYZ"[DRAWN.integers(3)]))
            place += length
        texts.append(tags_of(spans, 15, "BIO"))
    return texts


def test_classes_against_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    gold, found = drawn_labels("abcd"), drawn_labels("abce")
    scores = score_classes(gold, found)
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(gold, found))
    assert scores["macro_f1"] == pytest.approx(metrics.f1_score(gold, found, average="macro", zero_division=0))
    labels = sorted({*gold, *found})
    expected = metrics.precision_recall_fscore_support(gold, found, labels=labels, zero_division=0)
    for place, label in enumerate(labels):
        each = scores["by_label"][label]
        assert [each[name] for name in ("precision", "recall", "f1", "count")] == pytest.approx(
            [column[place] for column in expected]
        )
    matrix = confusion_matrix(gold, found, labels)
    assert matrix.tolist() == metrics.confusion_matrix(gold, found, labels=labels).tolist()


def test_spans_against_seqeval() -> None:
    metrics = pytest.importorskip("seqeval.metrics")
    gold, found = drawn_tags(53), drawn_tags(53)
    for row in range(0, 53, 2):
        found[row] = gold[row]
    scores = score_spans(gold, found)
    assert 0.4 < scores["f1"] < 0.8
    for name in ("f1", "precision", "recall"):
        assert scores[name] == pytest.approx(getattr(metrics, f"{name}_score")(gold, found))
    report = metrics.classification_report(gold, found, output_dict=True)
    for kind in "XYZ":
        each = report[kind]
        assert scores["by_label"][kind]["f1"] == pytest.approx(each["f1-score"])
        assert scores["by_label"][kind]["count"] == each["support"]


def test_numbers_against_scipy() -> None:
    gold, found = DRAWN.normal(size=101).round(1), DRAWN.normal(size=101).round(1)
    scores = score_numbers(gold.tolist(), (gold + found).tolist())
    assert scores["pearson"] == pytest.approx(pearsonr(gold, gold + found).statistic)
    assert scores["spearman"] == pytest.approx(spearmanr(gold, gold + found).statistic)
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(found**2)))


def test_nothing_found_scores_zero() -> None:
    assert score_spans([["B-X", "O"]], [["O", "O"]])["f1"] == 0
    assert score_spans([["O"]], [["O"]])["f1"] == 0
    assert score_numbers([1.0, 1.0], [1.0, 2.0])["pearson"] == 0
