"""Read untrusted HDF5 files in a separate process, because they can corrupt memory inside the HDF5 library.

Every file that came with a model is untrusted, even if the model is installed: no record beside a file proves where it
comes from. Only files in the work folders of this program are read directly. For each file a process starts, sends what
it has read as safetensors, and ends (`reader_process.py`).
"""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from elmo_zh import errors
from elmo_zh.errors import BundleError, UnsafeFileError

# Called with the path and further arguments, in the process that reads; yields once, with its file open, values that
# JSON can hold and arrays by name. It may raise ElmoZhError, and its module imports neither torch nor much else.
Reader = Callable[..., Iterator[tuple[dict[str, Any], Mapping[str, Any]]]]

# Maximum time for opening a file, and for reading each piece of it.
MOST_SECONDS = 60.0
# Maximum address space; pieces of a file take some MiB.
MOST_BYTES = 1 << 32
# The process may send this many times the size of the file, which no compressed weights reach, and some names.
MOST_COMPRESSION, _ALWAYS_ALLOWED_BYTES = 100, 1 << 26
_MOST_ERROR_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
# Isolated from the environment and from the current folder, but with the same packages.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from elmo_zh.hdf5.reader_process import main; main()"
# HDF5 loads no filters from system folders.
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "HDF5_PLUGIN_PRELOAD": "::",
}
_UNSAFE = "Do not use the file; get a new copy from a source that you trust."


@dataclass(frozen=True, eq=False)
class Found:
    """The results of reading a file: values that JSON can represent, and arrays by name."""

    fields: dict[str, Any]
    _path: Path

    def __post_init__(self) -> None:
        # The arrays stay in a file until nobody needs them.
        weakref.finalize(self, self._path.unlink, missing_ok=True)

    def array(self, name: str) -> NDArray[Any]:
        """Read one of the arrays by its name."""
        with safe_open(self._path, "np") as tensors:
            found: NDArray[Any] = tensors.get_tensor(name)
            return found


def read_foreign(reader: Reader, path: Path, *, seconds: float = MOST_SECONDS, **arguments: Any) -> Found:
    """Run a reader on an HDF5 file in another process, and return its results.

    It raises UnsafeFileError if the reader crashes or is too slow, and passes on the errors that the reader raises.
    """
    request = {
        "module": reader.__module__,
        "function": reader.__name__,
        "path": str(path),
        "seconds": seconds,
        "arguments": arguments,
    }
    descriptor, name = tempfile.mkstemp(".safetensors", "elmo-zh-")
    try:
        with os.fdopen(descriptor, "wb") as spool:
            status, told = _run(request, spool, path)
        if told:
            raise _explain(told, path)
        if status:
            raise _explain_status(status, path)
        return Found(_fields(Path(name), path), Path(name))
    except BaseException as error:
        Path(name).unlink()
        if isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC):
            error.filename = name  # the system does not name the file being written
        raise


def _fields(kept: Path, path: Path) -> dict[str, Any]:
    """Return the values that the process sent; raise UnsafeFileError if it sent anything else."""
    try:
        with safe_open(kept, "np") as tensors:
            return dict(json.loads(tensors.metadata()["fields"]))
    except (SafetensorError, ValueError, TypeError, KeyError):
        raise _explain_status(-1, path) from None


def _run(request: dict[str, Any], spool: IO[bytes], path: Path) -> tuple[int, str]:
    """Run the process and collect its output; return its exit status and its error report."""
    allowed = _ALWAYS_ALLOWED_BYTES + MOST_COMPRESSION * (path.stat().st_size if path.is_file() else 0)
    utf8 = ["-X", "utf8"] if sys.flags.utf8_mode else []
    process = subprocess.Popen(  # noqa: S603 - the same Python, and no words of a user
        [sys.executable, "-I", *utf8, "-c", _PROGRAM, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **_ENVIRONMENT},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(request).encode())
        while piece := process.stdout.read(_PIECE_BYTES):
            allowed -= len(piece)
            if allowed < 0:
                return -1, ""
            spool.write(piece)
        spool.flush()
        told = process.stderr.read(_MOST_ERROR_BYTES).decode("utf-8", "replace")
        return process.wait(), told
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _explain(told: str, path: Path) -> Exception:
    try:
        error = json.loads(told)
        if error["kind"] == "refused":
            kind: type[Exception] = getattr(errors, error["error"])
            return kind(*map(str, error["messages"]))
        if error["kind"] == "damaged":
            return BundleError(f"{path} cannot be read as HDF5 ({error['problem']}). Copy or export it again.")
        if error["kind"] == "too large":
            needed = f"takes more than {MOST_BYTES >> 30} GiB of memory to read"
            return UnsafeFileError(f"{path} {needed}. {_UNSAFE}")
    except (ValueError, TypeError, KeyError, AttributeError):
        pass  # a traceback
    return RuntimeError(f"reading {path} failed:\n{told}")


def _explain_status(status: int, path: Path) -> UnsafeFileError:
    """Return the error for a process that ended while it read a file."""
    is_late = status == -getattr(signal, "SIGALRM", 0)
    what = "takes too long to read" if is_late else "makes the HDF5 library crash or return unusable data"
    return UnsafeFileError(f"{path} {what} and may be damaged or malicious. {_UNSAFE}")
