"""Linear models and their mixtures: as scikit-learn fits them, and worked by hand."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler, normalize
from tasks.labelled import drawn_texts

from elmo_zh.tasks.encode_texts import UnitText
from elmo_zh.tasks.linear import (
    CHARACTERS,
    Features,
    example_features,
    fit_linear,
    gram_features,
    known_grams,
    log_loss,
)
from elmo_zh.tasks.mixture import choose_weights, mix

NUM_CLASSES = 3


def data() -> tuple[list[str], np.ndarray]:
    texts = [text * 2 for text in drawn_texts(61)]
    return texts, np.array([("我" in text) + ("苹" in text) for text in texts])


def grams_of(texts: list[str]) -> Features:
    return gram_features(texts, known_grams(texts))


@pytest.mark.parametrize("kind", ["characters", "vectors", "half precision"])
def test_a_linear_model_is_that_of_scikit_learn(kind: str) -> None:
    texts, classes = data()
    if kind == "characters":
        oracle = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), sublinear_tf=True, min_df=2)
        expected = oracle.fit_transform(texts)
        features = grams_of(texts)
    else:
        drawn = np.random.default_rng(3).normal(2, 5, (61, 7)) + classes[:, None]
        features = drawn.astype(np.float32) if kind == "vectors" else (drawn + 100).astype(np.float16)
        expected = normalize(StandardScaler().fit_transform(features.astype(float)))
    fitted = fit_linear(features, classes, NUM_CLASSES, np.arange(61) % 5, strengths=(10.0,))
    reference = LogisticRegression(C=10.0, tol=1e-6, max_iter=2000).fit(expected, classes)
    found = np.exp(fitted.model.log_probabilities(features))
    assert found == pytest.approx(reference.predict_proba(expected), abs=0.01)


def test_held_out_texts_are_predicted_by_a_model_of_the_others() -> None:
    """Changing the label of a text changes nothing about its own prediction by the models of the other folds."""
    texts, classes = data()
    features, fold_of = grams_of(texts), np.arange(61) % 5
    first = fit_linear(features, classes, NUM_CLASSES, fold_of)
    changed = np.where(fold_of == 2, (classes + 1) % NUM_CLASSES, classes)
    found = {
        name: fit_linear(features, each, NUM_CLASSES, fold_of, strengths=(10.0,)).held_out[fold_of == 2]
        for name, each in (("one", classes), ("other", changed))
    }
    assert np.array_equal(found["one"], found["other"])
    assert np.exp(first.held_out).sum(axis=1) == pytest.approx(1)
    assert log_loss(first.held_out, classes) > log_loss(first.model.log_probabilities(features), classes)


def test_an_empty_text_gets_finite_probabilities() -> None:
    texts, classes = data()
    features = grams_of([*texts, ""])
    fitted = fit_linear(features, np.append(classes, 0), NUM_CLASSES, np.arange(62) % 5)
    assert np.isfinite(fitted.held_out).all()
    assert np.isfinite(fitted.model.log_probabilities(features[-1:])).all()


def test_weights_by_hand() -> None:
    """Of two classifiers one is right, the other knows nothing; of two that know half each both are needed."""
    right = np.log([[0.9, 0.1], [0.1, 0.9]])
    nothing = np.log(np.full((2, 2), 0.5))
    classes = np.array([0, 1])
    assert choose_weights([right, nothing], classes) == (1.0, 0.0)
    assert choose_weights([nothing, right], classes) == (0.0, 1.0)
    # Products of 0.9 * 0.5 against 0.1 * 0.5 to the power of a half: 3 to 1.
    assert np.exp(mix([right, nothing], (0.5, 0.5)))[0] == pytest.approx([0.75, 0.25])
    halves = [np.log([[0.99, 0.01], [0.6, 0.4]]), np.log([[0.4, 0.6], [0.01, 0.99]])]
    assert choose_weights(halves, classes) == (0.5, 0.5)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_mixture_is_worse_on_its_labels_than_the_best_classifier(count: int) -> None:
    generator = np.random.default_rng(count)
    for _ in range(20):
        logs = [np.log(generator.dirichlet(np.ones(NUM_CLASSES), 11)) for _ in range(count)]
        classes = generator.integers(NUM_CLASSES, size=11)
        weights = choose_weights(logs, classes)
        assert sum(weights) == pytest.approx(1)
        assert min(weights) >= 0
        assert log_loss(mix(logs, weights), classes) <= min(log_loss(each, classes) for each in logs) + 1e-12


def test_a_pair_is_what_differs_and_what_both_have_by_hand() -> None:
    first, second = (
        UnitText(text, np.zeros((0, 2), np.int32), (), np.zeros(0, np.int64), np.zeros(0, np.int64))
        for text in ("我我来", "我他")
    )
    numbers = {"他": 0, "我": 1, "来": 2}
    found = [example_features(CHARACTERS, [pair], numbers, None, None) for pair in ((first, second), (second, first))]
    # A text that has a character twice has 1 + log 2 of it.
    assert found[0].toarray() == pytest.approx(np.array([[1, np.log(2), 1, 0, 1, 0]]))
    assert np.array_equal(found[0].toarray(), found[1].toarray())
