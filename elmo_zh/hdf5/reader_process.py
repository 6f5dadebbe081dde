"""The process that reads one untrusted HDF5 file, with limits and without torch.

Standard input is the file. Standard output becomes one line of JSON, which describes the datasets or the problem with
them, and then the floats that are stored in chunks or in a rare type; other floats are read from the file itself. If a
file makes the HDF5 library crash, loop or use up memory, only this process ends.
"""

import json
import resource
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import h5py
import numpy as np

MOST_BYTES = 1 << 32  # of address space
_PLAIN_TYPES = ("<f2", "<f4")
MOST_COMPRESSION, _SMALL_BYTES = 100, 1 << 20  # of a dataset: no weights are compressed so much, but zeros may be


def main(most_bytes: int) -> None:
    """Set limits, then `copy` from standard input to standard output; the process can open no other file."""
    str(np.dtype("f4"))  # NumPy imports what it needs
    limits = {resource.RLIMIT_FSIZE: most_bytes, resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 3}
    if sys.platform != "darwin":  # where each process has hundreds of GB of addresses
        limits[resource.RLIMIT_AS] = MOST_BYTES
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    with open(0, "rb", closefd=False) as source, open(1, "w+b", closefd=False) as output:
        copy(source, output)


def copy(source: BinaryIO, output: BinaryIO) -> None:
    """Write the description of an HDF5 file and the arrays to copy, or else the problem with the file."""
    header: dict[str, Any] = {"arrays": {}, "strings": {}, "others": {}}
    try:
        with h5py.File(source, "r") as file:
            copied_bytes = 0
            for name, dataset in _datasets(file):
                section, content = _describe(dataset, copied_bytes)
                header[section][name] = content
                if section == "arrays" and content["is_copied"]:
                    copied_bytes += 4 * dataset.size
            output.write(json.dumps(header).encode() + b"\n")
            for name in header["arrays"]:
                if header["arrays"][name]["is_copied"]:
                    output.write(np.ascontiguousarray(file[name][()], "<f4").data)
            output.flush()
        return
    except MemoryError:
        problem = f"it takes more than {MOST_BYTES >> 30} GiB of memory"
    except Exception as error:  # h5py raises any error for damaged files
        problem = " ".join(str(error).split())[:500]
    output.seek(0)
    output.truncate()
    output.write(json.dumps({"problem": problem}).encode() + b"\n")


def _datasets(file: Any) -> Iterator[tuple[str, Any]]:
    """Yield each dataset with its name, following only hard links, so that nothing outside the file is touched."""
    names: list[str] = []
    file.visit_links(names.append)
    for name in names:
        if isinstance(file.get(name, getlink=True), h5py.HardLink) and isinstance(dataset := file[name], h5py.Dataset):
            yield name, dataset


def _describe(dataset: Any, copied_bytes: int) -> tuple[str, Any]:
    """Return a dataset's header section and its entry there: the place of its floats, its strings, or a description."""
    try:
        num_bytes = dataset.nbytes
    except TypeError:
        return "others", "empty or of an unknown type"
    # The file itself must hold all data; the library makes up what is missing.
    stored = dataset.id.get_storage_size()
    held = stored if dataset.compression is None else max(stored * MOST_COMPRESSION, _SMALL_BYTES)
    if dataset.external or dataset.is_virtual or held < num_bytes:
        return "others", f"incomplete ({stored} of {num_bytes} bytes)"
    if h5py.check_string_dtype(dataset.dtype):
        return "strings", np.ravel(dataset.asstr(errors="backslashreplace")[()]).tolist()
    if not dataset.ndim or dataset.dtype.kind != "f":
        return "others", f"{dataset.dtype} of shape {dataset.shape}"
    # In contiguous storage, the numbers are in the file as they are in memory.
    start = dataset.id.get_offset() if dataset.dtype.str in _PLAIN_TYPES else None
    if start is not None:
        return "arrays", {"shape": dataset.shape, "dtype": dataset.dtype.str, "is_copied": False, "start": start}
    return "arrays", {"shape": dataset.shape, "dtype": "<f4", "is_copied": True, "start": copied_bytes}
