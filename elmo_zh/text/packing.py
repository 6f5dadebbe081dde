"""Compressed files: told by their first bytes, unpacked as a stream, with an end to how much comes out."""

import bz2
import gzip
import importlib
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from elmo_zh.errors import CorpusError

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
# What is made to fill disks unpacks to a thousand times its size and more, text to ten or twenty times.
MOST_EXPANSION = 250
ALWAYS_ALLOWED_BYTES = 2**30

_FIRST_BYTES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_BUFFER_BYTES = 2**18


def compression_of(head: bytes) -> str | None:
    """Return the suffix of the compression whose files start with these bytes, None if there is none."""
    return next((suffix for start, suffix in _FIRST_BYTES.items() if head.startswith(start)), None)


def most_unpacked_bytes(packed_bytes: int) -> int:
    """Return how much may come out of so many bytes."""
    return max(ALWAYS_ALLOWED_BYTES, MOST_EXPANSION * packed_bytes)


def expansion_error(name: str) -> CorpusError:
    """Return the error for what unpacks to more than it may."""
    return CorpusError(
        f"{name} unpacks to more than {MOST_EXPANSION} times its size and {ALWAYS_ALLOWED_BYTES // 2**30} GiB, as files"
        " do that are made to fill disks. Unpack it yourself if you trust it, and give what comes out."
    )


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Turn what the unpacking libraries raise for damaged files into CorpusError."""
    zstd = _zstd()
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
        raise CorpusError(f"{name} is damaged or cut off ({error}). Fetch or compress it again.") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise CorpusError(f"{name} is not what its name says ({error}). Rename or compress it again.") from None


def unpacked(packed: BinaryIO, suffix: str, name: str, packed_bytes: int) -> BinaryIO:
    """Return the unpacked bytes of a stream.

    Args:
        packed: Read from where it stands; whoever opened it closes it.
        suffix: The compression, one of `COMPRESSED_SUFFIXES`.
        name: What an error calls it.
        packed_bytes: Its size, which limits what may come out.
    """
    openers: dict[str, Callable[..., Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": lambda stream, mode: _zstd().open(stream, mode),
    }
    with damage_told(name):
        inner = cast(BinaryIO, openers[suffix](packed, "rb"))
    return io.BufferedReader(_Unpacked(inner, name, most_unpacked_bytes(packed_bytes)), _BUFFER_BYTES)


def _zstd() -> Any:
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


class _Unpacked(io.RawIOBase):
    """Counts what comes out and tells of damage by the file's name."""

    def __init__(self, inner: BinaryIO, name: str, most_bytes: int) -> None:
        self._inner, self._name = inner, name
        self._left = most_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with damage_told(self._name):
            data = self._inner.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise expansion_error(self._name)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()
