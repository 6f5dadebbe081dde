"""The digest in a shard: of every byte of the file but its own, so that `merge` joins what `embed` wrote."""

import hashlib
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_zh.run.sealed import Region

_NAME = "digest"
_BYTES = hashlib.sha256().digest_size
_BUFFER_BYTES = 2**20


def create_place(file: Any) -> None:
    """Create the dataset that will hold the digest, of zeros; it is allocated at once."""
    allocated = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    allocated.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    file.create_dataset(_NAME, (_BYTES,), np.uint8, dcpl=allocated)


def digest_start(file: Any) -> int | None:
    """Return the first byte of the digest in an open file; None if it has none."""
    dataset = file.get(_NAME)
    is_place = isinstance(dataset, h5py.Dataset) and (dataset.dtype, dataset.shape) == (np.uint8, (_BYTES,))
    return dataset.id.get_offset() if is_place else None


def digest_region(path: Path) -> Region | None:
    """Return the place of the digest in a file of this program; None if it has none."""
    with h5py.File(path, "r") as file:
        start = digest_start(file)
    return None if start is None else Region(path, start, _BYTES)


def write_digest(path: Path) -> None:
    """Write the digest of a finished file into its place, and not through the HDF5 library: all else stays as it is."""
    region = digest_region(path)
    assert region is not None, path
    digest = _digest(region)
    with path.open("r+b") as file:
        file.seek(region.start)
        file.write(digest)


def is_whole(path: Path, start: int | None) -> bool:
    """Return whether a file holds the digest of its other bytes from a byte on; False if there is no such place."""
    if start is None:
        return False
    with path.open("rb") as file:
        file.seek(start)
        return file.read(_BYTES) == _digest(Region(path, start, _BYTES))


def _digest(region: Region) -> bytes:
    digest = hashlib.sha256()
    with region.path.open("rb") as file:
        left = region.start
        while left and (data := file.read(min(left, _BUFFER_BYTES))):
            digest.update(data)
            left -= len(data)
        file.seek(region.start + region.num_bytes)
        while data := file.read(_BUFFER_BYTES):
            digest.update(data)
    return digest.digest()
