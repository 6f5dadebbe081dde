"""Compute the digests of files, write files and folders atomically, and recognise full disks."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from elmo_zh.errors import FullDiskError, OutputError
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import format_bytes

# The suffixes of half-written files and folders, and of the folder from which a command resumes.
UNFINISHED, PARTS = ".unfinished", ".parts"
# The end of the name of an old folder that was moved aside for a new one; and of any temporary name, including that
# of a path beside a temporary path.
_REPLACED = f".replaced{UNFINISHED}"
_TEMPORARY = re.compile(r"(\.[0-9a-f]{32}(\.replaced)?\.unfinished)+$")
FULL_DISK = N_(
    "{place}the disk is full. Free some space and run the same command again; without --force, finished work is kept."
)
# HDF5 (OSError or RuntimeError), safetensors (SafetensorError) and torch, which maps files (RuntimeError: "unable to
# open file <...> in read-only mode: Input/output error (5)"), give the system's error number only in their text.
_NUMBER_IN_TEXT = re.compile(r"(?:os error |errno = |unable to (?:open|mmap) .*: .*\()(\d+)")


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file's content as "sha256:<64 hex digits>"."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def file_stamp(path: Path) -> list[str | int]:
    """Return a file's name, size and modification time, which reveal most changes without reading the file."""
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns]


def require_regular(*paths: Path) -> None:
    """Raise OutputError if a path is a pipe, a device or a socket: opening it could wait forever."""
    for path in paths:
        if path.exists() and not (path.is_file() or path.is_dir()):
            message = _(
                "{path} is a device, a pipe or a socket, not a file. Choose another path, or delete this one if no"
                " program uses it."
            )
            raise OutputError(message.format(path=path))


