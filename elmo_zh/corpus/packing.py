"""Compressed files, recognised by their first bytes and decompressed as a stream, up to a limit."""

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

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
# Files made to fill disks unpack to a thousand times their size and more, text to ten or twenty times.
MOST_EXPANSION = 250
ALWAYS_ALLOWED_BYTES = 2**30

_FIRST_BYTES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
# zstd files may start with a frame to skip, as pzstd writes them: 0x5? and these bytes.
_SKIPPABLE = b"\x2a\x4d\x18"
_LONGEST_START = max(map(len, _FIRST_BYTES))
_BUFFER_BYTES = 2**18
_INPUT_BYTES = 2**16
# xz files may ask for 4 GiB; the highest level of xz needs 64 MiB.
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
        f"{name} unpacks to more than {MOST_EXPANSION} times its size and {ALWAYS_ALLOWED_BYTES // 2**30} GiB, as files"
        " made to fill disks do. If you trust it, unpack it yourself and give the result."
    )


@contextmanager
def damage_as_corpus_error(name: str) -> Iterator[None]:
    """Turn the errors that decompression libraries raise for damaged files into CorpusError."""
    zstd = _zstd()
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError) as error:
        raise _damage(name, str(error)) from None
    except OSError as error:
        # bz2 has no error of its own.
        if error.errno is not None:
            raise
        raise _damage(name, str(error)) from None


def _damage(name: str, message: str) -> CorpusError:
    return CorpusError(f"{name} is damaged or truncated ({message}). Fetch or compress it again.")


class Allowance:
    """The number of bytes to which all compressed members of an archive together may unpack."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._packed = self._unpacked = 0
        self._member: object = None
        self._member_bytes = 0

    def start(self, member: object, packed_bytes: int) -> None:
        """Start decompressing a member; a member decompressed twice counts once."""
        if member is not self._member:
            self._packed += packed_bytes
            self._unpacked += self._member_bytes
            self._member, self._member_bytes = member, 0

    def note(self, num_bytes: int) -> None:
        """Count the bytes that the member has expanded to so far."""
        self._member_bytes = max(self._member_bytes, num_bytes)
        if self._unpacked + self._member_bytes > most_unpacked_bytes(self._packed):
            raise expansion_error(self._name)


def unpacked(
    packed: BinaryIO, suffix: str, name: str, packed_bytes: int, allowance: Allowance | None = None
) -> BinaryIO:
    """Return a stream of the unpacked bytes, limited by the packed size and an archive's allowance."""
    return io.BufferedReader(_Unpacked(packed, suffix, name, packed_bytes, allowance), _BUFFER_BYTES)


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


class _Unpacked(io.RawIOBase):
    """The streams of a compressed file one after another, to the very end.

    The file objects of bz2 and lzma take a stream that is damaged at its start for the end of the file and would drop
    its content silently. Here only zeros may follow, because some programs pad blocks with them.
    """

    def __init__(
        self, packed: BinaryIO, suffix: str, name: str, packed_bytes: int, allowance: Allowance | None
    ) -> None:
        self._packed, self._suffix, self._name = packed, suffix, name
        self._most_bytes, self._num_unpacked, self._allowance = most_unpacked_bytes(packed_bytes), 0, allowance
        # The open stream, None between two; input read but not yet unpacked; number of bytes read from the file.
        self._stream: Any = None
        self._input = b""
        self._num_read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with damage_as_corpus_error(self._name):
            data = self._next(len(buffer))
        self._num_unpacked += len(data)
        if self._num_unpacked > self._most_bytes:
            raise expansion_error(self._name)
        if self._allowance is not None:
            self._allowance.note(self._num_unpacked)
        buffer[: len(data)] = data
        return len(data)

    def _next(self, most_bytes: int) -> bytes:
        while self._stream is not None or self._find_stream():
            if self._stream.needs_input and not self._input:
                self._read()
            is_at_end = self._stream.needs_input and not self._input
            given, self._input = (self._input, b"") if self._stream.needs_input else (b"", self._input)
            data: bytes = self._stream.decompress(given, most_bytes)
            if self._stream.eof:
                self._input = self._stream.unused_data + self._input
                self._stream = None
            elif is_at_end and not data:
                raise EOFError("it ends within the packed content")
            if data:
                return data
        return b""

    def _find_stream(self) -> bool:
        is_first = not self._num_read
        while len(self._input) < _LONGEST_START and self._read():
            if not is_first:
                self._input = self._input.lstrip(b"\0")
        if not is_first:
            self._input = self._input.lstrip(b"\0")
        if not self._input:
            return False
        if compression_of(self._input) != self._suffix:
            raise self._other_content(is_first)
        self._stream = _new_decompressor(self._suffix)
        return True

    def _other_content(self, is_first: bool) -> CorpusError:
        if is_first:
            return CorpusError(
                f"{self._name} is not a {self._suffix} file, despite its name. Rename it, or compress it again."
            )
        place = self._num_read - len(self._input)
        return CorpusError(
            f"{self._name} is damaged, or has other content after its packed content, which ends at byte {place:,}."
            " Fetch or compress it again."
        )

    def _read(self) -> bool:
        data = self._packed.read(_INPUT_BYTES)
        self._input += data
        self._num_read += len(data)
        return bool(data)
