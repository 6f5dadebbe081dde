"""Values that workers compute ahead, in any order: received in order, each computed once, and the same bytes."""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_bundles import SHAPES, write_model

from elmo_zh import ElmoEmbedder, LineScorer
from elmo_zh.contexts.score_work import LineScores
from elmo_zh.embed.line_blocks import Contents
from elmo_zh.embed.reduction import Reduction
from elmo_zh.embed.vector_work import LineVectors
from elmo_zh.engine import loaded_once
from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.engine.in_order import PartTask, _Saved, compute_in_order
from elmo_zh.engine.loaded_once import LoadedOnce
from elmo_zh.engine.parts import _Job, _make, remove_part, run_parts_in_order
from elmo_zh.engine.processes import worker_processes


class Backwards:
    """An engine that takes some tasks ahead and finishes the last one first, each perhaps twice."""

    def __init__(self, ahead: int, times: int = 1) -> None:
        self._ahead, self._times = ahead, times
        self.done: list[Any] = []

    def run(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        upcoming = iter(tasks)
        while some := list(islice(upcoming, self._ahead)):
            for task in reversed(some):
                sent = pickle.loads(pickle.dumps((work, task)))
                for _ in range(self._times):
                    result = sent[0](sent[1])
                self.done.append(task.task)
                yield task, result


class Squares:
    """Work on numbers."""

    def compute(self, task: int) -> int:
        return task * task

    def save(self, value: int, path: Path) -> None:
        path.write_text(str(value), encoding="utf-8")

    def load(self, path: Path) -> int:
        return int(path.read_text(encoding="utf-8"))


def numbered(count: int) -> Iterator[PartTask[int, str]]:
    for number in range(count):
        yield PartTask(name=f"computed-{number}", task=number, kept=f"<{number}>")


@pytest.mark.parametrize("engine", [ThisProcess(), Backwards(1), Backwards(7), Backwards(100), Backwards(3, times=2)])
def test_values_come_in_order(tmp_path: Path, engine: Engine) -> None:
    found = list(compute_in_order(engine, Squares(), numbered(20), tmp_path / "parts"))
    assert found == [(f"<{number}>", number * number) for number in range(20)]
    assert not (tmp_path / "parts").exists() or list((tmp_path / "parts").iterdir()) == []


class CountedSquares(Squares):
    """Work that counts."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def compute(self, task: int) -> int:
        self.done.append(task)
        return super().compute(task)


def test_this_process_uses_what_workers_have_left(tmp_path: Path) -> None:
    values = compute_in_order(Backwards(7), Squares(), numbered(7), tmp_path)
    next(values)
    values.close()  # type: ignore[attr-defined]
    work = CountedSquares()
    rest = list(islice(numbered(9), 1, None))
    found = [value for _, value in compute_in_order(ThisProcess(), work, rest, tmp_path)]
    assert found == [n * n for n in range(1, 9)]
    assert work.done == [7, 8]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["computed-0.json", "computed-0.value"]


def test_what_was_computed_before_is_used(tmp_path: Path) -> None:
    """A command that stops after the third value has computed seven; the next one takes the other four from disk."""
    first, second = Backwards(7), Backwards(5)
    values = compute_in_order(first, Squares(), numbered(12), tmp_path)
    assert [value for _, value in islice(values, 3)] == [0, 1, 4]
    values.close()  # type: ignore[attr-defined]
    assert sorted(first.done) == list(range(7))
    left = sorted(path.name for path in tmp_path.glob("*.value"))
    # The value that was used last is removed when the next one is asked for.
    assert left == [f"computed-{number}.value" for number in range(2, 7)]
    rest = list(islice(numbered(12), 3, None))
    assert [value for _, value in compute_in_order(second, Squares(), rest, tmp_path)] == [n * n for n in range(3, 12)]
    assert sorted(second.done) == list(range(7, 12))


def test_a_part_that_is_not_whole_is_computed_again(tmp_path: Path) -> None:
    engine = Backwards(3)
    values = compute_in_order(engine, Squares(), numbered(3), tmp_path)
    next(values)
    values.close()  # type: ignore[attr-defined]
    (tmp_path / "computed-1.value").write_text("12", encoding="utf-8")
    (tmp_path / "computed-2.json").unlink()
    again = Backwards(3)
    assert [value for _, value in compute_in_order(again, Squares(), numbered(3), tmp_path)] == [0, 1, 4]
    assert sorted(again.done) == [1, 2]


def test_tasks_are_taken_as_they_are_needed(tmp_path: Path) -> None:
    taken = []

    def tasks() -> Iterator[PartTask[int, int]]:
        for number in range(100):
            taken.append(number)
            yield PartTask(str(number), number, number)

    values = compute_in_order(Backwards(5), Squares(), tasks(), tmp_path)
    assert next(values) == (0, 0)
    assert len(taken) == 5


def test_errors_of_workers_are_raised(tmp_path: Path) -> None:
    def fail(task: int, writer: Any) -> dict[str, Any]:
        raise ValueError(task)

    with pytest.raises(ValueError, match="1"):
        list(run_parts_in_order(ThisProcess(), fail, [("a", 1)], tmp_path))
    assert list(tmp_path.iterdir()) == []


# Models


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "drawn", SHAPES["token"], with_softmax=True)


LINES = [["我们", "吃", "苹果"], [], ["今天", "。"], ["我们", "吃", "苹果"], ["吃"] * 17]


def line_vectors(bundle: Path, pool: str = "none") -> LineVectors:
    embedder = ElmoEmbedder.load(bundle, device="cpu")
    contents = Contents(
        attributes={},
        first_line=0,
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


def test_a_task_that_runs_twice_at_once_leaves_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    """Two processes compute each part at the same time, as when an engine takes a living worker for dead."""
    work = line_vectors(bundle)
    expected = tmp_path / "expected"
    work.save(work.compute(LINES), expected)
    twins = [_Job(_Saved(work), LINES, tmp_path / "parts", "computed-twin")] * 2
    made = []
    with worker_processes(2) as engine:
        for _ in range(3):
            list(engine.run(_make, twins))
            made.append({path.name: path.read_bytes() for path in sorted((tmp_path / "parts").iterdir())})
            remove_part(tmp_path / "parts", "computed-twin")
    assert list((tmp_path / "parts").iterdir()) == []
    assert made[0] == made[1] == made[2]
    assert list(made[0]) == ["computed-twin.json", "computed-twin.value"]
    assert made[0]["computed-twin.value"] == expected.read_bytes()
    recorded = json.loads(made[0]["computed-twin.json"])["files"]["computed-twin.value"]
    assert recorded[0] == expected.stat().st_size


@pytest.mark.parametrize("by_token", [False, True])
def test_scores_come_back_from_their_file_as_they_were(bundle: Path, tmp_path: Path, by_token: bool) -> None:
    scorer = LineScorer.load(bundle, segmented=True, by_token=by_token)
    work = LineScores(scorer, LineScorer.load(bundle, segmented=True))
    computed = work.compute(["我们 吃 苹果 。", "", "生词 生词 饭"])
    work.save(computed, tmp_path / "scores")
    assert work.load(tmp_path / "scores") == computed
    assert computed.unknown_words == {"生词": 2, "饭": 1}
    assert [difference for _, difference in computed.known] == [0.0, None, 0.0]
    assert scorer.unknown_words == {}


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
    """Something that is slow to load."""

    loaded = 0

    def __init__(self, number: int) -> None:
        type(self).loaded += 1
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return Counted, (self.number,)


def test_a_value_is_loaded_once_and_only_if_it_is_used() -> None:
    loaded_once._loaded.cache_clear()
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
