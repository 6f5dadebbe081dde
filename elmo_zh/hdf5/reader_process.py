"""The process that reads one untrusted HDF5 file, with limits and without torch.

Standard input is the file. Standard output becomes one line of JSON, which describes the file or the problem with it,
and then the numbers of its arrays. A file that makes the HDF5 library crash, allocate or loop ends this process only.
"""

import errno
import json
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

import h5py
import numpy as np

MOST_BYTES = 1 << 32  # of address space; pieces of a file take some MiB
MOST_COMPRESSION, _SMALL_BYTES = 100, 1 << 20  # of a dataset: no weights are compressed so much, but zeros may be
_MOST_LINKS, _MOST_ATTRIBUTES, _MOST_NAMES = 10_000, 1000, 2  # a tied table has two names
_PIECE_BYTES = 1 << 24
KINDS = ("<f2", "<f4", "<f8")


def main(most_bytes: int, with_datasets: bool) -> None:
    """Copy the file within limits. From here on it opens no file, so nothing can be written or loaded."""
    str(np.dtype("f4"))  # NumPy imports what it needs
    limits = {resource.RLIMIT_FSIZE: most_bytes, resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 3}
    if sys.platform != "darwin":  # where each process has hundreds of GB of addresses
        limits[resource.RLIMIT_AS] = MOST_BYTES
    for limit, value in limits.items():
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    with open(0, "rb", closefd=False) as source, open(1, "w+b", closefd=False) as output:
        copy(source, output, with_datasets)


def copy(source: BinaryIO, output: BinaryIO, with_datasets: bool) -> None:
    """Write the description and the arrays of an HDF5 file, or else the problem with it."""
    try:
        with h5py.File(source, "r") as file:
            datasets = dict(_datasets(file)) if with_datasets else {}
            _write(output, _attributes(file), datasets)
        return
    except MemoryError:
        problem = f"it takes more than {MOST_BYTES >> 30} GiB of memory"
    except Exception as error:  # h5py raises any error for damaged files
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise SystemExit(errno.ENOSPC) from None
        problem = " ".join(str(error).split())[:500]
    output.seek(0)
    output.truncate()
    output.write(json.dumps({"problem": problem}).encode() + b"\n")


def _write(output: BinaryIO, attributes: list[str], datasets: dict[str, Any]) -> None:
    num_names = Counter(h5py.h5o.get_info(dataset.id).addr for dataset in datasets.values())
    others: dict[str, str] = {}
    strings: dict[str, list[str]] = {}
    arrays: dict[str, Any] = {}
    for name, dataset in datasets.items():
        if problem := _find_problem(dataset, num_names[h5py.h5o.get_info(dataset.id).addr]):
            others[name] = problem
        elif h5py.check_string_dtype(dataset.dtype):
            strings[name] = np.ravel(dataset.asstr(errors="backslashreplace")[()]).tolist()
        elif dataset.ndim and _kind(dataset) in KINDS:
            arrays[name] = dataset
        else:
            others[name] = f"{dataset.dtype} of shape {dataset.shape}"
    described = {name: (_kind(dataset), dataset.shape) for name, dataset in arrays.items()}
    found = {"attributes": attributes, "strings": strings, "others": others, "arrays": described}
    output.write(json.dumps(found).encode() + b"\n")
    for dataset in arrays.values():
        step = max(1, _PIECE_BYTES * len(dataset) // max(1, dataset.nbytes))
        for first in range(0, len(dataset) if dataset.size else 0, step):
            output.write(np.ascontiguousarray(dataset[first : first + step], _kind(dataset)).data)
    output.flush()


def _kind(dataset: Any) -> str:
    return str(dataset.dtype.newbyteorder("<").str)


def _find_problem(dataset: Any, num_names: int) -> str:
    """Return why a dataset cannot be read: it must be known to h5py, and the file itself must hold all its data."""
    try:
        num_bytes = dataset.nbytes if dataset.shape is not None else 0
    except TypeError:
        return "of an unknown type"
    stored = dataset.id.get_storage_size()
    held = stored if dataset.compression is None else max(stored * MOST_COMPRESSION, _SMALL_BYTES)
    if dataset.external or dataset.is_virtual or held < num_bytes:
        return f"incomplete ({stored} of {num_bytes} bytes)"
    if dataset.shape is None:
        return "empty"
    return f"one of {num_names} names of a dataset" if num_names > _MOST_NAMES else ""


def _datasets(file: Any) -> Iterator[tuple[str, Any]]:
    """Yield the datasets that hard links lead to, so that nothing outside the file is touched."""
    is_hard: dict[bytes, bool] = {}  # names may be any bytes

    def see(name: bytes, link: Any) -> bool | None:
        is_hard[name] = link.type == h5py.h5l.TYPE_HARD
        return len(is_hard) > _MOST_LINKS or None  # None goes on

    if file.id.links.visit(see, info=True):
        raise ValueError(f"it has more than {_MOST_LINKS:,} groups and datasets, which no model needs")
    for name in sorted(name for name in is_hard if is_hard[name]):
        member = h5py.h5o.open(file.id, name)
        if isinstance(member, h5py.h5d.DatasetID):
            yield _shown(name), h5py.Dataset(member)


def _attributes(file: Any) -> list[str]:
    """Return the names of the root attributes; h5py's own list fails for names that are not UTF-8."""
    num_attributes = min(h5py.h5a.get_num_attrs(file.id), _MOST_ATTRIBUTES)
    return [_shown(h5py.h5a.open(file.id, index=index).name) for index in range(num_attributes)]


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
