"""Linear models as scikit-learn fits them; mixtures: what they keep, that they predict as scored, their files."""

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import contents_alone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from tasks.labelled import changed, drawn_texts, load, quick_job, write_sums, written

from elmo_zh import ElmoEmbedder
from elmo_zh.tasks.encode_texts import UnitText
from elmo_zh.tasks.fit import fit_task
from elmo_zh.tasks.linear import (
    CHARACTERS,
    Features,
    choose_members,
    choose_weight,
    fit_linear,
    fit_path,
    mix,
    predict_rows,
)
from elmo_zh.tasks.scores import ClassPrediction, score_answers
from elmo_zh.tasks.task_model import TaskModel
from elmo_zh.tasks.train import class_score

NUM_CLASSES = 3
ACCURACY = class_score("accuracy")


def unit_texts(*columns: list[str]) -> list[tuple[UnitText, ...]]:
    none = np.zeros(0, np.int64)
    return [
        tuple(UnitText(text, np.zeros((0, 2), np.int32), (), none, none) for text in row)
        for row in zip(*columns, strict=True)
    ]


def data(*more: str) -> tuple[list[str], np.ndarray]:
    texts = [*(text * 2 for text in drawn_texts(61)), *more]
    return texts, np.array([("我" in text) + ("苹" in text) for text in texts])


@pytest.mark.parametrize("kind", ["characters", "vectors", "half precision"])
def test_a_linear_model_is_that_of_scikit_learn(kind: str) -> None:
    texts, classes = data()
    rows = np.arange(61)
    if kind == "characters":
        oracle = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True, min_df=2)
        expected, features = oracle.fit_transform(texts), Features.of(CHARACTERS, unit_texts(texts), None, None)
    else:
        drawn = np.random.default_rng(3).normal(2, 5, (61, 7)) + classes[:, None]
        vectors = drawn.astype(np.float32) if kind == "vectors" else (drawn + 100).astype(np.float16)
        expected = normalize(StandardScaler().fit_transform(vectors.astype(float)))
        features = Features([vectors])
    [model] = fit_path(features, rows, classes, NUM_CLASSES, [10.0])
    reference = LogisticRegression(C=10.0, tol=1e-6, max_iter=2000).fit(expected, classes)
    probabilities = np.exp(predict_rows(model, features, rows))
    assert probabilities == pytest.approx(reference.predict_proba(expected), abs=0.01)


def test_two_classes_a_class_without_examples_and_one_class() -> None:
    """A class that a fold lacks is never likelier than the others; one class alone is predicted for every text."""
    texts, classes = data("")
    features, rows = Features.of(CHARACTERS, unit_texts(texts), None, None), np.arange(62)
    two = np.flatnonzero(classes < 2)
    [model] = fit_path(features, two, classes[two], NUM_CLASSES, [10.0])
    logs = predict_rows(model, features, rows)
    assert np.isfinite(logs).all()
    assert (logs[two].argmax(axis=1) == classes[two]).mean() > 0.9
    assert (logs.argmax(axis=1) < 2).all()
    one = np.flatnonzero(classes == 1)
    [model] = fit_path(features, one, classes[one], NUM_CLASSES, [10.0])
    assert (predict_rows(model, features, rows).argmax(axis=1) == 1).all()


