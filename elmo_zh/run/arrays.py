"""Read and write arrays so that no disk error goes unnoticed.

NumPy does not use Python's file objects: `np.fromfile` mistakes a failed read for the end of the file, and `tofile`
does not notice if the last bytes do not fit on the disk. `np.load` and `np.save` call these two for ordinary files.
"""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray


def read_numbers(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Return the numbers in a file that contains nothing else, as a read-only array of shape (n,)."""
    return np.frombuffer(path.read_bytes(), dtype)


def write_numbers(path: Path, numbers: NDArray[Any]) -> None:
    """Write the bytes of an array to a file, and nothing else."""
    path.write_bytes(numbers.tobytes())


def save_npy(path: Path, array: NDArray[Any]) -> None:
    """Write an .npy file in C order; for an array in C order, the bytes are the same as from `np.save`."""
    with path.open("wb") as file:
        write_header(file, array.dtype, array.shape)
        file.write(np.ascontiguousarray(array).data)


def load_npy(path: Path) -> NDArray[Any]:
    """Read an .npy file into memory."""
    return np.asarray(np.load(BytesIO(path.read_bytes()), allow_pickle=False))


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to an .npz file."""
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz file into memory."""
    with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as file:
        return dict(file)


def write_header(file: BinaryIO, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    """Write the header of an .npy file."""
    described = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})


class ArrayWriter:
    """An .npy file to append rows to; not memory-mapped, so that a full disk raises an error.

    The whole array has shape (n,), (n, D) or (L, n, D). Without a shape, it has one axis and grows until `finish`.
    """

    def __init__(self, file: BinaryIO, dtype: DTypeLike, *shape: int) -> None:
        self._file, self._dtype, self._shape, self.num_rows = file, np.dtype(dtype), shape or (0,), 0
        write_header(file, dtype, self._shape)
        self._start = file.tell()

    def append(self, rows: NDArray[Any]) -> None:
        """Append rows of the file's dtype, along the second axis if they have three axes, otherwise the first."""
        assert rows.dtype == self._dtype, rows.dtype
        for number, part in enumerate(rows if rows.ndim == 3 else ()):
            first_row = number * self._shape[1] + self.num_rows
            self._file.seek(self._start + first_row * self._shape[2] * self._dtype.itemsize)
            self._file.write(np.ascontiguousarray(part).data)
        if rows.ndim < 3:
            self._file.write(np.ascontiguousarray(rows).data)
        self.num_rows += rows.shape[1] if rows.ndim == 3 else len(rows)

    def finish(self) -> None:
        """Write the number of rows of a growing array into the header, where NumPy leaves room for it."""
        self._file.seek(0)
        write_header(self._file, self._dtype, (self.num_rows,))
