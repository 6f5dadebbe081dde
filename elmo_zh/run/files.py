"""Compute the digests of files, write files and folders atomically, and claim outputs."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from elmo_zh.errors import OutputError
from elmo_zh.language import _
from elmo_zh.run.disk_space import full_disk_error, is_full_disk, system_error_number
from elmo_zh.run.locks import locked, not_writable, output_lock

# The suffixes of half-written files and folders, and of the folder from which a command resumes.
UNFINISHED, PARTS = ".unfinished", ".parts"
# The end of the name of an old folder that was moved aside for a new one; and of any temporary name.
_REPLACED = f".replaced{UNFINISHED}"
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}(\.replaced)?\.unfinished$")
# The paths that the running command reads, and the outputs that it has claimed. Python calls note nothing, since a
# later call may replace a file that an earlier one has read.
_NOTED: ContextVar[tuple[list[Path], dict[Path, str]] | None] = ContextVar("noted", default=None)


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file's content as "sha256:<64 hex digits>"."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def file_stamp(path: Path) -> list[str | int]:
    """Return a file's name, size and modification time, which tell whether it changed without reading it."""
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns]


@contextmanager
def inputs_noted(inputs: Iterable[Path]) -> Iterator[None]:
    """Prevent outputs in the block from replacing inputs: the given paths, and those registered by `note_input`."""
    token = _NOTED.set((list(inputs), {}))
    try:
        yield
    finally:
        _NOTED.reset(token)


def note_input(path: Path) -> None:
    """Register that the running command reads a file or folder; raise OutputError if it also writes there."""
    inputs, outputs = _NOTED.get() or ([], {})
    inputs.append(path)
    for output, option in outputs.items():
        require_no_input(output, [path], _("Choose another {option}.").format(option=option))


def require_no_input(output: Path, inputs: Iterable[Path], advice: str = "") -> None:
    """Raise OutputError if writing an output would replace an input: the same file, a link to it, or its folder.

    Inputs are the given paths and those that the running command has noted. The unfinished work is beside the output,
    and must not replace an input either.
    """
    _require_replaceable_kind(output)
    replaced = [path for path in (output, output.with_name(output.name + PARTS)) if path.exists()]
    noted = (_NOTED.get() or ([], {}))[0]
    for source in filter(Path.exists, (*inputs, *noted) if replaced else ()):
        for path in replaced:
            real_path, real_source = path.resolve(), source.resolve()
            is_inside = path.is_file() and real_source in real_path.parents
            if path.samefile(source) or real_path in real_source.parents or is_inside:
                message = _("{path} would replace {source}, which this command reads. {advice}")
                advice = advice or _("Choose another {option}.").format(option="--output")
                raise OutputError(message.format(path=path, source=source, advice=advice))


def _require_replaceable_kind(path: Path) -> None:
    if path.exists() and not (path.is_file() or path.is_dir()):
        message = _("{path} is a device, a pipe or a socket, not a file. Choose another output.")
        raise OutputError(message.format(path=path))


def require_regular_files(folder: Path) -> None:
    """Raise OutputError if a folder contains a pipe, a device or a socket: opening it could wait forever."""
    for path in folder.rglob("*"):
        if path.exists() and not (path.is_file() or path.is_dir()):
            message = _("{path} is a device, a pipe or a socket, not a file. Delete it.")
            raise OutputError(message.format(path=path))


def folder_bytes(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder, not counting links; 0 if it does not exist."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def make_folder(path: Path) -> None:
    """Create a folder and its parents, unless they exist, so that a later power cut does not lose them."""
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

    It removes anything that a killed process left, so only one process at a time may write the same path.
    """
    _require_replaceable_kind(path)
    make_folder(path.parent)
    for left_over in _left_over(path):
        _restore(left_over, path) if left_over.name.endswith(_REPLACED) else remove(left_over)
    unfinished = temporary_path(path)
    replaced = temporary_path(path, _REPLACED)
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


@contextmanager
def written_once(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file, which replaces `path` only if the block succeeds.

    Unlike with `atomic_path`, several processes on any machines may write the same file at the same time. The last one
    wins, so all should write the same content.
    """
    make_folder(path.parent)
    unfinished = temporary_path(path)
    try:
        with full_disk_named(path, unfinished):
            yield unfinished
            _sync(unfinished)
            unfinished.replace(path)
            sync_folder(path.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def temporary_path(path: Path, suffix: str = UNFINISHED) -> Path:
    """Return a path beside this one that nobody else uses."""
    return path.with_name(f"{path.name}.{uuid4().hex}{suffix}")


def final_name(name: str) -> str:
    """Return the name that a file or folder with a temporary name is to have; other names stay as they are."""
    return _TEMPORARY.sub("", name)


def _left_over(path: Path) -> list[Path]:
    """Return what killed processes left when they wrote or removed a path."""
    siblings = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    return [other for other in siblings if other.name != path.name and final_name(other.name) == path.name]


@contextmanager
def full_disk_named(path: Path, unfinished: Path) -> Iterator[None]:
    """Turn a full-disk error into one that names the output and its size; also name a file that is too large."""
    try:
        yield
    except Exception as error:
        if not is_full_disk(error):
            # The file exceeds a limit of the file system or of ulimit -f, and the system does not name it.
            if system_error_number(error) == errno.EFBIG and getattr(error, "filename", None) is None:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path)) from error
            raise
        raise full_disk_error(path, folder_bytes(unfinished)) from error


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
        for left_over in _left_over(path):
            remove(left_over)


