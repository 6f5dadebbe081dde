"""Messages from the process that reads foreign HDF5 files: JSON and the bytes of arrays, no pickle.

A message is the length of its JSON (8 bytes, little-endian), the JSON object, and the arrays, C-contiguous, one after
the other. The object has `fields`, and `arrays`: the dtype and the shape of each.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

# Far more than the tokens of golden sentences, or the names of all datasets of a model, take.
_MOST_HEADER_BYTES = 1 << 26
# Booleans, whole numbers, floats and bytes; no Python objects.
_KINDS = "biufS"


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        fields: Values that JSON can hold.
        arrays: Arrays of plain numbers or bytes.
    """

    fields: dict[str, Any]
    arrays: Sequence[NDArray[Any]] = field(default=())


class BrokenMessageError(Exception):
    """The stream ended within a message, or holds something else."""


class EndedStreamError(BrokenMessageError):
    """The stream ended within a message or before it."""


def write_message(stream: BinaryIO, message: Message) -> None:
    """Write a message."""
    described = [[array.dtype.str, array.shape] for array in message.arrays]
    header = json.dumps({"fields": message.fields, "arrays": described}).encode()
    stream.write(len(header).to_bytes(8, "little") + header)
    for array in message.arrays:
        stream.write(_bytes_of(np.ascontiguousarray(array)))
    stream.flush()


def read_message(stream: BinaryIO, most_bytes: int) -> Message:
    """Read a message; what it claims is checked before memory is taken.

    Args:
        stream: The stream.
        most_bytes: The most bytes that its arrays may take together.

    Raises:
        EndedStreamError: If the stream ends.
        BrokenMessageError: If it holds anything but a message.
    """
    length = int.from_bytes(_read_exactly(stream, 8), "little")
    if length > _MOST_HEADER_BYTES:
        raise BrokenMessageError
    try:
        header = json.loads(_read_exactly(stream, length))
        fields = dict(header["fields"])
        described = [(np.dtype(str(dtype)), tuple(int(size) for size in shape)) for dtype, shape in header["arrays"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BrokenMessageError from None
    num_bytes = sum(math.prod(shape) * dtype.itemsize for dtype, shape in described)
    if num_bytes > most_bytes or any(dtype.kind not in _KINDS or min((0, *shape)) < 0 for dtype, shape in described):
        raise BrokenMessageError
    return Message(fields, [_read_array(stream, dtype, shape) for dtype, shape in described])


def _read_array(stream: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    _fill(stream, _bytes_of(array))
    return array


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")


def _read_exactly(stream: BinaryIO, num_bytes: int) -> bytes:
    data = bytearray(num_bytes)
    _fill(stream, memoryview(data))
    return bytes(data)


def _fill(stream: BinaryIO, memory: memoryview) -> None:
    done = 0
    while done < len(memory):
        count = stream.readinto(memory[done:])  # type: ignore[attr-defined]
        if not count:
            raise EndedStreamError
        done += count
