"""What run_job promises, on a small job; tests/contract/test_jobs.py tries the same promises on all real jobs."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import contents_alone
from messages import Heard, message_of

from elmo_zh.engine import Engine, Shared, ThisProcess
from elmo_zh.errors import ClusterError, CorpusError, OutputError
from elmo_zh.run.job import Files, FinishedPart, Step, Work, run_job
from elmo_zh.run.reporter import SilentReporter


@dataclass(frozen=True)
class Squares:
    """Writes the squares of some numbers; a part's file has the square, its value the number."""

    output: Path
    numbers: Sequence[int] = (2, 3, 5, 7)
    name: str = "squares"
    in_order: bool = False
    inputs: Sequence[Path] = ()
    valuable = ("squares",)

    def may_replace(self, path: Path) -> bool:
        return path.is_file()

    def made_from(self) -> Mapping[str, Any]:
        return {"numbers": self.numbers}

    def make(self, path: Path, work: Work) -> int:
        step = Step(name=self.name, compute=square, in_order=self.in_order)
        parts = list(work.run(step, self.numbers))
        path.write_text("".join(part.file("txt").read_text() for part in parts))
        return sum(part.value() for part in parts)


def square(number: int, files: Files) -> int:
    if number < 0:
        raise CorpusError(f"{number} is refused")
    with files.file("txt") as path:
        path.write_text(f"{number * number} ")
    with files.file("used", lasts=False) as path:
        path.write_text("used")
    return number


@pytest.fixture
def job(tmp_path: Path) -> Squares:
    return Squares(tmp_path / "out")


def run(job: Squares, **options: Any) -> int:
    return run_job(job, **{"force": False, "reporter": SilentReporter(), **options})


class Stopping(SilentReporter):
    """Ctrl-C as soon as some parts are finished."""

    def __init__(self, num_parts: int) -> None:
        self._left = num_parts

    def progress(self, *_: object, **__: object) -> Any:
        return self

    def __enter__(self) -> "Stopping":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, amount: int, **_: float) -> None:
        self._left -= amount
        if self._left <= 0:
            raise KeyboardInterrupt


def stop(job: Squares, num_parts: int) -> Path:
    with pytest.raises(KeyboardInterrupt):
        run(job, reporter=Stopping(num_parts))
    return job.output.with_name("out.parts")


def test_an_output_is_replaced_when_it_is_told_to_be(job: Squares) -> None:
    assert run(job) == 17
    assert run(Squares(job.output, (13,)), replace=True) == 13
    assert contents_alone(job.output.parent) == {"out": b"169 "}


def test_an_error_of_the_text_leaves_nothing_and_no_finished_part_neither(tmp_path: Path) -> None:
    for numbers, kind in (((2, -3), CorpusError), ((), KeyboardInterrupt)):
        job = Squares(tmp_path / "out", numbers)
        reporter = SilentReporter() if numbers else Stopping(0)
        with pytest.raises(kind):
            run_job(Stopped(job.output) if not numbers else job, force=False, reporter=reporter)
        assert contents_alone(tmp_path) == {}


class Stopped(Squares):
    def make(self, path: Path, work: Work) -> int:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_a_folder_that_is_not_ours_is_refused(job: Squares, kind: str) -> None:
    parts, kept = job.output.with_name("out.parts"), job.output.with_name("kept")
    kept.mkdir()
    (kept / "mine").write_text("1")
    if kind == "folder":
        kept.rename(parts)
    elif kind == "file":
        parts.write_text("1")
    else:
        parts.symlink_to(kept)
    before = contents_alone(job.output.parent)
    for force in (False, True):
        assert str(parts) in message_of(OutputError, lambda: run(job, force=force))  # noqa: B023
    assert contents_alone(job.output.parent) == before


def test_a_damaged_manifest_starts_over(job: Squares) -> None:
    parts = stop(Squares(job.output, name="cheap"), 2)
    (parts / "manifest.json").write_text("{")
    assert run(job) == 17


# Records


