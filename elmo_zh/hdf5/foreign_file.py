"""An untrusted HDF5 file as the rest of the program sees it: its structure, and its arrays of floats."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.foreign import Found, read_foreign
from elmo_zh.hdf5.readers import describe, name_attributes

# Maximum number of names for one dataset.
_MOST_NAMES = 2


@dataclass(frozen=True, eq=False)
class ForeignFile:
    """An untrusted HDF5 file, read in another process.

        file = ForeignFile.open(path, {"softmax/b": (30_000,)})
        bias = file.read_array("softmax/b", (30_000,))

    Attributes:
        members: Names at the top level of the file.
        names: Names of all its datasets, with non-UTF-8 bytes escaped.
        datasets: Descriptions of the datasets that can be read, by name.
    """

    path: Path
    members: frozenset[str]
    names: Sequence[str]
    datasets: Mapping[str, Mapping[str, Any]]
    _found: Found

    @classmethod
    def open(cls, path: Path, arrays: Mapping[str, Sequence[int | None]] | None = None) -> "ForeignFile":
        """Read a file's structure, and the numbers in the datasets with the given shapes; None matches any size."""
        found = read_foreign(describe, path, arrays=dict(arrays or {}))
        fields = found.fields
        return cls(path, frozenset(fields["members"]), fields["names"], fields["datasets"], found)

    def check_arrays(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raise BundleError unless the file itself holds floats of these shapes, in datasets with one or two names."""
        names = Counter[int]()
        for name, shape in shapes.items():
            self._check_array(name, shape)
            address = self.datasets[name]["address"]
            names[address] += 1
            if names[address] > _MOST_NAMES:
                raise BundleError(
                    f"{self.path}: more than {_MOST_NAMES} names refer to dataset {name}. Export the model again."
                )

    def _check_array(self, name: str, shape: tuple[int, ...]) -> None:
        found = self.datasets.get(name)
        if found is None:
            raise BundleError(f"{self.path}: dataset {name} is missing. Copy or export all files of the model again.")
        found_shape = None if found["shape"] is None else tuple(found["shape"])
        if found_shape != shape or found["kind"] != "f":
            kind = f"{found['dtype']} of shape {found_shape} instead of float32 of shape {shape}"
            raise BundleError(f"{self.path}: {name} is {kind}. Copy or export all files of the model again.")
        if not found["holds_its_data"]:
            size = f"{found['stored_bytes']} of {found['num_bytes']} bytes"
            raise BundleError(f"{self.path}: the data of {name} is incomplete ({size}). Copy or export the file again.")

    def read_array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Read one dataset of a known shape, like `read_arrays`."""
        return dict(self.read_arrays({name: shape}))[name]

    def read_arrays(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield datasets that were requested when opening; raise BundleError unless they are complete and finite."""
        self.check_arrays(shapes)
        for name in shapes:
            with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite
                array = np.asarray(self._found.array(str(self.datasets[name]["address"])), np.float32)
            if not np.isfinite(array).all():
                raise BundleError(
                    f"{self.path}: {name} contains infinite or NaN values. Copy or export the file again."
                )
            yield name, array


def has_attributes(path: Path, names: set[str]) -> bool:
    """Return whether a file is a readable HDF5 file with these root attributes."""
    try:
        found = read_foreign(name_attributes, path)
    except BundleError:
        return False
    return names <= set(found.fields["attributes"])
