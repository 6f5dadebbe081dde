"""The readers of shards, which run in the process that reads foreign files: shards come from other machines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.formats import hdf5_packed
from elmo_zh.embed.line_blocks import Contents, LineBlock
from elmo_zh.embed.shard_digest import digest_start
from elmo_zh.hdf5.checks import own_dataset
from elmo_zh.hdf5.messages import Message

# The root attribute that makes a packed file a shard.
SHARD_ATTRIBUTE = "shard"
_MOST_ATTRIBUTES = 100


def find_digest(path: Path) -> Iterator[Message]:
    """Yield one message: whether the file is a shard, and the place of its digest. Little of the file is touched."""
    with h5py.File(path, "r") as file:
        yield Message({"is_shard": SHARD_ATTRIBUTE in file.attrs, "digest_start": digest_start(file)})


def describe_shard(path: Path) -> Iterator[Message]:
    """Yield one message: the attributes and the datasets of a shard.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: If it is not as `embed` writes it.
    """
    with h5py.File(path, "r") as file:
        vectors = own_dataset(file, "vectors")
        yield Message(
            {
                "attributes": _attributes(file),
                "datasets": [name for name in ("character_offsets", "line", "text") if name in file],
                "shape": vectors.shape,
                "dtype": vectors.dtype.name,
            }
        )


def _attributes(file: Any) -> dict[str, Any]:
    """Return the root attributes as JSON can hold them: text, numbers, lists of numbers."""
    if len(file.attrs) > _MOST_ATTRIBUTES:
        raise ValueError(f"it has more than {_MOST_ATTRIBUTES} attributes")
    found = {}
    for name, value in file.attrs.items():
        plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
        numbers = plain if isinstance(plain, list) else [0.0]
        if not isinstance(plain, str | bool | int | float | list) or any(type(x) is not float for x in numbers):
            raise ValueError(f"attribute {name} is neither text nor numbers")
        if isinstance(plain, str):
            plain.encode()  # h5py reads bytes that are not UTF-8 as lone surrogates, which no output can hold.
        found[name] = plain
    return found


def check_shard(path: Path, contents: dict[str, Any]) -> Iterator[Message]:
    """Yield one empty message if a file holds what its description says.

    Args:
        path: The shard.
        contents: The fields of its `Contents`.

    Raises:
        KeyError, ValueError: If it does not.
    """
    with h5py.File(path, "r") as file:
        hdf5_packed.check_shapes(file, Contents(**contents))
    yield Message({})


def read_shard(path: Path, num_lines: int, num_tokens: int) -> Iterator[Message]:
    """Yield the lines of a shard as `hdf5_packed.iter_pieces` does; `piece_of` turns a message back into lines."""
    for piece, is_full in hdf5_packed.iter_pieces(path, num_lines, num_tokens):
        yield _message_of(piece, is_full=is_full)


def _message_of(piece: LineBlock | None, *, is_full: bool) -> Message:
    if piece is None:
        return Message({"is_full": is_full, "first_line": None})
    arrays: dict[str, NDArray[Any]] = {"line_offsets": piece.line_offsets, "unknown": piece.unknown}
    arrays |= {"vectors": piece.vectors, **_packed("tokens", piece.tokens)}
    if piece.character_offsets is not None:
        arrays["character_offsets"] = piece.character_offsets
    if piece.source_lines is not None:
        arrays["source_lines"] = piece.source_lines
    if piece.texts is not None:
        arrays |= _packed("texts", piece.texts)
    fields = {"is_full": is_full, "first_line": piece.first_line, "is_pooled": piece.is_pooled, "names": list(arrays)}
    return Message(fields, list(arrays.values()))


def _packed(name: str, strings: list[bytes]) -> dict[str, NDArray[Any]]:
    """Return strings as two arrays: their lengths, and all their bytes."""
    lengths = np.array([len(string) for string in strings], np.int64)
    return {f"{name} lengths": lengths, name: np.frombuffer(b"".join(strings), np.uint8)}


def piece_of(message: Message) -> LineBlock | None:
    """Return the lines of a message of `read_shard`; None if it has none."""
    fields = message.fields
    if fields["first_line"] is None:
        return None
    arrays = dict(zip(fields["names"], message.arrays, strict=True))
    return LineBlock(
        first_line=fields["first_line"],
        line_offsets=arrays["line_offsets"],
        tokens=_unpacked("tokens", arrays),
        unknown=arrays["unknown"],
        character_offsets=arrays.get("character_offsets"),
        source_lines=arrays.get("source_lines"),
        texts=_unpacked("texts", arrays) if "texts" in arrays else None,
        vectors=arrays["vectors"],
        is_pooled=fields["is_pooled"],
    )


def _unpacked(name: str, arrays: dict[str, NDArray[Any]]) -> list[bytes]:
    data = arrays[name].tobytes()
    ends = np.cumsum(arrays[f"{name} lengths"]).tolist()
    return [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
