"""Scores against seqeval and SciPy; the paired bootstrap, whose intervals hold the truth as they say."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from elmo_zh.corpus.readers.examples import tags_of
from elmo_zh.tasks.scores import (
    answer_rows,
    bootstrap_difference,
    score_answers,
    score_numbers,
    score_rows,
    score_spans,
)

DRAWN = np.random.default_rng(5)


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
    rows = np.zeros((7, 2))
    found = bootstrap_difference([rows], [rows], metric="accuracy", seed=1)
    assert (found.value, found.low, found.high, found.is_sure) == (0, 0, 0, False)


# The paired bootstrap


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_rows_give_the_scores_of_whole_files(metric: str) -> None:
    forms = [("O", "O", "O"), ("B-A", "E-A", "O"), ("O", "S-B", "O"), ("S-A", "S-B", "S-A"), ("B-B", "I-B", "E-B")]
    gold, found = ([forms[number] for number in DRAWN.integers(5, size=41)] for _ in range(2))
    expected = score_answers(gold, found, metric)[metric]
    assert score_rows(answer_rows(gold, found, metric), metric=metric) == pytest.approx(expected)


def test_rows_by_hand() -> None:
    rows = answer_rows([*"aabbab"], [*"abbbaa"], "accuracy")
    assert rows.tolist() == [[1, 1], [0, 1], [1, 1], [1, 1], [1, 1], [0, 1]]
    rows = answer_rows([*"3125"], [(value,) for value in (0.3, 0.2, 0.1, 0.9)], "spearman")
    assert score_rows(rows, metric="spearman") == pytest.approx(spearmanr([3, 1, 2, 5], [0.3, 0.2, 0.1, 0.9]).statistic)


def macro_f1(gold: str, found: str) -> float:
    score = score_rows(answer_rows(gold, found, "macro_f1"), metric="macro_f1")
    assert score == pytest.approx(score_answers(gold, found, "macro_f1")["macro_f1"])
    return score


def test_macro_f1_by_hand() -> None:
    """Of a: 3 right, 4 true, 4 predicted; of b: 1 right, 2 true, 1 predicted; of c, which is never true: 0."""
    assert macro_f1("aaaabb", "aaacba") == pytest.approx((3 / 4 + 2 / 3 + 0) / 3)
    assert macro_f1("aaab", "aaaa") == pytest.approx((6 / 7) / 2)
    assert macro_f1("a", "a") == 1


def test_macro_f1_is_drawn_as_a_loop_would() -> None:
    """Of several trainings, with a class that only one of them predicts; few examples, so that draws miss classes."""

    def f1_of(own: str, others: str) -> float:
        pairs = list(zip(own, others, strict=True))
        return float(np.mean([2 * pairs.count((each, each)) / (own + others).count(each) for each in {*own, *others}]))

    generator = np.random.default_rng(4)
    gold = "aaabbc"
    found = [["aabbcc", "aaabba"], ["abbbbd", "aaaaaa"]]
    models = [[answer_rows(gold, each, "macro_f1", "abcd") for each in model] for model in found]
    difference = bootstrap_difference(*models, metric="macro_f1", seed=1)
    drawn = []
    for _ in range(2000):
        chosen = generator.integers(6, size=6)
        scores = [
            [f1_of("".join(gold[i] for i in chosen), "".join(each[i] for i in chosen)) for each in model]
            for model in found
        ]
        drawn.append(np.mean(scores[0]) - np.mean(scores[1]))
    expected = np.quantile(drawn, (0.025, 0.975))
    assert (difference.low, difference.high) == pytest.approx(tuple(expected), abs=0.04)
    whole = [np.mean([macro_f1(gold, each) for each in model]) for model in found]
    assert difference.value == pytest.approx(whole[0] - whole[1])


def test_the_interval_is_paired_and_repeats() -> None:
    """Models that differ on few examples differ surely, however much their common errors spread."""
    generator = np.random.default_rng(3)
    common = generator.random(400) < 0.5
    worse, better = common.copy(), common.copy()
    better[np.flatnonzero(~common)[:20]] = True
    first, second = (np.stack([right, np.ones(400)], axis=1).astype(float) for right in (better, worse))
    found = bootstrap_difference([first], [second], metric="accuracy", seed=1)
    assert found.value == pytest.approx(0.05)
    # The standard error of 20 ones among 400 numbers, by hand: sqrt(0.05 * 0.95 / 400).
    half = 1.96 * np.sqrt(0.05 * 0.95 / 400)
    assert (found.low, found.high) == pytest.approx((0.05 - half, 0.05 + half), abs=0.004)
    assert found.is_sure
    assert found == bootstrap_difference([first], [second], metric="accuracy", seed=1)


@pytest.mark.parametrize("of_spans", [False, True])
def test_intervals_hold_the_truth_nineteen_times_of_twenty(of_spans: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples are drawn from a large population whose difference is known."""
    monkeypatch.setattr("elmo_zh.tasks.scores._DRAWS", 500)
    generator = np.random.default_rng(11)
    population = 20_000
    difficulty = generator.random(population)
    models = []
    for skill in (0.7, 0.6):
        if of_spans:
            gold = generator.poisson(2, population)
            correct = generator.binomial(gold, np.clip(skill + 0.3 * (difficulty - 0.5), 0, 1))
            models.append(np.stack([2 * correct, gold + correct + generator.poisson(0.5, population)], 1).astype(float))
        else:
            right = generator.random(population) < skill + 0.3 * (difficulty - 0.5)
            models.append(np.stack([right, np.ones(population)], 1).astype(float))
    truth = score_rows(models[0], metric="accuracy") - score_rows(models[1], metric="accuracy")
    held = 0
    for seed in range(300):
        chosen = generator.integers(population, size=150)
        found = bootstrap_difference([models[0][chosen]], [models[1][chosen]], metric="accuracy", seed=seed)
        held += found.low <= truth <= found.high
    # 285 of 300 are expected; the binomial standard error is 3.8.
    assert 270 <= held <= 297
