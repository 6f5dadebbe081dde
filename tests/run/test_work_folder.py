"""Unfinished work: what goes on, what starts over, what is damaged, and values computed ahead."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import contents, contents_alone
from messages import Heard, message_of

from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.errors import OutputError
from elmo_zh.run.work_folder import Figures, PartTask, PartWriter, Region, WorkFolder, part_name

# Opening


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    return WorkFolder.of(tmp_path / "out")


def test_the_same_work_goes_on_and_other_work_starts_over(folder: WorkFolder) -> None:
    kept = folder.path / "kept"
    for manifest, force, goes_on in (
        ({"text": (7, "å")}, False, False),
        ({"text": [7, "å"]}, False, True),
        ({"text": [8, "å"]}, False, False),
        ({"text": [8, "å"]}, True, False),
    ):
        folder.open(manifest, force=force)
        assert kept.exists() == goes_on
        assert folder.is_of(manifest)
        kept.touch()
    folder.manifest.write_text("{")
    assert not folder.is_of({"text": [8, "å"]})
    folder.open({"text": [8, "å"]})
    assert not kept.exists()
    folder.remove()
    assert not folder.path.exists()
    assert folder.path.name == "out.parts"


def test_finished_parts_of_other_work_are_kept_without_force(folder: WorkFolder) -> None:
    folder.open({"text": 7}, refusal="an unfinished output of another text")
    folder.open({"text": 8}, refusal="an unfinished output of another text")
    folder.finish(part_name(0))
    told = message_of(OutputError, lambda: folder.open({"text": 9}, refusal="an unfinished output of another text"))
    assert told.startswith(f"{folder.path} contains an unfinished output of another text. To continue, use the same")
    folder.open({"text": 9}, refusal="an unfinished output of another text", work="other-*")
    folder.finish(part_name(0))
    folder.open({"text": 8}, refusal="an unfinished output of another text", force=True, discard=lambda: None)
    assert folder.finished() == {part_name(0): {}}


# Records


def test_every_byte_counts(folder: WorkFolder) -> None:
    folder.open({})
    data = folder.path / "data"
    data.write_bytes(bytes(range(101)))
    folder.finish("a", {"lines": 7}, [Region(data, 0, 13), Region(data, 53, 17)])
    record = folder.record("a")
    sound = record.read_bytes()
    for path, vouched in ((data, {*range(13), *range(53, 70)}), (record, set(range(len(sound))))):
        whole = path.read_bytes()
        for place in range(len(whole)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            is_json_space = path == record and whole[place : place + 1] in b" \n"
            assert (folder.figures("a") is not None) == (place not in vouched) or is_json_space
            record.write_bytes(sound)
        path.write_bytes(whole)
    assert folder.figures("a") == {"lines": 7}
    data.write_bytes(bytes(range(69)))
    assert folder.figures("a") is None
    data.unlink()
    record.write_bytes(sound)
    assert folder.figures("a") is None
    assert not record.exists()


@pytest.mark.parametrize(
    "content", ["", "[]", "7", "{}", '{"files": 7, "figures": {}}', "[" * 100_000, '{"n": ' + "1" * 5003 + "}", "\xff"]
)
def test_a_damaged_record_is_no_record(folder: WorkFolder, content: str) -> None:
    folder.open({})
    folder.finish("a", {"lines": 7})
    folder.record("a").write_bytes(content.encode("latin-1"))
    assert folder.num_finished(["a"]) == 0
    reporter = Heard()
    assert folder.figures("a", reporter) is None
    assert folder.figures("a", reporter) is None
    assert reporter.warnings == [f"Some finished work in {folder.path} is damaged and will be computed again."]


def test_parts_from_the_first_damaged_one_on_are_discarded(folder: WorkFolder) -> None:
    folder.open({})
    shared = folder.path / "shared"
    shared.write_bytes(bytes(7))
    for number in range(4):
        own = folder.path / f"{part_name(number)}.own"
        own.write_bytes(bytes([number] * 11))
        folder.finish(part_name(number), {"number": number}, [Region.whole(own), Region(shared, number, 1)])
    (folder.path / f"{part_name(2)}.own").write_bytes(bytes([2] * 10 + [3]))
    reporter = Heard()
    assert folder.finished("part-*", reporter) == {part_name(0): {"number": 0}, part_name(1): {"number": 1}}
    assert len(reporter.warnings) == 1
    left = [f"{part_name(number)}.{suffix}" for number in (0, 1) for suffix in ("json", "own")]
    assert sorted(contents_alone(folder.path)) == ["manifest.json", *left, f"{part_name(2)}.own", "shared"]


def test_lines_are_finished_up_to_the_first_gap(folder: WorkFolder) -> None:
    folder.open({})
    for first_line, num_lines in ((0, 3), (3, 7), (11, 2)):
        folder.finish_lines(first_line, num_lines, [])
    assert folder.finished_lines() == {part_name(0): 3, part_name(3): 7}
    assert folder.finished_lines(3) == {}
    folder.discard(part_name(0))
    assert folder.finished_lines(3) == {part_name(3): 7}


# Parts made by an engine


def write_part(task: str, writer: PartWriter) -> Figures:
    with writer.file("txt") as unfinished:
        unfinished.write_text(task, encoding="utf-8")
    with writer.file("used", lasts=False) as unfinished:
        unfinished.write_text(task * 2, encoding="utf-8")
    return {"lines": len(task), "by number": {10: "ten", 9: "nine"}}


def make(folder: Path, task: str = "abc") -> Figures:
    return dict(WorkFolder(folder).run(ThisProcess(), write_part, {"a": task}))["a"]


FIGURES = {"lines": 3, "by number": {"10": "ten", "9": "nine"}}


def test_a_sound_part_is_not_made_again(tmp_path: Path) -> None:
    make(tmp_path)
    sound = contents_alone(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"~bc")
    assert make(tmp_path) == FIGURES
    assert contents_alone(tmp_path) == sound
    (tmp_path / "a.used").unlink()
    before = contents(tmp_path)
    assert make(tmp_path, "xyz") == FIGURES
    assert contents(tmp_path) == before
    assert WorkFolder(tmp_path).num_finished(["a", "b"]) == 1


# Values computed ahead


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
    def __init__(self) -> None:
        self.done: list[int] = []

    def compute(self, task: int) -> int:
        self.done.append(task)
        return task * task

    def save(self, value: int, path: Path) -> None:
        path.write_text(str(value), encoding="utf-8")

    def load(self, path: Path) -> int:
        return int(path.read_text(encoding="utf-8"))


def numbered(count: int, start: int = 0) -> Iterator[PartTask[int, str]]:
    for number in range(start, count):
        yield PartTask(name=f"computed-{number}", task=number, kept=f"<{number}>")


def squares(folder: WorkFolder, engine: Engine, count: int, start: int = 0) -> list[int]:
    return [value for _, value in folder.compute(engine, Squares(), numbered(count, start))]


def stopped_after(folder: WorkFolder, engine: Engine, count: int, num_values: int) -> None:
    values = folder.compute(engine, Squares(), numbered(count))
    assert [value for _, value in islice(values, num_values)] == [number**2 for number in range(num_values)]
    values.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("engine", [ThisProcess(), Backwards(1), Backwards(7), Backwards(100), Backwards(3, times=2)])
def test_values_come_in_order(folder: WorkFolder, engine: Engine) -> None:
    found = list(folder.compute(engine, Squares(), numbered(20)))
    assert found == [(f"<{number}>", number * number) for number in range(20)]
    assert list(folder.path.iterdir()) == []


def test_this_process_uses_what_workers_have_left(folder: WorkFolder) -> None:
    stopped_after(folder, Backwards(7), 7, 1)
    work = Squares()
    found = [value for _, value in folder.compute(ThisProcess(), work, numbered(9, start=1))]
    assert found == [n * n for n in range(1, 9)]
    assert work.done == [7, 8]
    assert sorted(contents_alone(folder.path)) == ["computed-0.json", "computed-0.value"]


def test_what_was_computed_before_is_used(folder: WorkFolder) -> None:
    """A command that stops after the third value has computed seven; the next one takes the other four from disk."""
    first, second = Backwards(7), Backwards(5)
    stopped_after(folder, first, 12, 3)
    assert sorted(first.done) == list(range(7))
    # The value that was used last is removed when the next one is asked for.
    left = sorted(path.name for path in folder.path.glob("*.value"))
    assert left == [f"computed-{number}.value" for number in range(2, 7)]
    assert squares(folder, second, 12, start=3) == [n * n for n in range(3, 12)]
    assert sorted(second.done) == list(range(7, 12))


def test_a_value_that_is_not_whole_is_computed_again(folder: WorkFolder) -> None:
    stopped_after(folder, Backwards(3), 3, 1)
    (folder.path / "computed-1.value").write_text("12", encoding="utf-8")
    (folder.path / "computed-2.json").unlink()
    again = Backwards(3)
    assert squares(folder, again, 3) == [0, 1, 4]
    assert sorted(again.done) == [1, 2]


def test_tasks_are_taken_as_they_are_needed(folder: WorkFolder) -> None:
    tasks = numbered(100)
    assert next(folder.compute(Backwards(5), Squares(), tasks)) == ("<0>", 0)
    assert next(tasks).task == 5
