"""`inspect` of a small run made by hand."""

import errno
from pathlib import Path
from typing import Any

import pytest

from elmo_zh.inspection import Shown, inspect_run
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import SilentReporter


class Warnings(SilentReporter):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def warn(self, message: str) -> None:
        self.told.append(message)


def test_a_run_that_cannot_be_written_is_shown_without_its_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, reporter = RunDir(tmp_path), Warnings()
    run.segmented.mkdir()
    (run.segmented / "train-00000.txt").write_text("我 爱 北京 。\n他 也 爱 北京 。\n", encoding="utf-8")

    def refuse(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "coverage.png.unfinished")

    monkeypatch.setattr(inspect_run, "save_picture", refuse)
    found = inspect_run.inspect_run(run, Shown(num_samples=1, num_tokens=3), reporter)
    assert found["text"]["tokens"] == 9
    assert found["coverage_picture"] == ""
    assert reporter.told == [f"{run.coverage_picture} cannot be written (Permission denied), so it is not drawn."]