def folder_bytes(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder, not counting links; 0 if it does not exist."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def make_folder(path: Path) -> None:
    """Create a folder and any missing parents, which survive a power cut; raise OutputError if one is a file."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        message = _("{path} is a file, but a folder is needed there. Choose another path.")
        raise OutputError(message.format(path=path)) from None
    sync_folder(path.parent)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, which replaces `path` only if the block succeeds.

    It first deletes what a killed process left, or restores the old folder that such a process had moved aside, so only
    one process at a time may write the same path.
    """
    require_regular(path)
    for left_over in _left_over(path):
        _restore(left_over, path) if left_over.name.endswith(_REPLACED) else remove(left_over)
    with written_once(path) as unfinished:
        yield unfinished


@contextmanager
def written_once(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, which replaces `path` only if the block succeeds.

    Unlike with `atomic_path`, several processes, even on different machines, may write one file at the same time. The
    last one wins, so all should write the same content.
    """
    make_folder(path.parent)
    unfinished, replaced = temporary_path(path), temporary_path(path, _REPLACED)
    try:
        with full_disk_named(path, unfinished):
            yield unfinished
            _sync(unfinished)
            if path.is_dir():
                # A folder cannot replace another in one step, but a half-removed one must never have the final name.
                path.rename(replaced)
            unfinished.replace(path)
            sync_folder(path.parent)
    finally:
        remove(unfinished)
        _restore(replaced, path)


def temporary_path(path: Path, suffix: str = UNFINISHED) -> Path:
    """Return a path beside this one that nobody else uses."""
    return path.with_name(f"{path.name}.{uuid4().hex}{suffix}")


def final_name(name: str) -> str:
    """Return the name that a file or folder with a temporary name is to have; other names stay as they are."""
    return _TEMPORARY.sub("", name)


def remove_left_over(path: Path) -> None:
    """Delete what killed processes left when they wrote or removed a path."""
    for other in _left_over(path):
        remove(other)


def _left_over(path: Path) -> list[Path]:
    """Return what killed processes left when they wrote or removed a path."""
    siblings = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    return [other for other in siblings if other.name != path.name and final_name(other.name) == path.name]


def _restore(replaced: Path, path: Path) -> None:
    """Restore a folder that was moved aside for one that was never finished; delete it if the new one is there."""
    if replaced.exists() and not path.exists():
        replaced.rename(path)
    else:
        remove(replaced)


def _sync(path: Path) -> None:
    """Flush the content of a file, or of all files in a folder, to disk, so that a power cut leaves no empty file."""
    if path.is_dir():
        for member in sorted(path.iterdir()):
            _sync(member)
        sync_folder(path)
    else:
        sync_file(path)


def sync_file(path: Path) -> None:
    """Flush the content of a file to disk."""
    with path.open("rb") as opened:
        os.fsync(opened.fileno())


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to disk; without this, a power cut may undo a rename."""
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some network file systems do not support this call.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


def remove(path: Path) -> None:
    """Delete a file, a link or a folder if it exists, and what a killed process left of it.

    A folder is renamed first, so that it vanishes in one step.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    elif path.name.endswith(UNFINISHED):
        shutil.rmtree(path)
    else:
        path.rename(temporary_path(path))
        # After a power cut, the folder must not reappear under its own name with only some of its files.
        sync_folder(path.parent)
    if not path.name.endswith(UNFINISHED):
        remove_left_over(path)


def write_json(path: Path, value: Any) -> None:
    """Write a value as human-readable JSON, atomically."""
    with atomic_path(path) as unfinished:
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        # File names may hold bytes that are not UTF-8, which Python represents as lone surrogates: write their escapes.
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_json(path: Path, kind: Any = Any) -> Any:
    """Return the value in a JSON file; raise ValueError if it is not valid UTF-8 JSON or not a `kind` (see msgspec)."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a regular file")  # a pipe would be waited for
    return msgspec.convert(parse_json(path.read_text(encoding="utf-8")), kind)


def parse_json(text: str, parse: Callable[[str], Any] = json.loads) -> Any:
    """Parse JSON from any source, trusted or not; raise ValueError if it is invalid or nested too deeply."""
    try:
        return parse(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _own_digest(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != "digest"}
    return f"sha256:{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}"


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a record that `sealed` made; raise ValueError if it is damaged."""
    record = read_json(path)
    if not isinstance(record, dict) or record.get("digest") != _own_digest(record):
        raise ValueError("its digest does not match its content")
    return record


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as it will be read back from JSON, with a digest of itself, so that damage is noticed."""
    record = json.loads(json.dumps(value))
    return {**record, "digest": _own_digest(record)}


def link_or_copy(path: Path, other: Path) -> None:
    """Give a file a second name with a hard link, or copy it if that fails."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, other)


# Full disks


def system_error_number(error: Exception) -> int | None:
    """Return the system error number that an exception carries or mentions in its text, or None."""
    if isinstance(error, OSError) and error.errno:
        return error.errno
    match = _NUMBER_IN_TEXT.search(" ".join(str(error).split()))
    return int(match[1]) if match else None


def is_full_disk(error: Exception) -> bool:
    """Return whether an exception says that the disk, or the user's quota on it, is full."""
    return isinstance(error, FullDiskError) or system_error_number(error) in (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def full_disk_named(path: Path, unfinished: Path) -> Iterator[None]:
    """Turn an error about a full disk into one that names the output and the size of what was written."""
    try:
        yield
    except Exception as error:
        if not is_full_disk(error):
            raise
        place = f"{path} ({format_bytes(folder_bytes(unfinished))}): "
        raise FullDiskError(_(FULL_DISK).format(place=place)) from error


def require_disk_space(output: Path, needed_bytes: float, *, advice: str) -> None:
    """Raise OutputError if too little disk space is free; `advice` is what the user can add to the command."""
    folder = next(folder for folder in output.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        message = _("{path} needs {needed} of disk space, but only {free} is free. Free some space, or add: {advice}")
        sizes = {"needed": format_bytes(needed_bytes), "free": format_bytes(free)}
        raise OutputError(message.format(path=output, advice=advice, **sizes))