def test_held_out_texts_are_predicted_by_a_model_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changing the label of a text changes nothing about its own prediction by the models of the other folds."""
    monkeypatch.setattr("elmo_zh.tasks.linear.STRENGTHS", (10.0,))
    texts, classes = data()
    features, rows, fold_of = Features.of(CHARACTERS, unit_texts(texts), None, None), np.arange(61), np.arange(61) % 5
    changed_classes = np.where(fold_of == 2, (classes + 1) % NUM_CLASSES, classes)
    first, second = (fit_linear(features, rows, own, NUM_CLASSES, fold_of) for own in (classes, changed_classes))
    assert np.array_equal(first.held_out[fold_of == 2], second.held_out[fold_of == 2])
    assert np.exp(first.held_out).sum(axis=1) == pytest.approx(1)
    learned = predict_rows(first.model, features, rows)
    assert ACCURACY(classes, learned.argmax(axis=1)) > ACCURACY(classes, first.held_out.argmax(axis=1))


def test_a_pair_is_what_differs_and_what_both_have_by_hand() -> None:
    pairs = unit_texts(["我我来", "我他"], ["我他", "我我来"])
    features = Features.of(CHARACTERS, pairs, None, None, ["他", "我", "来"]).at(slice(None)).toarray()
    # A text that has a character twice has 1 + log 2 of it.
    assert features[0] == pytest.approx(np.array([1, np.log(2), 1, 0, 1, 0]))
    assert np.array_equal(features[0], features[1])


def logs_of(right: float, classes: np.ndarray) -> np.ndarray:
    """Return log-probabilities that give the true one of two classes this probability."""
    logs: np.ndarray = np.where(np.eye(2)[classes] == 1, np.log(right), np.log(1 - right))
    return logs


def test_weights_by_hand() -> None:
    """Of two classifiers that know half each both are needed; one that adds nothing gets no weight."""
    classes = np.array([0, 1])
    halves = [np.log([[0.99, 0.01], [0.6, 0.4]]), np.log([[0.4, 0.6], [0.01, 0.99]])]
    assert choose_weight(halves, classes, ACCURACY) == 0.1  # 0.9 * log(0.4 / 0.6) + 0.1 * log(0.99 / 0.01) > 0
    assert choose_weight([logs_of(0.6, classes), logs_of(0.9, classes)], classes, ACCURACY) == 0
    # Products of 0.9 * 0.5 against 0.1 * 0.5 to the power of a half: 3 to 1.
    assert np.exp(mix({0: np.log([[0.9, 0.1]]), 1: np.log([[0.5, 0.5]])}, {0: 0.5, 1: 0.5}))[0] == pytest.approx(
        [0.75, 0.25]
    )


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1"])
def test_no_mixture_is_worse_on_held_out_labels_than_its_best_member(metric: str) -> None:
    """Not even if the worst of many classes is by far the most confident, which deceives the log loss."""
    generator, score = np.random.default_rng(5), class_score(metric)
    for _ in range(10):
        classes = generator.integers(40, size=211)
        logs = [np.log(generator.dirichlet(np.full(40, sharpness), 211) + 1e-9) for sharpness in (5, 0.05, 1)]
        for number, right in enumerate((0.7, 0.5, 0.6)):
            knows = generator.random(211) < right
            logs[number][knows, classes[knows]] = logs[number].max(axis=1)[knows] + 0.1
        offers = [(f"{number}", each, np.arange(211)) for number, each in enumerate(logs)]
        weights, judged = choose_members(offers, classes, score)
        mixed = mix({str(number): each for number, each in enumerate(logs)}, weights)
        assert score(classes, mixed.argmax(axis=1)) >= max(each.score for each in judged) == judged[0].score
        assert sum(weights.values()) == pytest.approx(1)


def test_a_network_is_judged_where_it_has_not_learned_and_mixes_with_all() -> None:
    """Adding it to a mixture multiplies the weights of the others; mixing at once gives the same predictions."""
    classes, places = np.arange(300) % 2, np.arange(300)[:, None] % 3
    logs = {
        name: np.where(places == number, logs_of(0.95, classes), logs_of(0.5, classes) + np.array([0, 0.01]))
        for number, name in enumerate(("characters", "elmo", "bilstm"))
    }
    rows = np.arange(200, 300)
    linear = [(name, logs[name], np.arange(300)) for name in ("characters", "elmo")]
    before, _ = choose_members(linear, classes, ACCURACY)
    weights, [*_, judged] = choose_members([*linear, ("bilstm", logs["bilstm"][rows], rows)], classes, ACCURACY)
    assert weights.keys() == logs.keys()
    assert weights["characters"] / weights["elmo"] == pytest.approx(before["characters"] / before["elmo"], rel=1e-3)
    together = mix({name: logs[name][rows] for name in weights}, weights)
    assert (judged.num_labels, judged.together) == (100, ACCURACY(classes[rows], together.argmax(axis=1)))


def test_a_mixture_predicts_as_it_was_scored_and_without_what_it_left_out(mixture: Path) -> None:
    """Some 60 development labels are too few to judge the network, so it is not in the folder."""
    names = {"confusion.png", "curve.png", "linear.safetensors", "metrics.jsonl", "task.json"}
    assert set(contents_alone(mixture)) == names
    model = TaskModel.load(mixture, device="cpu")
    scores = model.description.scores
    assert "characters" in model.description.members
    assert "bilstm" not in [each["name"] for each in scores["members"]]
    assert scores["members"][0]["num_labels"] == sum(
        model.description.training[f"{part}_examples"] for part in ("train", "dev")
    )
    assert scores["test"]["accuracy"] > 0.9
    found = [each for each in model.predict(["我苹", "我来", "他来", ""]) if isinstance(each, ClassPrediction)]
    assert [each.label for each in found[:3]] == ["2", "1", "0"]
    assert all(sum(each.probabilities.values()) == pytest.approx(1) for each in found)


@pytest.mark.usefixtures("no_pictures")
def test_a_network_that_is_kept_is_saved_and_mixed(
    embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_zh.tasks.train.FEWEST_LABELS", 1)
    scores = iter(range(99))  # whatever comes later is better
    monkeypatch.setattr("elmo_zh.tasks.train.class_score", lambda _: lambda *_: next(scores))
    monkeypatch.setattr("elmo_zh.tasks.linear.choose_weight", lambda *_: 0.5)
    report = fit_task(quick_job(write_sums(tmp_path, 150), inputs=("word2vec",)), embedder, tmp_path / "task")
    assert report.description.members.keys() == {"characters", "word2vec", "bilstm"}
    assert report.description.members["bilstm"] == 0.5
    loaded = TaskModel.load(tmp_path / "task", device="cpu")
    texts = drawn_texts(5)
    # Each member alone, by the same folder.
    logs = {}
    for name in report.description.members:
        path = Path(shutil.copytree(tmp_path / "task", tmp_path / name))
        changed(path, lambda found, name=name: found.update(members={name: 1.0}))
        logs[name] = np.log(probabilities(TaskModel.load(path, device="cpu"), texts))
    expected = np.exp(mix(logs, report.description.members))
    assert probabilities(loaded, texts) == pytest.approx(expected, abs=1e-6)


def write_tags(folder: Path) -> Path:
    """The tag of a character is the one before it, which the network does not learn in an epoch."""
    texts = [text * 2 for text in drawn_texts(200)]
    blocks = ["".join(f"{own}\t{before}\n" for before, own in pairwise(f"。{text}")) for text in texts]
    return written(folder, "tags.conll", "\n".join(blocks))


@pytest.mark.usefixtures("no_pictures")
def test_a_tagger_keeps_a_crf_that_adds_and_predicts_as_it_was_scored(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    """Both are one network in one file."""
    job = quick_job(write_tags(tmp_path), "tag")
    report = fit_task(job, embedder, tmp_path / "task")
    assert "linear.safetensors" not in contents_alone(tmp_path / "task")
    network, crf = report.description.scores["members"]
    assert (network["name"], crf["name"], network["weight"] + crf["weight"]) == ("bilstm", "crf", 1.0)
    assert crf["weight"] > 0
    assert crf["without"] == network["score"] < crf["together"]
    assert report.description.scores["seeds"]["1"]["test"] < report.description.scores["test"]["accuracy"]
    dataset = load(job.files, job.reading)
    answers = TaskModel.load(tmp_path / "task", device="cpu").answers(dataset.part("test"))
    assert score_answers(dataset.gold("test"), answers, "accuracy") == report.description.scores["test"]


def probabilities(model: TaskModel, texts: list[str]) -> np.ndarray:
    found: list[Any] = model.predict(texts)
    return np.array([[each.probabilities[label] for label in model.description.labels] for each in found])
