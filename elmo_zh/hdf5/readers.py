"""Functions that read datasets of untrusted files, touching nothing else and checking sizes before using memory."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py

from elmo_zh.errors import BundleError
from elmo_zh.hdf5.foreign import MOST_COMPRESSION

_DEEPEST = 32
_MOST_OBJECTS = 10_000
_MOST_ATTRIBUTES = 1000
_SMALL_BYTES = 1 << 20

Answer = Iterator[tuple[dict[str, Any], Mapping[str, Any]]]


def describe(path: Path, arrays: Mapping[str, Sequence[int | None]]) -> Answer:
    """Yield the names and datasets of a file and, by address, the requested arrays with floats of the right shapes."""
    with h5py.File(path, "r") as file:
        names = dataset_names(file, path)
        datasets = {name: described for name in names if (described := _describe(file, name))}
        wanted = {
            str(datasets[name]["address"]): own_dataset(file, name)
            for name, shape in arrays.items()
            if name in datasets and _is_sound(own_dataset(file, name), shape)
        }
        members = [shown_name(name) for name in file.id]
        yield {"names": names, "members": members, "datasets": datasets}, wanted


def name_attributes(path: Path) -> Answer:
    """Yield the names of the root attributes. The file may have any number of datasets."""
    with h5py.File(path, "r") as file:
        if len(file.attrs) > _MOST_ATTRIBUTES:
            raise ValueError(f"it has more than {_MOST_ATTRIBUTES:,} attributes")
        # h5py's own list of names fails for names that are not UTF-8.
        names = [h5py.h5a.open(file.id, index=index).name for index in range(len(file.attrs))]
        yield {"attributes": [shown_name(name) for name in names]}, {}


def _describe(file: Any, name: str) -> dict[str, Any] | None:
    """Return a description of a dataset, or None if h5py cannot represent its name or type."""
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
    }


def _is_sound(dataset: Any, shape: Sequence[int | None]) -> bool:
    """Return whether a dataset has floats of this shape and actually holds them."""
    found = dataset.shape
    is_same = found is not None and len(found) == len(shape)
    fits = is_same and all(size in (None, own) for size, own in zip(shape, found, strict=True))
    return fits and dataset.dtype.str[1:] in ("f2", "f4", "f8") and holds_its_data(dataset)


def dataset_names(file: Any, path: Path) -> list[str]:
    """Return the names of all datasets reached through hard links, so that nothing outside the file is touched."""
    found: list[str] = []
    seen = {h5py.h5o.get_info(file.id).addr}
    waiting: list[tuple[str, int, Any]] = [("", 0, file)]
    num_links = 0
    while waiting:
        prefix, depth, group = waiting.pop()
        num_links += len(group)
        if num_links > _MOST_OBJECTS:
            raise _unsafe(path, f"contains more than {_MOST_OBJECTS:,} groups and datasets")
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
    """Return a name, escaping any bytes that are not valid UTF-8."""
    return name.decode("utf-8", "backslashreplace")


def own_dataset(file: Any, name: str) -> Any:
    """Return a dataset reached by hard links alone, since other links may leave the file; otherwise raise KeyError."""
    group = file
    for part in name.split("/"):
        if not isinstance(group, h5py.Group) or not isinstance(group.get(part, getlink=True), h5py.HardLink):
            raise KeyError(name)
        group = group[part]
    if not isinstance(group, h5py.Dataset):
        raise KeyError(name)
    return group


def holds_its_data(dataset: Any) -> bool:
    """Return whether the file itself holds all the data that the dataset's shape calls for."""
    stored = dataset.id.get_storage_size()
    held = stored if dataset.compression is None else max(stored * MOST_COMPRESSION, _SMALL_BYTES)
    return not dataset.external and not dataset.is_virtual and held >= dataset.nbytes


def _unsafe(path: Path, problem: str) -> BundleError:
    return BundleError(f"{path} {problem}, which no model needs. Do not use the file.")
