"""Recognise compressed files by their first bytes, and decompress them as streams up to a limit."""

import bz2
import importlib
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from elmo_zh.errors import CorpusError
from elmo_zh.language import _

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
# Files made to fill disks unpack to a thousand times their size and more, text to ten or twenty times.
MOST_EXPANSION = 250
ALWAYS_ALLOWED_BYTES = 2**30

_FIRST_BYTES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
# zstd files may start with a skippable frame, as pzstd writes them: 0x5? and these bytes.
_SKIPPABLE = b"\x2a\x4d\x18"
_LONGEST_START = max(map(len, _FIRST_BYTES))
_BUFFER_BYTES = 2**18
_INPUT_BYTES = 2**16
# An xz file may ask for a dictionary of 4 GiB; the highest level of xz needs 64 MiB.
_MOST_DICTIONARY_BYTES = 2**29


def compression_of(head: bytes) -> str | None:
    """Return the compression suffix for files that start with these bytes, or None if they are not compressed."""
    if head[1:4] == _SKIPPABLE and head[0] >> 4 == 5:
        return ".zst"
    return next((suffix for start, suffix in _FIRST_BYTES.items() if head.startswith(start)), None)


def most_unpacked_bytes(packed_bytes: int) -> int:
    """Return how many bytes a compressed file of this size may expand to."""
    return max(ALWAYS_ALLOWED_BYTES, MOST_EXPANSION * packed_bytes)


def expansion_error(name: str) -> CorpusError:
    """Return the error for a file that expands to more bytes than allowed."""
    return CorpusError(
        _(
            "{name} unpacks to more than {factor} times its size, like files made to fill up disks. If you trust it,"
            " unpack it yourself and use the unpacked files."
        ).format(name=name, factor=MOST_EXPANSION)
    )


@contextmanager
def damage_as_corpus_error(name: str) -> Iterator[None]:
    """Turn the errors that decompression libraries raise for damaged files into CorpusError."""
    zstd = _zstd()
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
        raise damage_error(name, str(error)) from None
    except OSError as error:
        # bz2 raises OSError without an errno.
        if error.errno is not None:
            raise
        raise damage_error(name, str(error)) from None


def damage_error(name: str, message: str) -> CorpusError:
    """Return the error for a file that cannot be unpacked."""
    return CorpusError(
        _("{name} is damaged or truncated ({reason}). Download or pack it again.").format(name=name, reason=message)
    )


def unpacked(packed: BinaryIO, suffix: str, name: str, packed_bytes: int) -> BinaryIO:
    """Return a stream of unpacked bytes, limited by the packed size."""

    def iter_pieces() -> Iterator[bytes]:
        num_unpacked = 0
        with damage_as_corpus_error(name):
            for piece in _iter_unpacked(packed, suffix, name):
                num_unpacked += len(piece)
                if num_unpacked > most_unpacked_bytes(packed_bytes):
                    raise expansion_error(name)
                yield piece

    return stream_of(iter_pieces())


def stream_of(pieces: Iterator[bytes]) -> BinaryIO:
    """Join non-empty pieces of bytes into a buffered stream."""
    return io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES)


class _Pieces(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or next(self._pieces, b"")
        piece, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


def _zstd() -> Any:
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


class _GzipDecompressor:
    """One member of a gzip file, with the interface that bz2, lzma and zstd share."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def _new_decompressor(suffix: str) -> Any:
    if suffix == ".gz":
        return _GzipDecompressor()
    if suffix == ".bz2":
        return bz2.BZ2Decompressor()
    if suffix == ".xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY_BYTES)
    return _zstd().ZstdDecompressor()


def _iter_unpacked(packed: BinaryIO, suffix: str, name: str) -> Iterator[bytes]:
    """Yield the content of a compressed file, one stream after another, to its very end.

    The file objects of bz2 and lzma mistake a stream with a damaged start for the end of the file, and would silently
    drop its content. Here, only zeros may follow the last stream, because some programs pad blocks with them.
    """
    rest, num_read = b"", 0
    while True:
        padding = b"\0" if num_read else b""
        rest = rest.lstrip(padding)
        while len(rest) < _LONGEST_START and (data := packed.read(_INPUT_BYTES)):
            num_read += len(data)
            rest = (rest + data).lstrip(padding)
        if not rest:
            return
        if compression_of(rest) != suffix:
            raise _other_content(name, suffix, num_read - len(rest) if padding else 0)
        stream = _new_decompressor(suffix)
        while not stream.eof:
            if stream.needs_input and not rest:
                rest = packed.read(_INPUT_BYTES)
                num_read += len(rest)
            is_at_end = stream.needs_input and not rest
            given, rest = (rest, b"") if stream.needs_input else (b"", rest)
            if piece := stream.decompress(given, _BUFFER_BYTES):
                yield piece
            elif is_at_end and not stream.eof:
                raise EOFError("it ends in the middle of the compressed data")
        rest = stream.unused_data + rest


def _other_content(name: str, suffix: str, place: int) -> CorpusError:
    if not place:
        return CorpusError(
            _("{name} is not a {kind} file, despite its name. Rename it, or pack it again.").format(
                name=name, kind=suffix
            )
        )
    return damage_error(name, f"byte {place:,}")
