"""Tasks as scikit-learn's estimators."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import TOKENS, add_word2vec, write_model
from messages import refusal_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from elmo_zh import ElmoClassifier, ElmoEmbedder, ElmoTagger
from elmo_zh.config import TextConfig

WORDS = ("我", "吃", "苹", "果", "。", "他", "来")
SETTINGS: dict[str, Any] = {"hidden_dim": 11, "epochs": 12, "patience": 12, "batch_size": 8, "learning_rate": 0.02}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle") / "model"
    return add_word2vec(write_model(folder, TOKENS, words=WORDS, text=TextConfig(segmenter="character")))


def texts() -> list[str]:
    generator = np.random.default_rng(7)
    return ["".join(generator.choice(list(WORDS), size=generator.integers(2, 7))) for _ in range(90)]


def test_a_classifier(model: Path) -> None:
    labels = np.array(["我" in text for text in texts()])
    classifier = ElmoClassifier(model, **SETTINGS)
    with pytest.raises(NotFittedError):
        classifier.predict(["我"])
    assert clone(classifier).get_params() == classifier.get_params()
    scores = cross_val_score(classifier, texts(), labels, cv=2)
    assert scores.shape == (2,)
    assert scores.mean() > 0.75
    classifier.fit(texts(), labels)
    assert classifier.classes_.tolist() == [False, True]
    found = classifier.predict(["他吃我", "他来"])
    assert found.tolist() == [True, False]
    assert found.dtype == bool
    probabilities = classifier.predict_proba(["他吃我", "他来"])
    assert probabilities.sum(axis=1) == pytest.approx(1)
    copied = pickle.loads(pickle.dumps(classifier))
    assert copied.predict_proba(["他吃我", "他来"]) == pytest.approx(probabilities, abs=1e-6)


def test_a_search_over_networks(model: Path) -> None:
    labels = ["我" in text for text in texts()]
    search = GridSearchCV(ElmoClassifier(model, **SETTINGS, metric="macro_f1"), {"head": ["linear", "bilstm"]}, cv=2)
    search.fit(texts(), labels)
    best = search.best_estimator_.task_.description.settings
    assert (best.head, best.metric) == (search.best_params_["head"], "macro_f1")
    merged = ElmoClassifier(model, **SETTINGS, encoder="merged").fit(texts(), labels)
    assert merged.task_.description.settings.encoder == "merged"


def test_networks_that_there_are_not(model: Path) -> None:
    labels = ["我" in text for text in texts()]
    with pytest.raises(ValueError, match="fit: head='lstm', expected bilstm or linear"):
        ElmoClassifier(model, head="lstm").fit(texts(), labels)
    with pytest.raises(ValueError, match=r"fit: head='linear', expected bilstm$"):
        ElmoTagger(model, head="linear").fit(["我"], [["O"]])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"inputs": ["elmo", "bert"]},
            "inputs=['elmo', 'bert'], expected a list of some of word2vec, elmo, characters",
        ),
        ({"inputs": "elmo"}, "inputs='elmo', expected a list of some of word2vec, elmo, characters, each once"),
        ({"inputs": ["elmo", "elmo"]}, "inputs=['elmo', 'elmo'], expected a list of some of"),
        ({"inputs": None}, "inputs=None, expected a list of some of"),
        ({"epochs": 0}, "epochs=0, expected a whole number of 1 or more"),
        ({"epochs": True}, "epochs=True, expected a whole number of 1 or more"),
        ({"patience": -1}, "patience=-1, expected a whole number of 1 or more"),
        ({"batch_size": 2.5}, "batch_size=2.5, expected a whole number of 1 or more"),
        ({"batch_size": "8"}, "batch_size='8', expected a whole number of 1 or more"),
        ({"hidden_dim": 0}, "hidden_dim=0, expected a whole number from 1 to 4096"),
        ({"seed": None}, "seed=None, expected a whole number from 0 to 2147483648"),
        ({"learning_rate": float("nan")}, "learning_rate=nan, expected a number above 0, 1 at most"),
        ({"learning_rate": -0.1}, "learning_rate=-0.1, expected a number above 0, 1 at most"),
        ({"learning_rate": "0.1"}, "learning_rate='0.1', expected a number above 0, 1 at most"),
    ],
)
def test_settings_out_of_range(model: Path, settings: dict[str, Any], expected: str) -> None:
    for estimator, labels in ((ElmoClassifier, [1, 2]), (ElmoTagger, [["O"], ["X"]])):
        told = refusal_of(ValueError, lambda: estimator(model, **settings).fit(["我", "他"], labels))  # noqa: B023
        assert told.startswith(f"fit: {expected}")


def test_settings_from_arrays_are_taken(model: Path) -> None:
    """As a search over NumPy's ranges gives them."""
    settings = {"hidden_dim": np.int64(3), "epochs": np.int64(1), "learning_rate": np.float64(0.1), "seed": np.int64(2)}
    found = ElmoClassifier(model, inputs=np.array(["elmo"]), **settings).fit(["我", "他"] * 3, [1, 2] * 3)
    assert found.task_.description.settings.inputs == ("elmo",)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan")])
