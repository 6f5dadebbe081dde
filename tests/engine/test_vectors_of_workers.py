"""Vectors and scores as workers compute them: the same bytes, from models that they load once."""

import pickle
from pathlib import Path

import pytest
from drawn_bundles import SHAPES, write_model

from elmo_zh import LineScorer


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "drawn", SHAPES["token"], with_softmax=True)


def test_a_scorer_is_pickled_as_its_folder(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundle.parent)
    scorer = LineScorer.load("drawn", segmented=True, by_token=True)
    pickled = pickle.dumps(scorer)
    assert len(pickled) < 1000
    monkeypatch.chdir("/")
    copy = pickle.loads(pickled)
    assert copy.reading == scorer.reading
    assert copy.score(["我们 吃"]) == scorer.score(["我们 吃"])
