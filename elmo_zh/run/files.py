"""Digests, and files that appear whole or not at all."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from elmo_zh.errors import OutputError

UNFINISHED = ".unfinished"


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content as "sha256:<64 hex digits>"."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a path to write a file or folder at; it takes the place of `path` only if the block ends well.

    The name in use meanwhile ends in `.unfinished`; one that a killed process left behind is replaced.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + UNFINISHED)
    replaced = path.with_name(f"{path.name}.replaced{UNFINISHED}")
    remove(unfinished)
    _give_back(replaced, path)
    try:
        yield unfinished
        _sync(unfinished)
        if path.is_dir():
            # A folder cannot take the place of another in one step, but a half-removed one must never stand there.
            path.rename(replaced)
        unfinished.replace(path)
    finally:
        remove(unfinished)
        _give_back(replaced, path)


@contextmanager
def written_once(path: Path) -> Iterator[Path]:
    """Yield a path of its own to write a file at; it takes the place of `path` only if the block ends well.

    Unlike with `atomic_path` several processes may do so at the same time, on one machine or more: whoever ends last
    stays, so all should write the same.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}{UNFINISHED}")
    try:
        yield unfinished
        _sync(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _give_back(replaced: Path, path: Path) -> None:
    """Put a folder back that was moved aside for one that never came; remove it if that one is there."""
    if replaced.exists() and not path.exists():
        replaced.rename(path)
    else:
        remove(replaced)


def _sync(path: Path) -> None:
    """Force a file's, or a folder's files', content to disk, so that a power cut leaves no empty file behind."""
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, if it is there; a folder vanishes at once, not file by file."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    doomed = path
    if not path.name.endswith(UNFINISHED):
        doomed = path.with_name(path.name + UNFINISHED)
        remove(doomed)
        path.rename(doomed)
    shutil.rmtree(doomed)


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON, atomically."""
    with atomic_path(path) as unfinished:
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        # Names of files may hold bytes that are no UTF-8, for which Python has halves of characters: JSON spells them.
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")


def place(path: Path, other: Path) -> None:
    """Give a file a second name, as a copy where the file system knows no second names."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, other)


def write_json_once(path: Path, value: Any) -> None:
    """Write a value as JSON, as `written_once` does."""
    with written_once(path) as unfinished:
        unfinished.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def locked(path: Path, refusal: str) -> Iterator[None]:
    """Hold a lock file for this process; the lock ends with the process, however that ends.

    The file is removed at the end, so whoever opened it just before that holds a lock that no one else would see.
    On Windows, which has no such locks, nothing is held.

    Raises:
        OutputError: With `refusal` if another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(refusal) from None
        if not (path.exists() and path.samefile(f"/dev/fd/{file.fileno()}")):
            raise OutputError(refusal)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
