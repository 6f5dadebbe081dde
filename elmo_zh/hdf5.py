"""Writing HDF5 so that a full disk is an error and not a crash."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py


@contextmanager
def create_hdf5(path: Path, **options: Any) -> Iterator[Any]:
    """Yield a new HDF5 file that is written through a Python file.

    HDF5's own file driver cannot close a file on a disk without room, and the process then dies in its exit code;
    through Python the same failure is an OSError.

    Args:
        path: Where; a file there is replaced.
        options: Of h5py.File.
    """
    with path.open("w+b") as raw, h5py.File(raw, "w", **options) as file:
        yield file
