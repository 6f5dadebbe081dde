"""Locks: one process at a time, and nothing that is not ours is touched."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from contract.command_line import contents_alone
from messages import message_of

from elmo_zh.errors import OutputError
from elmo_zh.run.files import atomic_path
from elmo_zh.run.outputs import claimed_output, locked, output_lock


def hold(path: Path) -> None:
    with locked(path, path):
        pass


def test_a_lock_is_held_by_one_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    for _ in range(2):
        with locked(path, path):
            assert message_of(OutputError, lambda: hold(path)).startswith(f"{path} is in use by another")
        assert list(tmp_path.iterdir()) == []


def content(path: Path) -> None:
    path.write_text("a user's own", encoding="utf-8")


def link(path: Path) -> None:
    content(path.with_name("target"))
    path.symlink_to("target")


@pytest.mark.parametrize("make", [content, link, os.mkfifo, Path.mkdir])
def test_what_is_no_lock_of_ours_is_refused_and_left_alone(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / ".lock"
    make(path)
    before = contents_alone(tmp_path)
    assert str(path) in message_of(OutputError, lambda: hold(path))
    assert contents_alone(tmp_path) == before
    assert path.exists()


def test_outputs_by_any_name_have_one_lock_and_nothing_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert output_lock(tmp_path / "out") == output_lock(tmp_path / "link" / "out") != output_lock(tmp_path / "other")
    for name in ("out.lock", "out.unfinished", "out.replaced.unfinished"):
        content(tmp_path / name)
    before = contents_alone(tmp_path)
    with claimed_output(tmp_path / "out", [], Path.is_file, force=False):
        assert output_lock(tmp_path / "out").exists()
        assert contents_alone(tmp_path) == before
        with atomic_path(tmp_path / "out") as unfinished:
            content(unfinished)
    assert contents_alone(tmp_path) == {**before, "out": b"a user's own"}
    assert not output_lock(tmp_path / "out").exists()


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "other").mkdir()
    (tmp_path / f"elmo-zh-{os.getuid()}").symlink_to("other")
    assert "is not writable" in message_of(OutputError, lambda: output_lock(Path("out")))


def test_a_folder_that_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def claim() -> None:
        with claimed_output(tmp_path / "out", [], Path.is_file, force=False):
            pass

    monkeypatch.setattr(os, "access", lambda *_: False)
    assert str(tmp_path) in message_of(OutputError, claim)
