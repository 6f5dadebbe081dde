"""Estimators and task models that are written as the folder of a task, and read again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import elmo_zh
from drawn_bundles import TOKENS, add_word2vec, write_model
from messages import message_of, refusal_of
from sklearn.exceptions import DataConversionWarning, NotFittedError

from elmo_zh import ElmoClassifier, ElmoEmbedder, ElmoTagger, TaskModel
from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.errors import BundleError, OutputError
from elmo_zh.tasks.fit import fit_task

pytestmark = pytest.mark.usefixtures("empty_folder")

WORDS = ("我", "吃", "苹", "果", "。", "他", "来")
SETTINGS: dict[str, Any] = {"hidden_dim": 11, "epochs": 3, "batch_size": 8, "learning_rate": 0.02}
GENERATOR = np.random.default_rng(7)
TEXTS = ["".join(GENERATOR.choice(list(WORDS), size=GENERATOR.integers(2, 7))) for _ in range(60)]
LABELS = ["有" if "我" in text else "无" for text in TEXTS]
NEW = ["他吃我。", "", "苹果来", "桃"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle") / "model"
    return add_word2vec(write_model(folder, TOKENS, words=WORDS, text=TextConfig(segmenter="character")))


@pytest.fixture(scope="module")
def classifier(model: Path) -> ElmoClassifier:
    """Of three classes, so that their order matters: 10 comes before 9 as a string."""
    labels = [9 if "我" in text else 10 if "他" in text else 7 for text in TEXTS]
    return ElmoClassifier(model, **SETTINGS, device="cpu").fit(TEXTS, labels)


@pytest.fixture(scope="module")
def tagger(model: Path) -> ElmoTagger:
    tags = [["B-FOOD" if character in "苹果" else "O" for character in text] for text in TEXTS]
    return ElmoTagger(model, **SETTINGS, device="cpu").fit(TEXTS, tags)


def predicted(task: str) -> list[Any]:
    """What the command predicts for the new texts."""
    Path("new.txt").write_text("".join(f"{text}\n" for text in NEW), encoding="utf-8")
    answer = elmo_zh("task", "predict", "new.txt", "--task", task)
    assert answer.status == 0, answer.stderr
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
    assert set(description["scores"]) == {"metric", "chosen_seed", "dev"}
    assert sorted(path.name for path in Path("my-classifier").iterdir()) == ["head.safetensors", "task.json"]
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
    assert told.endswith(": 3 labels, inputs word2vec, elmo>")


def test_nothing_is_replaced_unasked(classifier: ElmoClassifier, tagger: ElmoTagger) -> None:
    assert refusal_of(NotFittedError, lambda: ElmoClassifier("nowhere").save("task")).startswith("This ElmoClassifier")
    wrong: Any = None
    told = refusal_of(TypeError, lambda: classifier.save(wrong))
    assert told == "save: path is None, expected the path of a folder"
    assert not list(Path().iterdir())
    classifier.save("task")
    assert message_of(OutputError, lambda: tagger.save("task")).startswith("task exists already.")
    assert TaskModel.load("task").description.settings.kind == "classify"
    tagger.save("task", force=True)
    assert TaskModel.load("task").description.settings.kind == "tag"
    Path("other").mkdir()
    Path("other", "mine.txt").write_text("", encoding="utf-8")
    for force in (False, True):
        told = message_of(OutputError, lambda force=force: tagger.save("other", force=force))
        assert told == "other is a folder with other content. Choose another --output."
    assert [path.name for path in Path("other").iterdir()] == ["mine.txt"]


def test_a_save_that_fails_leaves_nothing(classifier: ElmoClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_zh.tasks.task_model.save_file", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        classifier.save("task")
    assert [path.name for path in Path().iterdir()] == []


def test_a_model_that_was_trained_with_the_network_is_copied(model: Path) -> None:
    """Of a task that `task fit --fine-tune` has written."""
    rows = [f"{text},{'我' in text}" for text in TEXTS]
    Path("data.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    job = FitJob(
        files=DataFiles(data=Path("data.csv")),
        reading=Reading(kind="classify"),
        settings=HeadSettings(kind="classify", hidden_dim=5),
        training=TrainSettings(epochs=1, bilm_learning_rate=0.001),
    )
    fit_task(job, ElmoEmbedder.load(model, "cpu"), Path("task"))
    first = TaskModel.load("task", device="cpu")
    first.save("copy")
    expected: list[Any] = first.predict(NEW)
    Path("task").rename("gone")
    found: list[Any] = TaskModel.load("copy", device="cpu").predict(NEW)
    assert [each.probabilities for each in found] == [each.probabilities for each in expected]
    with pytest.raises(BundleError, match="has a model of its own"):
        TaskModel.load("copy", model=model)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, "fit: y is None, expected a list of labels, one for each text"),
        (5, "fit: y is 5, expected a list of labels, one for each text"),
        ("ab", "fit: y is 'ab', expected a list of labels, one for each text"),
        ([("a", "b"), ("c", "d")], "y should be a 1d array, got an array of shape (2, 2) instead."),
        ([0.5, 1.7], "Unknown label type: continuous. "),
        ([object(), object()], "Unknown label type: "),
    ],
)
def test_labels_that_are_none(labels: Any, expected: str) -> None:
    told = refusal_of(ValueError, lambda: ElmoClassifier("nowhere").fit(["我", "他"], labels))
    assert told.startswith(expected)


def test_tags_that_are_none() -> None:
    for tags in (None, 5, "OO"):
        told = refusal_of(ValueError, lambda tags=tags: ElmoTagger("nowhere").fit(["我", "他"], tags))
        assert told == f"fit: y is {tags!r}, expected for each text a list of tags, one for each character"


def test_labels_in_whatever_holds_them(model: Path) -> None:
    for held in (np.array(LABELS), iter(LABELS), np.array(LABELS, object)):
        assert_learns_the_same(model, held)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert_learns_the_same(model, np.array(LABELS)[:, None])


def test_labels_in_a_table(model: Path) -> None:
    pandas = pytest.importorskip("pandas")
    assert_learns_the_same(model, pandas.Series(LABELS, index=range(7, 67)))
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert_learns_the_same(model, pandas.DataFrame({"label": LABELS}))


def assert_learns_the_same(model: Path, held: Any) -> None:
    settings = {**SETTINGS, "epochs": 1, "inputs": ["word2vec"]}
    expected = ElmoClassifier(model, **settings).fit(TEXTS, LABELS).predict_proba(NEW)
    classifier = ElmoClassifier(model, **settings).fit(TEXTS, held)
    assert classifier.classes_.tolist() == ["无", "有"]
    np.testing.assert_array_equal(classifier.predict_proba(NEW), expected)
