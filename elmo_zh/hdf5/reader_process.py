"""The process that reads one untrusted HDF5 file, with limits and without torch.

Standard input is the file. Standard output becomes one line of JSON, which describes the datasets or the problem with
them, and then the numbers of the arrays. A file that makes the HDF5 library crash, allocate or loop ends this process
only.
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
_MOST_LINKS, _MOST_NAMES = 10_000, 2  # a tied table has two names
_PIECE_BYTES = 1 << 24
KINDS = ("<f2", "<f4", "<f8")


def main(most_bytes: int) -> None:
    """Copy the file within limits. From here on it opens no file, so nothing can be written or loaded."""
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
    """Write the description and the arrays of an HDF5 file, or else the problem with it."""
    try:
        with h5py.File(source, "r") as file:
            _write(output, dict(_datasets(file)))
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


def _datasets(file: Any) -> Iterator[tuple[str, Any]]:
    """Yield the datasets that hard links lead to, so that nothing outside the file is touched."""
    is_hard: dict[bytes, bool] = {}  # names may be any bytes

    def see(name: bytes, link: Any) -> bool | None:
        is_hard[name] = link.type == h5py.h5l.TYPE_HARD
        return len(is_hard) > _MOST_LINKS or None  # None goes on

    if file.id.links.visit(see, info=True):
        raise ValueError(f"it has more than {_MOST_LINKS:,} groups and datasets, which no model needs")
    num_names = Counter[int]()
    for name in sorted(name for name in is_hard if is_hard[name]):
        member = h5py.h5o.open(file.id, name)
        if isinstance(member, h5py.h5d.DatasetID):
            num_names[address := h5py.h5o.get_info(member).addr] += 1
            if num_names[address] > _MOST_NAMES:
                raise ValueError(f"a dataset has more than {_MOST_NAMES} names")
            yield name.decode("utf-8", "backslashreplace"), h5py.Dataset(member)


def _write(output: BinaryIO, datasets: dict[str, Any]) -> None:
    sections: dict[str, dict[str, Any]] = {"arrays": {}, "strings": {}, "others": {}}
    for name, dataset in datasets.items():
        section, content = _describe(dataset)
        sections[section][name] = content
    output.write(json.dumps(sections).encode() + b"\n")
    for name, (kind, _) in sections["arrays"].items():
        dataset = datasets[name]
        step = max(1, _PIECE_BYTES * len(dataset) // max(1, dataset.nbytes))
        for first in range(0, len(dataset) if dataset.size else 0, step):
            output.write(np.ascontiguousarray(dataset[first : first + step], kind).data)
    output.flush()


def _describe(dataset: Any) -> tuple[str, Any]:
    """Return the section for a dataset, and what stands there: dtype and shape, the strings, or what else it is."""
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
    kind = str(dataset.dtype.newbyteorder("<").str)
    if dataset.ndim and kind in KINDS:
        return "arrays", (kind, dataset.shape)
    return "others", f"{dataset.dtype} of shape {dataset.shape}"
