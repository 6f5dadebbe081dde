"""Checks of a stranger's HDF5 file: nothing outside it is touched, and sizes are known before memory is taken."""

from pathlib import Path
from typing import Any

import h5py

from elmo_zh.errors import BundleError

_DEEPEST = 32
_MOST_OBJECTS = 10_000
# More than random float32 numbers can ever be compressed: a larger dataset claims data that it does not hold.
_MOST_COMPRESSION = 100
_SMALL_BYTES = 1 << 20


def dataset_names(file: Any, path: Path) -> list[str]:
    """Return the names of all datasets that hard links lead to, so that nothing outside the file is touched.

    Bytes in a name that are not UTF-8 are escaped.

    Args:
        file: The open file, perhaps a stranger's.
        path: Its path, for errors.

    Raises:
        BundleError: If groups are nested too deep, or there are too many of them.
    """
    found: list[str] = []
    seen = {h5py.h5o.get_info(file.id).addr}
    waiting: list[tuple[str, int, Any]] = [("", 0, file)]
    num_links = 0
    while waiting:
        prefix, depth, group = waiting.pop()
        num_links += len(group)
        if num_links > _MOST_OBJECTS:
            raise _unsafe(path, f"holds more than {_MOST_OBJECTS:,} groups and datasets")
        if depth == _DEEPEST and len(group):
            raise _unsafe(path, f"has groups nested deeper than {_DEEPEST} levels")
        for name in group.id:
            if group.id.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                continue
            # Names may be any bytes; h5py's objects open only those in UTF-8.
            member = h5py.h5o.open(group.id, name)
            member_name = prefix + shown_name(name)
            if isinstance(member, h5py.h5d.DatasetID):
                found.append(member_name)
            elif isinstance(member, h5py.h5g.GroupID) and (address := h5py.h5o.get_info(member).addr) not in seen:
                seen.add(address)
                waiting.append((f"{member_name}/", depth + 1, h5py.Group(member)))
    return sorted(found)


def shown_name(name: bytes) -> str:
    """Return a name, with bytes that are not UTF-8 escaped."""
    return name.decode("utf-8", "backslashreplace")


def own_dataset(file: Any, name: str) -> Any:
    """Return a dataset that is reached without links, which may lead out of the file.

    Raises:
        KeyError: If there is none.
    """
    group = file
    for part in name.split("/"):
        if not isinstance(group, h5py.Group) or not isinstance(group.get(part, getlink=True), h5py.HardLink):
            raise KeyError(name)
        group = group[part]
    if not isinstance(group, h5py.Dataset):
        raise KeyError(name)
    return group


def holds_its_data(dataset: Any) -> bool:
    """Return whether the data of a dataset is in the file itself, and as much as its shape says."""
    stored = dataset.id.get_storage_size()
    held = stored if dataset.compression is None else max(stored * _MOST_COMPRESSION, _SMALL_BYTES)
    return not dataset.external and not dataset.is_virtual and held >= dataset.nbytes


def _unsafe(path: Path, problem: str) -> BundleError:
    return BundleError(f"{path} {problem}, which no model needs. It is not safe.")
