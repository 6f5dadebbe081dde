"""Read untrusted HDF5 files in a separate process, because they can corrupt memory inside the HDF5 library.

Every file that came with a model is untrusted, even if the model is installed: no record beside a file proves where it
comes from. For each file, a process (`reader_process.py`) reports where the floats are, copies those that are stored in
chunks or in a rare type to a temporary file, and ends.
"""

import mmap
import os
import subprocess
import sys
import tempfile
from math import prod
from pathlib import Path
from typing import IO, Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.reader_process import MOST_COMPRESSION
from elmo_zh.language import _

# Reading a file may take this many seconds, plus one for each `_BYTES_PER_SECOND` bytes.
MOST_SECONDS, _BYTES_PER_SECOND = 60.0, 5 << 20
# A copy may take this many bytes, plus `MOST_COMPRESSION` times the size of the file; its first line, this many.
_ALWAYS_ALLOWED_BYTES, _MOST_HEADER_BYTES = 1 << 26, 1 << 24
# Isolated from the environment and from the current folder, but with the same packages; `site` would only take time.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from reader_process import main; main({})"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


_Size = Annotated[int, Meta(ge=0, lt=1 << 60)]


class _Array(Struct):
    """A dataset's shape, dtype and byte offset: in the untrusted file or, if copied, after the copy's first line."""

    shape: tuple[_Size, ...]
    dtype: Literal["<f2", "<f4"]
    is_copied: bool
    start: _Size

    @property
    def end(self) -> int:
        return self.start + prod(self.shape) * np.dtype(self.dtype).itemsize


class _Header(Struct):
    """The places of a file's floats, the values of its strings and the types of the rest, or why it cannot be read."""

    arrays: dict[str, _Array] = {}
    strings: dict[str, list[str]] = {}
    others: dict[str, str] = {}
    problem: str = ""


class ForeignFile:
    """The datasets of an untrusted HDF5 file by name: shapes of floats, values of strings, and types of the rest."""

    def __init__(self, path: Path) -> None:
        """Read a file; raise BundleError if it is missing or damaged, or if reading it crashes or takes too long."""
        self.path = path
        if not path.is_file():
            raise BundleError.missing(path)
        with path.open("rb") as source, tempfile.TemporaryFile() as copy:
            header = self._read(source, copy)
        if header.problem:
            raise BundleError.damaged(path, header.problem)
        self.shapes = {name: array.shape for name, array in header.arrays.items()}
        self._numbers: dict[tuple[bool, int, tuple[int, ...]], NDArray[np.float32]] = {}
        self.strings, self._arrays, self._others = header.strings, header.arrays, header.others

    def _read(self, source: IO[bytes], copy: IO[bytes]) -> _Header:
        """Have another process describe the file, and check the sizes before memory is allocated."""
        try:
            size = os.fstat(source.fileno()).st_size
            status = _run(source, size, copy)
            copy.seek(0)
            header = msgspec.json.decode(copy.readline(_MOST_HEADER_BYTES), type=_Header)
            self._copy_start = copy.tell()
            copy_size = copy.seek(0, os.SEEK_END) - self._copy_start
            arrays = header.arrays.values()
            if status or any(array.end > (copy_size if array.is_copied else size) for array in arrays):
                raise ValueError
        except (subprocess.TimeoutExpired, ValueError):
            return _Header(problem=_("it makes the HDF5 library crash or take too long, and may be unsafe"))
        self._copy = mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)  # the copy is there as long as this
        return header

    def names(self) -> set[str]:
        """Return the names of all datasets that hard links lead to."""
        return {*self.shapes, *self.strings, *self._others}

    def has_group(self, group: str) -> bool:
        """Return whether a group at the top level contains datasets, or a dataset has its name."""
        return any(name.partition("/")[0] == group for name in self.names())

    def require_array(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise BundleError unless a dataset holds floats of this shape."""
        if self.shapes.get(name) != shape:
            there = self._others.get(name, "text" if name in self.strings else "missing")
            there = f"floats of shape {self.shapes[name]}" if name in self.shapes else there
            raise BundleError.damaged(self.path, f"dataset {name} is {there}; expected floats of shape {shape}")

    def read_array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Return a dataset; raise BundleError unless it holds floats of this shape, complete and finite.

        Two names of one dataset, such as the two tables of a tied softmax, share an array if the floats are not in the
        copy.
        """
        self.require_array(name, shape)
        place = self._arrays[name]
        key = (place.is_copied, place.start, shape)
        if key not in self._numbers:
            numbers = self._read_numbers(place)
            if not np.isfinite(numbers).all():
                raise BundleError.damaged(self.path, f"{name} has numbers that are not finite")
            self._numbers[key] = numbers.reshape(shape)
        return self._numbers[key]

    def _read_numbers(self, place: _Array) -> NDArray[np.float32]:
        if place.is_copied:
            start, count = self._copy_start + place.start, prod(place.shape)
            return np.frombuffer(self._copy, place.dtype, count, start).astype(np.float32)
        numbers = np.empty(prod(place.shape), place.dtype)
        with self.path.open("rb") as file:
            file.seek(place.start)
            if file.readinto(numbers.view(np.uint8).data) < numbers.nbytes:
                raise BundleError.damaged(self.path, "it has become shorter")
        return numbers.astype(np.float32, copy=False)


def _run(source: IO[bytes], size: int, copy: IO[bytes]) -> int:
    """Describe and copy a file of `size` bytes in a process with limits; return the exit status."""
    program = _PROGRAM.format(_ALWAYS_ALLOWED_BYTES + MOST_COMPRESSION * size)
    return subprocess.run(  # noqa: S603 - the same Python, and no words of a user
        [sys.executable, "-I", "-S", "-c", program, str(Path(__file__).parent), *sys.path],
        stdin=source,
        stdout=copy,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_ONE_THREAD},
        timeout=MOST_SECONDS + size / _BYTES_PER_SECOND,
        check=False,
    ).returncode
