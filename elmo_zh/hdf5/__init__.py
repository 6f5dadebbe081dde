"""Create HDF5 files without crashing on a full disk, recognise them, and read untrusted ones in another process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py


@contextmanager
def create_hdf5(path: Path, **options: Any) -> Iterator[Any]:
    """Yield a new HDF5 file that raises OSError on a full disk, where HDF5's own file driver would crash."""
    with path.open("w+b") as raw, h5py.File(raw, "w", **options) as file:
        yield file


def has_attributes(path: Path, names: set[str]) -> bool:
    """Return whether a file is a readable HDF5 file with these root attributes."""
    try:
        with h5py.File(path, "r") as file:
            return names.issubset(file.attrs)
    except OSError:
        return False
