"""Vectors and scores as workers compute them: the same bytes, from models that they load once."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from drawn_bundles import SHAPES, write_model

from elmo_zh import LineScorer
from elmo_zh.engine import engine
from elmo_zh.engine.engine import LoadedOnce


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


class Counted:
    loaded = 0

    def __init__(self, number: int) -> None:
        type(self).loaded += 1
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return Counted, (self.number,)


def test_a_value_is_loaded_once_and_only_if_it_is_used() -> None:
    engine._loaded.cache_clear()
    values = [LoadedOnce(Counted(number)) for number in (1, 2, 3)]
    start = Counted.loaded
    copies = [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(value)))) for value in values]
    assert Counted.loaded == start
    for number, loads in ((0, 1), (0, 1), (1, 2), (0, 2), (2, 3), (0, 3), (1, 4)):
        with pickle.loads(pickle.dumps(copies[number])).used() as (value,):
            assert value.number == number + 1
        assert Counted.loaded == start + loads
    with values[0].used() as (own,):
        assert own.number == 1
    assert Counted.loaded == start + 4