def finished_part(folder: Path) -> FinishedPart:
    work = Work(folder, SilentReporter())
    [part] = work.run(Step(name="squares", compute=square), [7])
    return part


def test_every_byte_counts(tmp_path: Path) -> None:
    part = finished_part(tmp_path)
    assert part.value() == 7
    for path in (part.record, part.file("txt"), part.file("used")):
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert not part.is_whole(check_digests=True)
        path.write_bytes(whole[:-1])
        assert not part.is_whole()
        path.write_bytes(whole)
        assert part.is_whole(check_digests=True)
    part.file("used").unlink()
    assert part.is_whole(check_digests=True)
    part.file("txt").unlink()
    assert not part.is_whole()


# Order


def recorded(log: list[int]) -> Callable[[int, Files], int]:
    def compute(number: int, files: Files) -> int:
        log.append(number)
        return square(number, files)

    return compute


@pytest.mark.parametrize(("in_order", "again"), [(False, [3, 11]), (True, [3, 5, 7, 11])])
def test_parts_after_a_damaged_one_are_kept_unless_they_need_it(
    tmp_path: Path, in_order: bool, again: list[int]
) -> None:
    log: list[int] = []
    work = Work(tmp_path, Heard())
    step = Step(name="squares", compute=recorded(log), in_order=in_order)
    list(work.run(step, (2, 3, 5, 7)))
    damaged = FinishedPart(tmp_path / "squares", "part-000000000001").file("txt")
    damaged.write_text("8 ")
    log.clear()
    assert [part.value() for part in work.finished("squares")] == [2]
    assert [part.value() for part in work.run(step, (2, 3, 5, 7, 11))] == [2, 3, 5, 7, 11]
    assert log == again
    begun = work.finished("squares")
    assert [part.value() for part in work.run(step, (13,), after=begun)] == [13]
    assert log == [*again, 13]


class Backwards(Engine):
    """Takes three tasks ahead, which reach it pickled, and does the last one first, each twice."""

    def __init__(self) -> None:
        super().__init__(ThreadPoolExecutor(), num_ahead=3)
        self.done: list[int] = []

    def run(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        upcoming = iter(tasks)
        while some := list(islice(upcoming, 3)):
            for task in reversed(some):
                for _ in range(2):
                    sent_work, sent_task = pickle.loads(pickle.dumps((work, task)))
                    result = sent_work(sent_task)
                self.done.append(task.part)
                yield task, result


def test_parts_come_in_order_whatever_the_workers_do(tmp_path: Path) -> None:
    engine = Backwards()
    work = Work(tmp_path, SilentReporter(), engine)
    numbers = list(range(20))
    assert [part.value() for part in work.run(Step(name="squares", compute=square), numbers)] == numbers
    assert sorted(engine.done) == numbers


# Workers


def test_a_part_that_is_not_seen_here(tmp_path: Path) -> None:
    class Elsewhere(ThisProcess):
        def run(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
            for task in tasks:
                files = Files(FinishedPart(tmp_path / "there", task.result.name))
                yield task, (square(task.part, files), files)

    work = Work(tmp_path, SilentReporter(), Elsewhere())
    (tmp_path / "squares").mkdir()
    told = message_of(ClusterError, lambda: list(work.run(Step(name="squares", compute=square), [7])))
    assert str(tmp_path / "squares") in told


class Counted:
    loaded = 0

    def __init__(self, number: int) -> None:
        type(self).loaded += 1
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return Counted, (self.number,)


def test_a_shared_value_is_unpickled_once_and_only_if_it_is_used() -> None:
    shared = [Shared(Counted(number)) for number in (1, 2)]
    start = Counted.loaded
    copies = [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(value)))) for value in shared]
    assert Counted.loaded == start
    for number, loads in ((0, 1), (0, 1), (1, 2), (0, 2)):
        with pickle.loads(pickle.dumps(copies[number])).used() as value:
            assert value.number == number + 1
        assert Counted.loaded == start + loads
    with shared[0].used() as value:
        assert value.number == 1
    assert Counted.loaded == start + 2
