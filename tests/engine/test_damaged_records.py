"""Damaged records of finished tasks: the tasks run again."""

from pathlib import Path

import pytest

from elmo_zh.engine.parts import num_finished
from elmo_zh.segmenting.work_dir import SegmentParts

SOUND = '{"sizes": {"a.txt": 3}, "figures": {"lines": 1}}'


@pytest.mark.parametrize(
    "content", ["", SOUND[:-9], "[]", "7", "{}", '{"sizes": 7, "figures": {}}', "[" * 100_000, "\xff"]
)
def test_a_damaged_record_is_no_record(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.txt").write_text("abc")
    record = tmp_path / "a.json"
    record.write_text(SOUND)
    assert num_finished(["a"], tmp_path) == 1
    record.write_bytes(content.encode("latin-1"))
    assert num_finished(["a"], tmp_path) == 0


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
