"""Locks, so that only one process at a time writes an output or works on a run; they end with their process.

A run has its lock inside. The lock of an output is in a folder for the user's temporary files, under a name made from
the output's path, so that nothing beside the output is touched; other users and other machines do not see it.
"""

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmo_zh.errors import OutputError
from elmo_zh.language import _


def output_lock(output: Path) -> Path:
    """Return the path of an output's lock; create its folder."""
    folder = Path(tempfile.gettempdir()) / f"elmo-zh-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        message = _("{folder} is not a folder of yours. Name another folder for temporary files: TMPDIR=FOLDER")
        raise OutputError(message.format(folder=folder))
    return folder / f"{hashlib.sha256(os.fsencode(output.resolve())).hexdigest()}.lock"


@contextmanager
def locked(path: Path, refusal: str) -> Iterator[None]:
    """Hold a lock file during the block; raise OutputError with `refusal` if another process holds it.

    The file is removed at the end. A process that opened it just before that would lock a file that no other process
    can see, so it is refused too. A file that is not an empty one is somebody else's, and is left alone.
    """
    import fcntl  # which not every system has

    descriptor = _open(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size:
            raise _not_ours(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(refusal) from None
        if not (path.exists() and os.path.samestat(path.stat(), status)):
            raise OutputError(refusal)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise not_writable(path.parent) from None
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _not_ours(path) from None
        raise


def _not_ours(path: Path) -> OutputError:
    return OutputError(_("{path} is not a lock of elmo-zh, which needs this name. Move it away.").format(path=path))


def not_writable(folder: Path) -> OutputError:
    """Return the error for a folder in which nothing can be written."""
    message = _("{folder} is not writable. Change its permissions, or choose another folder.")
    return OutputError(message.format(folder=folder))


def is_locked(path: Path) -> bool:
    """Return whether a process currently holds a lock file."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
