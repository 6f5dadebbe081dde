"""Tasks as scikit-learn's estimators, and as folders that they save."""

import json
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import contents_alone, succeed
from drawn_bundles import TOKENS, add_word2vec, write_model
from messages import message_of, refusal_of
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from tasks.labelled import WORDS, drawn_texts

from elmo_zh import ElmoClassifier, ElmoEmbedder, ElmoTagger, TaskModel, sklearn
from elmo_zh.config import TextConfig
from elmo_zh.errors import OutputError

pytestmark = pytest.mark.usefixtures("empty_folder")

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


def test_a_search_over_networks(model: Path) -> None:
    labels = ["我" in text for text in TEXTS]
    search = GridSearchCV(ElmoClassifier(model, **QUICK, metric="macro_f1"), {"head": ["linear", "bilstm"]}, cv=2)
    search.fit(TEXTS, labels)
    best = search.best_estimator_.task_.description.settings
    assert (best.head, best.metric) == (search.best_params_["head"], "macro_f1")
    merged = ElmoClassifier(model, **QUICK, encoder="merged").fit(TEXTS, labels)
    assert merged.task_.description.settings.encoder == "merged"


@pytest.mark.parametrize("scheme", ["BIO", ""])
def test_a_tagger(model: Path, scheme: str) -> None:
    inside = "B-FOOD" if scheme else "food"
    tags = [[inside if character in "苹果" else "O" for character in text] for text in TEXTS]
    tagger = ElmoTagger(model, **SETTINGS).fit(TEXTS, tags)
    assert tagger.predict(["他吃苹", ""]) == [["O", "O", inside], []]
    assert tagger.score(TEXTS, tags) > 0.9
    assert clone(tagger).get_params() == tagger.get_params()


def test_word2vec_composes_words_of_the_model_alone(tmp_path: Path) -> None:
    """我吃 is unknown and in the training texts; 我吃他 consists of three known words all the same."""
    model = add_word2vec(write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig(segmenter="whitespace")))
    settings = {**SETTINGS, "epochs": 1, "inputs": ("word2vec",), "head": "bilstm"}
    classifier, unseen = (
        ElmoClassifier(model, **settings).fit([text] * 9 + ["来"] * 9, list("ab" * 9)) for text in ("我吃 他", "我 他")
    )
    unseen.task_._head.load_state_dict(classifier.task_._head.state_dict())
    np.testing.assert_array_equal(classifier.predict_proba(["我吃他"]), unseen.predict_proba(["我吃他"]))


def test_a_cross_validation_loads_the_model_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []
    real = ElmoEmbedder.load

    def load(folder: Path, *settings: str) -> ElmoEmbedder:
        loads.append(folder)
        return real(folder, *settings)

    monkeypatch.setattr(ElmoEmbedder, "load", load)
    sklearn._load_once.cache_clear()
    labels = ["我" in text for text in TEXTS]
    settings = {**SETTINGS, "epochs": 1, "inputs": ("elmo",)}
    scores = cross_val_score(ElmoClassifier(model, **settings), TEXTS, labels, cv=3)
    assert loads == [model]
    alone = cross_val_score(ElmoClassifier(model, **settings), TEXTS, labels, cv=3)
    assert scores.tolist() == alone.tolist()


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
    assert set(description["scores"]) == {"metric", "chosen_seed", "dev", "members"}
    assert set(contents_alone(Path("my-classifier"))) == {"linear.safetensors", "task.json"}
    assert [path.name for path in Path().iterdir() if path.name.startswith("my-")] == ["my-classifier"]


def test_a_saved_tagger(tagger: ElmoTagger) -> None:
    tagger.save(Path("my-tagger"))
    found: list[Any] = TaskModel.load("my-tagger", device="cpu").predict(NEW, probabilities=True)
    expected: list[Any] = tagger.task_.predict(NEW, probabilities=True)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tags == theirs.tags
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-6)
    assert tagger.predict(NEW) == [each.tags for each in found]
    spans = [[span["text"] for span in each["spans"]] for each in predicted("my-tagger")]
    assert spans == [[span.text for span in each.spans] for each in found]
    assert spans[2] == ["苹", "果"]


def test_the_labels_of_the_network_are_those_of_the_texts(classifier: ElmoClassifier) -> None:
    found: list[Any] = classifier.task_.predict(TEXTS)
    assert {each.label for each in found} <= {"7", "9", "10"}
    told = repr(classifier.task_)
    assert told.startswith("<TaskModel classify on ")
    assert told.endswith(f": 3 labels, members {', '.join(classifier.task_.description.members)}>")


def test_nothing_is_replaced_unasked(classifier: ElmoClassifier, tagger: ElmoTagger) -> None:
    assert refusal_of(NotFittedError, lambda: ElmoClassifier("nowhere").save("task")).startswith("This ElmoClassifier")
    wrong: Any = None
    told = refusal_of(TypeError, lambda: classifier.save(wrong))
    assert told == "save: path is None; expected the path of a folder"
    assert not list(Path().iterdir())
    classifier.save("task")
    told = message_of(OutputError, lambda: tagger.save("task"))
    assert told == "task already exists. Choose another path, or add force=True to replace it."
    assert TaskModel.load("task").description.settings.kind == "classify"
    tagger.save("task", force=True)
    assert TaskModel.load("task").description.settings.kind == "tag"
    Path("other").mkdir()
    Path("other", "mine.txt").write_text("", encoding="utf-8")
    for force in (False, True):
        told = message_of(OutputError, lambda force=force: tagger.save("other", force=force))
        assert told == "other is a folder with content that this command did not create. Choose another path."
    assert [path.name for path in Path("other").iterdir()] == ["mine.txt"]


def test_a_save_that_fails_leaves_nothing(classifier: ElmoClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("task_model", "mixture"):  # one of them writes first, as the mixture has a network or not
        monkeypatch.setattr(f"elmo_zh.tasks.{module}.save_tensors", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        classifier.save("task")
    assert [path.name for path in Path().iterdir()] == []


def test_labels_in_whatever_holds_them(model: Path) -> None:
    for held in (np.array(LABELS), iter(LABELS), np.array(LABELS, object)):
        assert_learns_the_same(model, held)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert_learns_the_same(model, np.array(LABELS)[:, None])


def test_labels_in_a_table(model: Path) -> None:
    pandas = pytest.importorskip("pandas")
    assert_learns_the_same(model, pandas.Series(LABELS, index=range(7, 97)))
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert_learns_the_same(model, pandas.DataFrame({"label": LABELS}))


@cache
def learned(model: Path) -> np.ndarray:
    return ElmoClassifier(model, **FORMS).fit(TEXTS, LABELS).predict_proba(NEW)


def assert_learns_the_same(model: Path, held: Any) -> None:
    classifier = ElmoClassifier(model, **FORMS).fit(TEXTS, held)
    assert classifier.classes_.tolist() == ["无", "有"]
    np.testing.assert_array_equal(classifier.predict_proba(NEW), learned(model))
