"""Tasks as scikit-learn's estimators, and as folders that they save."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import contents_alone, succeed
from messages import message_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from tasks.labelled import drawn_texts

from elmo_zh import ElmoClassifier, ElmoTagger, TaskModel
from elmo_zh.errors import OutputError

TEXTS = drawn_texts(90)
LABELS = ["有" if "我" in text else "无" for text in TEXTS]
NEW = ["他吃我。", "", "苹果来", "桃"]
SETTINGS: dict[str, Any] = {"hidden_dim": 11, "epochs": 12, "patience": 12, "batch_size": 8, "learning_rate": 0.02}
QUICK: dict[str, Any] = {**SETTINGS, "epochs": 3}
FORMS: dict[str, Any] = {**SETTINGS, "epochs": 1, "inputs": ["word2vec"]}


def test_a_classifier(model: Path) -> None:
    labels = np.array(["我" in text for text in TEXTS])
    classifier = ElmoClassifier(model, head="bilstm", **SETTINGS)
    with pytest.raises(NotFittedError):
        classifier.predict(["我"])
    assert clone(classifier).get_params() == classifier.get_params()
    scores = cross_val_score(classifier, TEXTS, labels, cv=2)
    assert scores.shape == (2,)
    assert scores.mean() > 0.75
    classifier.fit(TEXTS, labels)
    assert classifier.classes_.tolist() == [False, True]
    found = classifier.predict(["他吃我", "他来"])
    assert found.tolist() == [True, False]
    assert found.dtype == bool
    probabilities = classifier.predict_proba(["他吃我", "他来"])
    assert probabilities.sum(axis=1) == pytest.approx(1)
    copied = pickle.loads(pickle.dumps(classifier))
    assert copied.predict_proba(["他吃我", "他来"]) == pytest.approx(probabilities, abs=1e-6)


@pytest.mark.parametrize("scheme", ["BIO", ""])
def test_a_tagger(model: Path, scheme: str) -> None:
    inside = "B-FOOD" if scheme else "food"
    tags = [[inside if character in "苹果" else "O" for character in text] for text in TEXTS]
    tagger = ElmoTagger(model, **SETTINGS).fit(TEXTS, tags)
    assert tagger.predict(["他吃苹", ""]) == [["O", "O", inside], []]
    assert tagger.score(TEXTS, tags) > 0.9
    assert clone(tagger).get_params() == tagger.get_params()


@pytest.fixture(scope="module")
def classifier(model: Path) -> ElmoClassifier:
    """A mixture for three classes, so that their order matters: 10 comes before 9 as a string."""
    labels = [9 if "我" in text else 10 if "他" in text else 7 for text in TEXTS]
    return ElmoClassifier(model, **QUICK, device="cpu").fit(TEXTS, labels)


@pytest.fixture(scope="module")
def tagger(model: Path) -> ElmoTagger:
    tags = [["B-FOOD" if character in "苹果" else "O" for character in text] for text in TEXTS]
    return ElmoTagger(model, **QUICK, device="cpu").fit(TEXTS, tags)


def predicted(task: str) -> list[Any]:
    Path("new.txt").write_text("".join(f"{text}\n" for text in NEW), encoding="utf-8")
    answer = succeed("task", "predict", "new.txt", "--task", task)
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_a_saved_classifier(classifier: ElmoClassifier, model: Path) -> None:
    classifier.save("my-classifier")
    loaded: list[Any] = TaskModel.load("my-classifier", device="cpu").predict(NEW)
    assert classifier.classes_.tolist() == [7, 9, 10]
    expected, likely = classifier.predict(NEW), classifier.predict_proba(NEW)
    for found in (
        [(each.label, each.probabilities) for each in loaded],
        [(each["label"], each["probabilities"]) for each in predicted("my-classifier")],
    ):
        assert [label for label, _ in found] == list(map(str, expected))
        for (_, probabilities), row in zip(found, likely, strict=True):
            assert [probabilities[str(label)] for label in classifier.classes_] == pytest.approx(row, abs=1e-6)
    description = json.loads(Path("my-classifier", "task.json").read_text(encoding="utf-8"))
    assert description["labels"] == ["10", "7", "9"]
    assert description["model"]["path"] == str(model)
    assert description["training"]["files"] == []
    assert set(description["scores"]) == {"metric", "chosen_seed", "seeds", "dev", "members"}
    assert set(contents_alone(Path("my-classifier"))) == {"linear.safetensors", "task.json"}
    assert [path.name for path in Path().iterdir() if path.name.startswith("my-")] == ["my-classifier"]


def test_nothing_is_replaced_unasked(classifier: ElmoClassifier, tagger: ElmoTagger) -> None:
    with pytest.raises(NotFittedError):
        ElmoClassifier("nowhere").save("task")
    classifier.save("task")
    assert "force=True" in message_of(OutputError, lambda: tagger.save("task"))
    assert TaskModel.load("task").description.settings.kind == "classify"
    tagger.save("task", force=True)
    assert TaskModel.load("task").description.settings.kind == "tag"
