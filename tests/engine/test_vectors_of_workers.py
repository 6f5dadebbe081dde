"""Vectors and scores as workers compute them: the same bytes, from models that they load once."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import SHAPES, write_model

from elmo_zh import ElmoEmbedder, LineScorer
from elmo_zh.contexts.score_lines import LineScores, TextLine
from elmo_zh.embed.dump import LineVectors
from elmo_zh.embed.formats import Contents
from elmo_zh.embed.reduction import Reduction
from elmo_zh.engine import engine
from elmo_zh.engine.engine import LoadedOnce


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "drawn", SHAPES["token"], with_softmax=True)


LINES = [["我们", "吃", "苹果"], [], ["今天", "。"], ["我们", "吃", "苹果"], ["吃"] * 17]


def line_vectors(bundle: Path, pool: str = "none") -> LineVectors:
    embedder = ElmoEmbedder.load(bundle, device="cpu")
    contents = Contents(
        attributes={},
        num_lines=99,
        num_tokens=999,
        num_layers=None,
        dimension=embedder.dimension,
        dtype="float16",
        is_pooled=pool != "none",
        has_offsets=False,
    )
    return LineVectors(embedder, contents, Reduction(layers="average", pool=pool))


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_vectors_are_those_of_the_embedder(bundle: Path, pool: str) -> None:
    found = line_vectors(bundle, pool).compute(LINES)
    means = [vectors.mean(axis=0) for vectors in ElmoEmbedder.load(bundle).embed_tokens(LINES)]
    if pool == "mean":
        means = [each.mean(axis=0, keepdims=True) if len(each) else np.zeros((1, 10)) for each in means]
    np.testing.assert_allclose(found, np.concatenate(means), rtol=2**-10, atol=1e-6)
    assert found.dtype == np.float16


@pytest.mark.parametrize("by_token", [False, True])
def test_scores_come_back_from_their_file_as_they_were(bundle: Path, tmp_path: Path, by_token: bool) -> None:
    scorer = LineScorer.load(bundle, segmented=True, by_token=by_token)
    work = LineScores(scorer, LineScorer.load(bundle, segmented=True))
    lines = ["我们 吃 苹果 。", "", "生词 生词 饭"]
    computed = work.compute([TextLine(0, number, line) for number, line in enumerate(lines)])
    work.save(computed, tmp_path / "scores")
    assert work.load(tmp_path / "scores") == computed
    assert [line.score.unknown for line in computed] == [(), (), ("生词", "生词", "饭")]
    assert [line.difference for line in computed] == [0.0, None, 0.0]


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
