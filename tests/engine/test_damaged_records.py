"""Damaged records and files of finished tasks: the tasks run again."""

from pathlib import Path

import pytest
from contract.command_line import contents, contents_alone

from elmo_zh.engine.engine import ThisProcess
from elmo_zh.engine.parts import Figures, PartWriter, num_finished, run_parts
from elmo_zh.segmenting.work_dir import SegmentParts


def write_part(task: str, writer: PartWriter) -> Figures:
    with writer.file("txt") as unfinished:
        unfinished.write_text(task, encoding="utf-8")
    with writer.file("used", lasts=False) as unfinished:
        unfinished.write_text(task * 2, encoding="utf-8")
    return {"lines": len(task), "by number": {10: "ten", 9: "nine"}}


def make(folder: Path, task: str = "abc") -> Figures:
    return dict(run_parts(ThisProcess(), write_part, {"a": task}, folder))["a"]


FIGURES = {"lines": 3, "by number": {"10": "ten", "9": "nine"}}


@pytest.mark.parametrize("content", ["", "[]", "7", "{}", '{"files": 7, "figures": {}}', "[" * 100_000, "\xff"])
def test_a_damaged_record_is_no_record(tmp_path: Path, content: str) -> None:
    assert make(tmp_path) == FIGURES
    assert num_finished(["a"], tmp_path) == 1
    (tmp_path / "a.json").write_bytes(content.encode("latin-1"))
    assert num_finished(["a"], tmp_path) == 0
    assert make(tmp_path) == FIGURES


@pytest.mark.parametrize("name", ["a.txt", "a.used", "a.json"])
def test_a_part_with_another_byte_anywhere_is_made_again(tmp_path: Path, name: str) -> None:
    """One that kept its size used to end in wrong output."""
    make(tmp_path)
    sound = contents_alone(tmp_path)
    path = tmp_path / name
    for place in range(len(sound[name])):
        data = bytearray(sound[name])
        data[place] ^= 1
        path.write_bytes(data)
        assert make(tmp_path) == FIGURES
        assert contents_alone(tmp_path) == sound
    path.write_bytes(bytes(len(sound[name])))
    assert make(tmp_path) == FIGURES
    assert contents_alone(tmp_path) == sound


def test_a_sound_part_is_not_made_again(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "a.used").unlink()
    before = contents(tmp_path)
    assert make(tmp_path, "xyz") == FIGURES
    assert contents(tmp_path) == before


def test_a_damaged_plan_is_another_plan(tmp_path: Path) -> None:
    parts = SegmentParts(tmp_path / "segmented.parts")
    parts.begin({"sources": []})
    kept = parts.path / "kept"
    kept.touch()
    parts.begin({"sources": []})
    assert kept.exists()
    parts.plan.write_text("{")
    parts.begin({"sources": []})
    assert not kept.exists()
