"""Claim the outputs of commands, lock them, and mark folders with what they are.

Locks end with their process. A run's lock is in its own folder. The lock of any other output is in the user's folder of
locks, in the temporary folder, under a name made from the output's path, so that nothing is written beside the output;
other users and other machines do not see the lock. The mark of a folder, `elmo-zh.json`, records its kind, its format,
what it was made from, and its files (for a run, none).
"""

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.errors import OTHER_DIGEST, OutputError
from elmo_zh.language import N_, _
from elmo_zh.run.files import (
    PARTS,
    file_digest,
    make_folder,
    read_sealed,
    remove_left_over,
    require_regular,
    sealed,
    write_json,
)
from elmo_zh.version import __version__

NOT_REPLACED = N_("{path} was not created by this command, so it is not replaced. Choose another {option}.")
_NOT_WRITABLE = N_("{folder} is not writable. Change its permissions, or choose another folder.")


def require_no_input(output: Path, inputs: Iterable[Path], option: str = "--output") -> None:
    """Raise OutputError if writing an output, which the user names with `option`, would replace an input.

    An output replaces an input if it is the same file, a link to it, a folder that contains it, or a file in a folder
    that is read. The unfinished work is beside the output, and must not replace an input either.
    """
    require_regular(output)
    replaced = [path for path in (output, output.with_name(output.name + PARTS)) if path.exists()]
    for source in filter(os.path.exists, inputs if replaced else ()):
        for path in replaced:
            real_path, real_source = path.resolve(), source.resolve()
            is_inside = path.is_file() and real_source in real_path.parents
            if path.samefile(source) or real_path in real_source.parents or is_inside:
                message = _("{path} would replace {source}, which this command reads. Choose another {option}.")
                raise OutputError(message.format(path=path, source=source, option=option))


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

    Only an empty folder, or an output for which `is_own` is true, may be replaced. `names` are the caller's names for
    the output and `force`.
    """
    gaps = {"path": output, "option": names[0], "force": names[1]}
    require_no_input(output, inputs, names[0])
    if _has_content(output) and not is_own(output):
        raise OutputError(_(NOT_REPLACED).format(**gaps))
    make_folder(output.parent)
    if not os.access(output.parent, os.W_OK):
        raise OutputError(_(_NOT_WRITABLE).format(folder=output.parent))
    with locked(output_lock(output), output):
        remove_left_over(output.with_name(output.name + PARTS))  # by a command that was killed while it removed them
        if _has_content(output) and not force:
            message = _("{path} already exists. Choose another {option}, or add {force} to replace it.")
            raise OutputError(message.format(**gaps))
        yield


def _has_content(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


# Locks


def output_lock(output: Path) -> Path:
    """Return the path of an output's lock, creating the folder of locks."""
    folder = Path(tempfile.gettempdir()) / f"elmo-zh-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OutputError(_(_NOT_WRITABLE).format(folder=folder))
    return folder / f"{hashlib.sha256(os.fsencode(output.resolve())).hexdigest()}.lock"


@contextmanager
def locked(path: Path, what: Path, option: str = "--output") -> Iterator[None]:
    """Hold the lock file of `what` during the block; raise OutputError if another process holds it.

    The file is removed at the end. A process that opened it just before that would lock a file that no other process
    can see, so it is refused too. A file that is not empty or not regular belongs to somebody else: it is left alone,
    and OutputError is raised.
    """
    import fcntl  # which not every system has

    not_ours = _(NOT_REPLACED).format(path=path, option=option)
    in_use = _("{path} is in use by another elmo-zh process. Wait until that process ends.").format(path=what)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise OutputError(not_ours) from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size:
            raise OutputError(not_ours)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(in_use) from None
        if not (path.exists() and os.path.samestat(path.stat(), status)):
            raise OutputError(in_use)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


# Marks

MARK = "elmo-zh.json"
# The folder inside an index where `explore` keeps its results; they may be deleted at any time.
CACHE = "pages"
# Larger files are listed without a digest; an index and a task record the digests of their arrays elsewhere.
_LARGEST_DIGESTED_BYTES = 2**26


@dataclass(frozen=True)
class Kind:
    """A kind of folder: the files that identify one without a mark, and the command, if any, that uses it."""

    files: tuple[str, ...]
    reader: tuple[str, ...] = ()


# A bundle and a model in the layout of another program have no mark: their layouts are published, and bundle.json has
# the digests of the bundle. Indexes, tasks, comparisons, probes and runs of earlier versions have none either.
KINDS = {
    "bundle": Kind(("options.json", "bundle.json"), ("embed", "file.txt", "--model")),
    "run": Kind(("stages",)),
    "index": Kind(("index.json", "occurrences.npy"), ("senses", "WORD", "--index")),
    "task": Kind(("task.json", "*.safetensors"), ("task", "predict", "file.txt", "--task")),
    "comparison": Kind(("comparison.json", "comparison.md")),
    "probe": Kind(("probe.json", "probe.md")),
    "vectors": Kind(("info.json", "vectors.npy")),
    "model": Kind(("options.json", "vocab.txt")),
}


def write_mark(folder: Path, kind: str, number: int, made_from: Mapping[str, Any]) -> None:
    """Mark a folder whose other files are complete, or a new run; `number` is the version of the kind's format."""
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if kind != "run" else []
    digests = {
        path.relative_to(folder).as_posix(): file_digest(path)
        if path.stat().st_size <= _LARGEST_DIGESTED_BYTES
        else None
        for path in files
    }
    mark = {"kind": kind, "format": number, "elmo_zh": __version__, "made_from": dict(made_from), "files": digests}
    write_json(folder / MARK, sealed(mark))


def load_mark(folder: Path) -> dict[str, Any]:
    """Return the mark of a folder, {} if it has none; raise OutputError if it is damaged or its kind is unknown."""
    path = folder / MARK
    if not path.exists():
        return {}
    try:
        mark = read_sealed(path)
    except ValueError as error:
        raise OutputError.damaged(path, error) from None
    if mark["kind"] not in KINDS:
        raise OutputError.of_format(path, mark["kind"])
    return mark


def kind_of(folder: Path) -> str:
    """Return a folder's kind, a key of `KINDS`, or "" if the kind is not recognised."""
    if mark := load_mark(folder):
        return str(mark["kind"])
    return next((name for name, kind in KINDS.items() if all(any(folder.glob(file)) for file in kind.files)), "")


def require_unchanged(path: Path) -> None:
    """Raise OutputError if a file's digest differs from the one in its folder's mark, if there is a mark."""
    mark = load_mark(path.parent)
    if mark and file_digest(path) != mark["files"].get(path.name):
        raise OutputError.damaged(path, _(OTHER_DIGEST).format(name=MARK))


def changed_files(folder: Path, digests: Mapping[str, str | None]) -> list[str]:
    """Return the names in `digests` whose files in a folder are missing or differ; None matches any digest."""
    return [
        name
        for name, digest in digests.items()
        if not (folder / name).is_file() or digest not in (None, file_digest(folder / name))
    ]


def written_as(kind: str) -> Callable[[Path], bool]:
    """Return a function that says whether a folder is of this kind and may be replaced.

    It raises OutputError if the folder has files that its mark does not list, since replacing it would delete them.
    """

    def is_own(folder: Path) -> bool:
        if kind_of(folder) != kind:
            return False
        there = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
        written = {MARK, *load_mark(folder).get("files", {})}
        if others := sorted({path.as_posix() for path in there if path.parts[0] != CACHE} - written):
            raise OutputError(_(NOT_REPLACED).format(path=folder / others[0], option="--output"))
        return True

    return is_own
