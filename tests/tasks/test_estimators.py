"""Tasks as scikit-learn's estimators."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import TOKENS, add_word2vec, write_model
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from elmo_zh import ElmoClassifier, ElmoEmbedder, ElmoTagger, sklearn
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


@pytest.mark.parametrize("scheme", ["BIO", ""])
def test_a_tagger(model: Path, scheme: str) -> None:
    inside = "B-FOOD" if scheme else "food"
    tags = [[inside if character in "苹果" else "O" for character in text] for text in texts()]
    tagger = ElmoTagger(model, **SETTINGS).fit(texts(), tags)
    assert tagger.predict(["他吃苹", ""]) == [["O", "O", inside], []]
    assert tagger.score(texts(), tags) > 0.9
    assert clone(tagger).get_params() == tagger.get_params()


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

    def load(folder: Path, *settings: str) -> ElmoEmbedder:
        loads.append(folder)
        return real(folder, *settings)

    monkeypatch.setattr(ElmoEmbedder, "load", load)
    sklearn._load_once.cache_clear()
    labels = ["我" in text for text in texts()]
    settings = {**SETTINGS, "epochs": 1, "inputs": ("elmo",)}
    scores = cross_val_score(ElmoClassifier(model, **settings), texts(), labels, cv=3)
    assert loads == [model]
    alone = cross_val_score(ElmoClassifier(model, **settings), texts(), labels, cv=3)
    assert scores.tolist() == alone.tolist()
