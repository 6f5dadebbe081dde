"""Read untrusted HDF5 files in a separate process, because they can corrupt memory inside the HDF5 library.

Every file that came with a model is untrusted, even if the model is installed: no record beside a file proves where it
comes from. For each file a process starts, copies its numbers to a temporary file, and ends (`reader_process.py`).
"""

import errno
import json
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import BundleError, UnsafeFileError
from elmo_zh.hdf5.reader_process import KINDS, MOST_COMPRESSION
from elmo_zh.language import _

# A file may take so many seconds, and one more for so many bytes.
MOST_SECONDS, _BYTES_PER_SECOND = 60.0, 5 << 20
# A copy may take so many bytes, and `MOST_COMPRESSION` times the size of the file.
_ALWAYS_ALLOWED_BYTES, _MOST_HEADER_BYTES = 1 << 26, 1 << 24
# Isolated from the environment and from the current folder, but with the same packages.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from elmo_zh.hdf5.reader_process import main; main({})"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, eq=False)
class ForeignFile:
    """The datasets of an untrusted HDF5 file, by name: floats, strings, and what the others are."""

    path: Path
    arrays: Mapping[str, tuple[int, str, tuple[int, ...]]]  # Start in the copy, dtype and shape
    strings: Mapping[str, Sequence[str]]
    others: Mapping[str, str]
    _copy: mmap.mmap

    @classmethod
    def open(cls, path: Path) -> "ForeignFile":
        """Read a file; raise BundleError if that fails, and UnsafeFileError if it ends the process that reads it."""
        if not path.is_file():
            raise _unreadable(path, _("it is not a file"))
        with tempfile.TemporaryFile() as copy:
            try:
                status = _run(path, copy)
                if not status:
                    return cls._of_copy(path, copy)
            except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError, AttributeError, RecursionError):
                status = -1  # the library changed what the process does
        if status == errno.ENOSPC:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())
        message = _("{path} makes the HDF5 library crash, take too long or return unusable data. Do not use this file.")
        raise UnsafeFileError(message.format(path=path))

    @classmethod
    def _of_copy(cls, path: Path, copy: IO[bytes]) -> "ForeignFile":
        """Check sizes before memory is taken."""
        copy.seek(0)
        header = json.loads(copy.readline(_MOST_HEADER_BYTES))
        if "problem" in header:
            raise _unreadable(path, str(header["problem"]))
        end, arrays = copy.tell(), {}
        for name, (kind, shape) in header["arrays"].items():
            arrays[name] = end, KINDS[KINDS.index(kind)], tuple(map(int, shape))
            end += np.dtype(kind).itemsize * prod(map(int, shape))
        if end != copy.seek(0, os.SEEK_END):
            raise ValueError("the sizes do not match")
        numbers = mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)  # the file is there as long as this
        return cls(path, arrays, dict(header["strings"]), dict(header["others"]), numbers)

    def names(self) -> set[str]:
        """Return the names of all datasets, with non-UTF-8 bytes escaped."""
        return self.arrays.keys() | self.strings.keys() | self.others.keys()

    def has_group(self, group: str) -> bool:
        """Return whether there are datasets in a group at the top level, or one of its name."""
        return any(name.partition("/")[0] == group for name in self.names())

    def check_arrays(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise BundleError unless the file holds floats of these shapes."""
        for name, expected in shapes.items():
            kind, shape = self.arrays[name][1:] if name in self.arrays else ("", None)
            if shape != expected:
                there = self.others.get(name, "text" if name in self.strings else "missing")
                there = f"{np.dtype(kind)} of shape {shape}" if kind else there
                message = _(
                    "{path}: dataset {name} is {there}; expected floats of shape {expected}. Copy or export all files"
                    " of the model again."
                )
                raise BundleError(message.format(path=self.path, name=name, there=there, expected=expected))

    def read_array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Read one dataset of a known shape, like `read_arrays`."""
        return dict(self.read_arrays({name: shape}))[name]

    def read_arrays(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield datasets of known shapes; raise BundleError unless they are complete and finite."""
        self.check_arrays(shapes)
        for name, shape in shapes.items():
            start, kind = self.arrays[name][:2]
            with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite
                array = np.frombuffer(self._copy, kind, prod(shape), start).reshape(shape).astype(np.float32)
            if not np.isfinite(array).all():
                message = _("{path}: {name} contains infinite or NaN values. Copy or export the file again.")
                raise BundleError(message.format(path=self.path, name=name))
            yield name, array


def _run(path: Path, copy: IO[bytes]) -> int:
    """Copy a file in a process with limits; return the exit status."""
    size = path.stat().st_size
    program = _PROGRAM.format(_ALWAYS_ALLOWED_BYTES + MOST_COMPRESSION * size)
    with path.open("rb") as source:
        return subprocess.run(  # noqa: S603 - the same Python, and no words of a user
            [sys.executable, "-I", "-c", program, *sys.path],
            stdin=source,
            stdout=copy,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD},
            timeout=MOST_SECONDS + size / _BYTES_PER_SECOND,
            check=False,
        ).returncode


def _unreadable(path: Path, problem: str) -> BundleError:
    message = _("{path} cannot be read as HDF5 ({problem}). Copy or export it again.")
    return BundleError(message.format(path=path, problem=problem))
