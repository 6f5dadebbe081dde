"""Read and write arrays so that no error of the disk goes unnoticed.

NumPy does not use Python's file objects: `np.fromfile` takes a failed read for the end of the file, and `tofile` does
not notice if its last bytes do not fit on the disk. `np.load` and `np.save` call these two for ordinary files.
"""

from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray


def read_numbers(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Return the numbers of a file that holds nothing else, a read-only array of shape (n,)."""
    return np.frombuffer(path.read_bytes(), dtype)


def write_numbers(path: Path, numbers: NDArray[Any]) -> None:
    """Write the bytes of an array, and nothing else, into a new file."""
    path.write_bytes(numbers.tobytes())


def save_npy(path: Path, array: NDArray[Any]) -> None:
    """Write an .npy file in C order; for an array in C order these are the bytes of `np.save`."""
    with path.open("wb") as file:
        write_header(file, array.dtype, array.shape)
        file.write(np.ascontiguousarray(array).data)


def load_npy(path: Path) -> NDArray[Any]:
    """Read an .npy file into memory."""
    return np.asarray(np.load(BytesIO(path.read_bytes()), allow_pickle=False))


def write_header(file: BinaryIO, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    """Write the header of an .npy file."""
    described = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})