def test_missing_labels(model: Path, missing: Any) -> None:
    told = refusal_of(ValueError, lambda: ElmoClassifier(model).fit(["我", "他", "吃"], ["a", missing, "b"]))
    assert told == f"fit: label 1 is {missing}, expected a label for each text. Leave the text out, or label it."
    told = refusal_of(ValueError, lambda: ElmoTagger(model).fit(["我", "他吃"], [["O"], ["O", missing]]))
    assert told == f"fit: tag 1 of text 1 is {missing}, expected a tag. Leave the text out, or label it."
    told = refusal_of(ValueError, lambda: ElmoTagger(model).fit(["我", "他吃"], [["O"], missing]))
    assert told.startswith("fit: the tags of text 1 are ")


@pytest.mark.parametrize("scheme", ["BIO", ""])
def test_a_tagger(model: Path, scheme: str) -> None:
    inside = "B-FOOD" if scheme else "food"
    tags = [[inside if character in "苹果" else "O" for character in text] for text in texts()]
    tagger = ElmoTagger(model, **SETTINGS).fit(texts(), tags)
    assert tagger.predict(["他吃苹", ""]) == [["O", "O", inside], []]
    assert tagger.score(texts(), tags) > 0.9
    assert clone(tagger).get_params() == tagger.get_params()


def test_wrong_input_is_an_error_that_says_so(model: Path) -> None:
    classifier, tagger = ElmoClassifier(model), ElmoTagger(model)
    for call, kind, problem in (
        (lambda: classifier.fit("我吃", [1, 2]), ValueError, "single string"),
        (lambda: classifier.fit(["我", "他"], [1]), ValueError, "2 texts and 1 labels"),
        (lambda: classifier.fit(["我", "他"], [1, 1]), ValueError, "the same label"),
        (lambda: classifier.fit(["我", None], [1, 2]), TypeError, "expected a string"),
        (lambda: tagger.fit(["我吃"], [["O"]]), ValueError, "text 0 has 2 characters and 1 tags"),
        (lambda: tagger.fit(["我"], [["O"]]), ValueError, "expected two at least"),
    ):
        with pytest.raises(kind, match=problem):
            call()


def test_word2vec_composes_words_of_the_model_alone(tmp_path: Path) -> None:
    """我吃 is unknown and in the training texts; 我吃他 consists of three known words all the same."""
    model = add_word2vec(write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig(segmenter="whitespace")))
    settings = {**SETTINGS, "epochs": 1}
    classifier = ElmoClassifier(model, **settings, inputs=("word2vec",)).fit(
        ["我吃 他"] * 9 + ["来"] * 9, list("ab" * 9)
    )
    unseen = ElmoClassifier(model, **settings, inputs=("word2vec",)).fit(["我 他"] * 9 + ["来"] * 9, list("ab" * 9))
    unseen.task_._head.load_state_dict(classifier.task_._head.state_dict())
    np.testing.assert_array_equal(classifier.predict_proba(["我吃他"]), unseen.predict_proba(["我吃他"]))


def test_a_wrong_number_of_labels_names_the_call(model: Path) -> None:
    for call in ("fit", "score"):
        with pytest.raises(ValueError, match=f"^{call}: 2 texts and 1 labels, expected as many$"):
            getattr(ElmoTagger(model), call)(["我", "他"], [["O"]])


def test_a_cross_validation_loads_the_model_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []
    real = ElmoEmbedder.load

    def load(folder: Path, *settings: str, unknown: str) -> ElmoEmbedder:
        loads.append((folder, unknown))
        return real(folder, *settings, unknown=unknown)

    monkeypatch.setattr(ElmoEmbedder, "load", load)
    labels = ["我" in text for text in texts()]
    settings = {**SETTINGS, "epochs": 1, "inputs": ("elmo",)}
    scores = cross_val_score(ElmoClassifier(model, **settings), texts(), labels, cv=3)
    assert loads == [(model, "backoff")]
    alone = cross_val_score(ElmoClassifier(model, **settings), texts(), labels, cv=3)
    assert scores.tolist() == alone.tolist()
