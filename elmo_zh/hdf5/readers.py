"""The readers of datasets, which run in the process that reads foreign files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py

from elmo_zh.hdf5.checks import dataset_names, holds_its_data, own_dataset, shown_name
from elmo_zh.hdf5.messages import Message

# Bytes that are read and sent at a time.
_PIECE_BYTES = 1 << 24
_MOST_ATTRIBUTES = 1000


def describe(path: Path) -> Iterator[Message]:
    """Yield one message: names at the top of the file, and the datasets that are in the file itself.

    Raises:
        BundleError: If groups are nested too deep, or there are too many of them.
    """
    with h5py.File(path, "r") as file:
        names = dataset_names(file, path)
        yield Message(
            {
                "names": names,
                "members": [shown_name(name) for name in file.id],
                "datasets": {name: described for name in names if (described := _describe(file, name))},
            }
        )


def name_attributes(path: Path) -> Iterator[Message]:
    """Yield one message: the names of the root attributes. The file may have any number of datasets."""
    with h5py.File(path, "r") as file:
        if len(file.attrs) > _MOST_ATTRIBUTES:
            raise ValueError(f"it has more than {_MOST_ATTRIBUTES:,} attributes")
        # Not as h5py lists them, which fails for names that are not UTF-8.
        names = [h5py.h5a.open(file.id, index=index).name for index in range(len(file.attrs))]
        yield Message({"attributes": [shown_name(name) for name in names]})


def _describe(file: Any, name: str) -> dict[str, Any] | None:
    """Return what is known of a dataset; None for one with a name or a type that h5py cannot express."""
    try:
        dataset = own_dataset(file, name)
        dtype = dataset.dtype
    except (KeyError, TypeError):
        return None
    return {
        "shape": dataset.shape,
        "dtype": str(dtype),
        "kind": dtype.kind,
        "stored_bytes": dataset.id.get_storage_size(),
        "num_bytes": dataset.nbytes,
        "holds_its_data": holds_its_data(dataset),
        "address": h5py.h5o.get_info(dataset.id).addr,
        **_place(dataset),
    }


def _place(dataset: Any) -> dict[str, Any]:
    """Return where the numbers are in the file, and their dtype, if they are stored as they are."""
    offset = dataset.id.get_offset()
    is_plain = offset is not None and dataset.dtype.kind == "f"
    if not is_plain or not dataset.id.get_type().equal(h5py.h5t.py_create(dataset.dtype)):
        return {}
    return {"offset": offset, "stored_dtype": dataset.dtype.str}


def read_arrays(path: Path, names: Sequence[str]) -> Iterator[Message]:
    """Yield datasets in the given order, some rows at a time; none for one without rows. `name` is in each message.

    Raises:
        KeyError: If one is missing.
        ValueError: If one is not in the file as a whole.
    """
    with h5py.File(path, "r") as file:
        for name in names:
            dataset = own_dataset(file, name)
            if not holds_its_data(dataset):
                raise ValueError(f"{name} is not in the file as a whole")
            if not dataset.size:
                continue
            num_rows = dataset.shape[0]
            piece = max(1, _PIECE_BYTES * num_rows // max(1, dataset.nbytes))
            for start in range(0, num_rows, piece):
                yield Message({"name": name}, [dataset[start : start + piece]])
