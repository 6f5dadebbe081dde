"""ElmoVectorizer against the vectors of ElmoEmbedder, and as a step of scikit-learn's pipelines and searches."""

import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import SHAPES, TOKENS, P, write_model
from messages import message_of
from numpy.typing import NDArray

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'scikit-learn>=1.6'")

from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from elmo_zh import ElmoEmbedder
from elmo_zh import sklearn as module
from elmo_zh.config import TextConfig
from elmo_zh.errors import BundleError
from elmo_zh.sklearn import ElmoVectorizer

WORDS = ("我", "吃", "苹", "果", "。", "今天")
LINES = ["我吃苹果。", "", "果", "今 天", "我吃苹果。", "吃" * 17, " "]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the models stand: model, and other."""
    folder = tmp_path_factory.mktemp("models")
    text = TextConfig(segmenter="character")
    write_model(folder / "model", TOKENS, words=WORDS, text=text)
    write_model(folder / "other", SHAPES["character"], words=WORDS, text=text, seed=5)
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    module._load_once.cache_clear()


def vectorizer(**settings: Any) -> ElmoVectorizer:
    return ElmoVectorizer("model", device="cpu", **settings)


def pooled_by_hand(vectors: NDArray[np.float32], pool: str) -> NDArray[np.float64]:
    """Of one layer's vectors, shape (n, 2P)."""
    if not len(vectors):
        return np.zeros(2 * P)
    if pool == "first-last":
        return np.array([*vectors[-1, :P], *vectors[0, P:]])
    return np.array([sum(column) / len(column) if pool == "mean" else max(column) for column in vectors.T])


# Values


@pytest.mark.parametrize("pool", ["mean", "max", "first-last"])
@pytest.mark.parametrize("layers", ["average", "top", 0, "1", np.int64(2)])
def test_vectors_are_those_of_the_embedder_pooled(pool: str, layers: Any) -> None:
    found = vectorizer(pool=pool, layers=layers).fit(LINES).transform(LINES)
    assert (found.dtype, found.shape) == (np.dtype("float32"), (len(LINES), 2 * P))
    for row, vectors in zip(found, ElmoEmbedder.load("model", "cpu").embed(LINES), strict=True):
        expected = pooled_by_hand(
            vectors.mean(axis=0) if layers == "average" else vectors[-1 if layers == "top" else int(layers)], pool
        )
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-6)
    assert not found[[1, 6]].any()
    assert found[[0, 2, 3, 5]].any(axis=1).all()


def test_raw_strings_and_segmented_ones() -> None:
    embedder = ElmoEmbedder.load("model", "cpu")
    raw, segmented = (vectorizer(segmented=each).fit_transform(["今天 吃"])[0] for each in (False, True))
    for found, tokens in ((raw, ["今", "天", "吃"]), (segmented, ["今天", "吃"])):
        (vectors,) = embedder.embed_tokens([tokens])
        np.testing.assert_allclose(found, vectors.mean(axis=(0, 1)), rtol=0, atol=1e-6)
    assert np.abs(raw - segmented).max() > 1e-3


@pytest.mark.parametrize(("layers", "numbers"), [("all", [0, 1, 2]), ([2, 0], [2, 0])])
def test_several_layers_in_one_pass(layers: Any, numbers: list[int]) -> None:
    several = vectorizer(layers=layers)
    found = several.transform(LINES)
    assert found.shape == (len(LINES), len(numbers) * 2 * P)
    for place, layer in enumerate(numbers):
        alone = vectorizer(layers=layer).transform(LINES)
        np.testing.assert_array_equal(found[:, place * 2 * P : (place + 1) * 2 * P], alone)
    assert len(several.get_feature_names_out()) == several.fit(LINES).n_features_out_ == found.shape[1]


# The model is loaded late and once


def test_a_fitted_one_refuses_another_model_in_its_folder_and_a_clone_takes_it(folder: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(folder / "model", tmp_path / "model"))
    transformer = ElmoVectorizer(model, device="cpu").fit(LINES)
    fitted, expected = transformer.model_digest_, transformer.transform(LINES)
    pickled = pickle.dumps(transformer)
    assert len(pickled) < 1000  # the model is left out
    shutil.rmtree(model)
    shutil.copytree(folder / "other", model)
    other = ElmoEmbedder.load(model, "cpu").bundle.digest
    # What has loaded its model keeps it; what is fitted again, or never was, takes what is there.
    np.testing.assert_array_equal(transformer.transform(LINES), expected)
    module._load_once.cache_clear()  # as in another process
    found = message_of(BundleError, lambda: pickle.loads(pickled).transform(LINES))
    assert found.startswith(f"{model} is not the model that was fitted: {other}; expected {fitted}.")
    assert pickle.loads(pickled).fit(LINES).transform(LINES).any()
    twin = clone(transformer).fit(LINES)
    assert twin.model_digest_ == other
    assert np.abs(twin.transform(LINES) - expected).max() > 1e-3
    # The same model in another place, as docs/python.md says.
    moved = shutil.copytree(folder / "model", tmp_path / "moved")
    np.testing.assert_array_equal(pickle.loads(pickled).set_params(model=moved).transform(LINES), expected)


# Among scikit-learn's own

TEXTS = ["我吃苹果。", "吃苹果", "苹果。", "我苹果", "今", "天今", "今天", "天"] * 3
LABELS = [1, 1, 1, 1, 0, 0, 0, 0] * 3


@pytest.fixture
def no_processes_left() -> Iterator[None]:
    """joblib keeps its processes for the next call, and other tests look at what children there are."""
    yield
    get_reusable_executor().shutdown(wait=True)


@pytest.mark.usefixtures("no_processes_left")
def test_cross_validation_and_search_in_other_processes() -> None:
    pipeline = Pipeline([("elmo", vectorizer()), ("classify", LogisticRegression())])
    assert cross_val_score(pipeline, TEXTS, LABELS, cv=3, n_jobs=2).tolist() == [1, 1, 1]
    grid = {"elmo__pool": ["mean", "max"], "elmo__layers": ["average", 0]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise").fit(np.array(TEXTS), LABELS)
    assert search.best_score_ == 1
    assert search.predict(["我吃", "今天"]).tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_checks_that_scikit_learn_has_for_estimators_of_text() -> None:
    assert get_tags(vectorizer()).input_tags.string
    results = check_estimator(vectorizer(), on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