def write_json(path: Path, value: Any) -> None:
    """Write a value as human-readable JSON, atomically."""
    with atomic_path(path) as unfinished:
        text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        # File names may hold bytes that are not UTF-8, which Python represents as lone surrogates: write their escapes.
        unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_json(path: Path, kind: Any = Any) -> Any:
    """Return the value in a JSON file; raise ValueError unless it is JSON in UTF-8 of this type (see msgspec)."""
    if path.exists() and not path.is_file():
        raise ValueError("it is not a regular file")  # a pipe would be waited for
    return msgspec.convert(parse_json(path.read_text(encoding="utf-8")), kind)


def parse_json(text: str, parse: Callable[[str], Any] = json.loads) -> Any:
    """Return the value in JSON of any origin; raise ValueError if it is not JSON or is nested too deeply."""
    try:
        return parse(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _own_digest(record: Mapping[str, Any]) -> str:
    content = {name: value for name, value in record.items() if name != "digest"}
    return f"sha256:{hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}"


def read_sealed(path: Path) -> dict[str, Any]:
    """Return a record that `sealed` made, from its file; raise ValueError if it is damaged."""
    record = read_json(path)
    if not isinstance(record, dict) or record.get("digest") != _own_digest(record):
        raise ValueError("its digest does not match its content")
    return record


def sealed(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as it will be read back from JSON, with a digest of itself, so that damage is noticed."""
    record = json.loads(json.dumps(value))
    return {**record, "digest": _own_digest(record)}


def link_or_copy(path: Path, other: Path) -> None:
    """Give a file a second name with a hard link, or copy it where the file system has no hard links."""
    try:
        other.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, other)


@contextmanager
def claimed_output(
    output: Path,
    inputs: Iterable[Path],
    is_own: Callable[[Path], bool],
    *,
    force: bool,
    names: tuple[str, str] = ("--output", "--force"),
) -> Iterator[None]:
    """Claim an output for this process; raise OutputError if it is also an input, or exists and `force` is not set.

    Only an output for which `is_own` is true is replaced. `names` are the caller's names for the output and `force`.
    """
    gaps = {"path": output, "option": names[0], "force": names[1]}
    if output.is_dir() and not is_own(output):
        message = _("{path} is a folder with content that this command did not create. Choose another {option}.")
        raise OutputError(message.format(**gaps))
    require_no_input(output, inputs, _("Choose another {option}.").format(**gaps))
    claimed = (_NOTED.get() or ([], {}))[1]
    if output.resolve() in map(Path.resolve, claimed):
        message = _("Two outputs have the name {path}. Choose another name for one of them.")
        raise OutputError(message.format(**gaps))
    make_folder(output.parent)
    if not os.access(output.parent, os.W_OK):
        raise not_writable(output.parent)
    refusal = _("{path} is in use by another elmo-zh process. Wait until that process ends.")
    with locked(output_lock(output), refusal.format(**gaps)):
        for left_over in _left_over(output.with_name(output.name + PARTS)):
            remove(left_over)  # by a command that was killed while it removed its parts
        if output.exists() and not force:
            message = _("{path} already exists. Choose another {option}, or add {force} to replace it.")
            raise OutputError(message.format(**gaps))
        if output.exists() and not is_own(output):
            message = _("{path} was not created by this command, so it is not replaced. Choose another {option}.")
            raise OutputError(message.format(**gaps))
        claimed[output] = names[0]
        try:
            yield
        finally:
            del claimed[output]
