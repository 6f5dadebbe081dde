"""Records that know when they, or the bytes that they vouch for, are damaged."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elmo_zh.run.files import own_digest, read_json, sealed, write_json
from elmo_zh.run.work_folder import Region

__all__ = ["Region"]

_BUFFER_BYTES = 2**20


def write_sealed(path: Path, value: Mapping[str, Any], regions: Iterable[Region] = ()) -> None:
    """Write a record as JSON, atomically, with a digest of itself and one of some bytes.

    Args:
        path: Path of the record.
        value: The record; its names are none of "regions", "content" and "digest".
        regions: The bytes, in files in the folder of the record or below.
    """
    folder = path.parent
    named = [(str(region.path.relative_to(folder)), region.start, region.num_bytes) for region in regions]
    content = {"regions": named, "content": _content_digest(folder, named)} if named else {}
    write_json(path, sealed({**value, **content}))


def read_sealed(path: Path) -> dict[str, Any]:
    """Return a record without its digests."""
    record = _read(path)
    return {name: value for name, value in record.items() if name not in ("regions", "content")}


def has_its_content(path: Path) -> bool:
    """Return whether a record is sound, and the bytes that it vouches for are as they were."""
    try:
        record = _read(path)
        return not record.get("regions") or _content_digest(path.parent, record["regions"]) == record["content"]
    except (FileNotFoundError, ValueError):
        return False


def _read(path: Path) -> dict[str, Any]:
    record = read_json(path)
    if not isinstance(record, dict) or record.get("digest") != own_digest(record):
        raise ValueError(f"{path} is damaged")
    del record["digest"]
    return record


def _content_digest(folder: Path, regions: Iterable[tuple[str, int, int]]) -> str:
    digest = hashlib.sha256()
    for name, start, num_bytes in regions:
        with (folder / name).open("rb") as file:
            file.seek(start)
            while num_bytes and (data := file.read(min(num_bytes, _BUFFER_BYTES))):
                digest.update(data)
                num_bytes -= len(data)
    return f"sha256:{digest.hexdigest()}"
