"""Read HDF5 files that may be a stranger's in a process of their own, as they can corrupt memory in the HDF5 library.

Every file that came with a model counts as a stranger's, also an installed model's: no record beside a file
proves where it comes from. Only files in the work folders of this program are read directly.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmo_zh import errors
from elmo_zh.errors import BundleError, UnsafeFileError
from elmo_zh.hdf5.messages import BrokenMessageError, EndedStreamError, Message, read_message

# The most time for opening a file and for reading each piece of it; the use of the pieces does not count.
MOST_SECONDS = 60.0
# The most address space: pieces of a file take some MiB.
MOST_BYTES = 1 << 32
# Exit statuses of the process.
TOO_SLOW, CRASHED = 3, 4
# Exit statuses of a process that can read one file only, and of one that had nothing to do for too long.
_ENDED = {0, -getattr(signal, "SIGALRM", 0)}
# Isolated from the environment and from the current folder, but with the same packages.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from elmo_zh.hdf5.reader_process import serve; serve()"
# No threads, which a copy would lack, and no filters from folders of the system.
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "HDF5_PLUGIN_PRELOAD": "::",
}
# A process whose stream has ended is about to end.
_ENDING_SECONDS = 10
_UNSAFE = "Do not use it; get it again from a source that you trust."


def start_reader() -> None:
    """Start the process, if none is waiting, so that it is ready when the first file is read."""
    if not _waiting():
        _waiting().append(_Process())


def read_foreign(
    reader: Callable[..., Iterator[Message]], path: Path, *, seconds: float = MOST_SECONDS, **arguments: Any
) -> Iterator[Message]:
    """Yield what a reader of HDF5 files yields, which runs in another process.

    Args:
        reader: A function of a module that imports neither torch nor much else. It is called with the path and the
            arguments, and may raise ElmoZhError.
        path: The file.
        seconds: The most time for each message.
        arguments: Values that JSON can hold.

    Raises:
        UnsafeFileError: If the file makes the process crash, or exceed its limits.
        BundleError: If the file is damaged.
    """
    request = {
        "module": reader.__module__,
        "function": reader.__name__,
        "folder": str(Path.cwd()),
        "path": str(path),
        "seconds": seconds,
        "arguments": arguments,
    }
    process, message = _ask(request, path)
    try:
        while "end" not in message.fields:
            yield message
            message = process.read(path)
    except BaseException:
        process.stop()
        raise
    _waiting().append(process)
    _explain_end(message.fields, path)


def _ask(request: dict[str, Any], path: Path) -> tuple["_Process", Message]:
    """Return the process that reads the file, and its first message."""
    while True:
        process = _take_process()
        try:
            process.send(request)
            return process, read_message(process.answers, MOST_BYTES)
        except (EndedStreamError, OSError):
            if (status := process.wait()) not in _ENDED:
                raise _explain_status(status, path) from None
        except BrokenMessageError:
            raise _explain_status(process.stop(), path) from None
        except BaseException:
            process.stop()
            raise


def _take_process() -> "_Process":
    """Return an idle process, or start one."""
    try:
        return _waiting().pop()
    except IndexError:  # not asked before: another thread may take the last one meanwhile
        return _Process()


class _Process:
    """A running process, which reads one file at a time."""

    def __init__(self) -> None:
        utf8 = ["-X", "utf8"] if sys.flags.utf8_mode else []
        self._process = subprocess.Popen(  # noqa: S603 - the same Python, and no words of a user
            [sys.executable, "-I", *utf8, "-c", _PROGRAM, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0 if hasattr(os, "killpg") else None,
            env={**os.environ, **_ENVIRONMENT},
        )
        # Not collected as garbage before it is stopped, whatever becomes of the exception that ends its use.
        _running.add(self)

    @property
    def answers(self) -> Any:
        """The stream of its messages."""
        return self._process.stdout

    def send(self, request: dict[str, Any]) -> None:
        """Ask it to read a file."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def read(self, path: Path) -> Message:
        """Return its next message.

        Raises:
            UnsafeFileError: If the process has ended without one.
        """
        try:
            return read_message(self.answers, MOST_BYTES)
        except EndedStreamError:
            raise _explain_status(self.wait(), path) from None
        except BrokenMessageError:
            raise _explain_status(self.stop(), path) from None

    def wait(self) -> int:
        """Wait for a process whose stream has ended, and return its exit status."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_ENDING_SECONDS)
        return self.stop()

    def stop(self) -> int:
        """End the process and its copy, and return its exit status: its own if it has ended by itself."""
        _running.discard(self)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        if process.poll() is None and hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()
        process.stdout.close()
        with suppress(OSError):
            process.stdin.close()
        return process.wait()


_running: set[_Process] = set()
# Processes that wait for a file, by the process that started them: a fork inherits this, but cannot use them too.
_processes: dict[int, list[_Process]] = {}


def _waiting() -> list[_Process]:
    return _processes.setdefault(os.getpid(), [])


@atexit.register
def _stop_all() -> None:
    for process in _waiting():
        process.stop()
    _waiting().clear()


def _explain_end(fields: dict[str, Any], path: Path) -> None:
    """Raise the exception that the last message of a file reports, if any."""
    end = fields["end"]
    if end == "refused":
        raise getattr(errors, fields["error"])(*fields["messages"])
    if end == "too large":
        raise UnsafeFileError(f"{path} needs more than {MOST_BYTES >> 30} GiB of memory to be read. {_UNSAFE}")
    if end == "damaged":
        raise BundleError(f"{path} cannot be read as HDF5 ({fields['problem']}). Copy or export it again.")
    if end == "failed":
        raise RuntimeError(f"the reader of {path} failed:\n{fields['problem']}")


def _explain_status(status: int, path: Path) -> UnsafeFileError:
    """Return the error for a process that ended while it read a file."""
    if status == 1:
        raise RuntimeError(f"the process that reads {path} did not start; its messages are above")
    what = "takes too long to be read" if status == TOO_SLOW else "makes the HDF5 library crash"
    return UnsafeFileError(f"{path} {what}: it is damaged, or made to do harm. {_UNSAFE}")
