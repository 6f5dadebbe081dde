"""Unpack compressed files, zip and tar archives, Excel files and Parquet tables.

The first bytes show how a file is packed. Nothing is written to the paths that archives name.
"""

import bz2
import gzip
import importlib
import io
import json
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from os import SEEK_END
from pathlib import PurePosixPath
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from elmo_zh.corpus.content import (
    CONVERT,
    TOO_LARGE,
    Content,
    UnsuitableError,
    import_extra,
    is_archive_name,
    is_hidden,
    is_other_name,
    shown,
)
from elmo_zh.corpus.counts import Tally
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _

# Reason in a tally.
NO_TEXT_NAMES = N_("files whose names do not suggest text")
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


def require_expansion(name: str, packed_bytes: int, unpacked_bytes: int) -> None:
    """Raise CorpusError for a file that unpacks to over 1 GiB and over `MOST_EXPANSION` times its size."""
    if unpacked_bytes > max(ALWAYS_ALLOWED_BYTES, MOST_EXPANSION * packed_bytes):
        raise CorpusError(
            _(
                "{name} unpacks to more than {factor} times its size, like files made to fill up disks. If you trust"
                " it, unpack it yourself and use the unpacked files."
            ).format(name=name, factor=MOST_EXPANSION)
        )


@contextmanager
def damage_as_corpus_error(name: str, *others: type[Exception]) -> Iterator[None]:
    """Turn the errors that libraries raise for damaged files into CorpusError."""
    zstd = _zstd()
    damage = (EOFError, lzma.LZMAError, zlib.error, zstd.ZstdError, zipfile.BadZipFile, tarfile.TarError, *others)
    try:
        yield
    except CorpusError:
        raise
    except (*damage, OSError) as error:
        # bz2 raises OSError without an errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CorpusError.damaged(name, str(error)[:200]) from None


def unpacked(packed: BinaryIO, suffix: str, name: str, packed_bytes: int) -> BinaryIO:
    """Return a stream of unpacked bytes; reading more than `require_expansion` allows raises CorpusError."""

    def iter_pieces() -> Iterator[bytes]:
        num_unpacked = 0
        with damage_as_corpus_error(name):
            for piece in _iter_gzip(packed) if suffix == ".gz" else _iter_unpacked(packed, suffix, name):
                num_unpacked += len(piece)
                require_expansion(name, packed_bytes, num_unpacked)
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


def _new_decompressor(suffix: str) -> Any:
    if suffix == ".bz2":
        return bz2.BZ2Decompressor()
    if suffix == ".xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY_BYTES)
    return _zstd().ZstdDecompressor()


def _iter_gzip(packed: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=packed) as stream:
        yield from iter(partial(stream.read1, _BUFFER_BYTES), b"")


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
            raise CorpusError.damaged(name, f"byte {num_read - len(rest):,}")
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


def wrong_name(name: str, suffix: str) -> CorpusError:
    """Return the error for a file that is not packed as its name says."""
    return CorpusError(
        _("{name} is not a {kind} file, despite its name. Rename it, or pack it again.").format(name=name, kind=suffix)
    )


ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
# A member of a tar archive is kept in memory up to this size, otherwise in a temporary file.
_SPOOLED_BYTES = 2**24


def is_tar(head: bytes) -> bool:
    """Return whether a file with these first 512 bytes is a tar archive, judging by the checksum of its header."""
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def zip_contents(packed: BinaryIO, name: str, tally: Tally) -> Iterator[Content]:
    """Yield the members of a zip archive that may be text, or an Excel file's sheets; refuse other office documents."""
    with damage_as_corpus_error(name, ValueError, NotImplementedError):
        archive = zipfile.ZipFile(packed)
    with archive:
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
        names = {member.filename for member in members}
        unpacked_bytes = sum(member.file_size for member in members)
        if _EXCEL_MEMBER in names:
            yield from _excel_tables(packed, name, unpacked_bytes)
            return
        if "[Content_Types].xml" in names or {"mimetype", "content.xml"} <= names:
            raise UnsuitableError(name, "DOCX, ODT", _(CONVERT))
        # zipfile never reads past the sizes claimed here, so they are a bound.
        require_expansion(name, packed.seek(0, SEEK_END), unpacked_bytes)
        for member in members:
            path = _readable_name(member)
            if _is_taken(path, name, tally):
                if member.flag_bits & 1:
                    raise CorpusError(
                        _("{name} is encrypted. Unpack the archive with its password, and use the folder.").format(
                            name=_full_name(name, path)
                        )
                    )
                yield _member(path, name, partial(archive.open, member))


# Among office documents, only Excel files have this member.
_EXCEL_MEMBER = "xl/workbook.xml"
# openpyxl reads all strings of a file into memory.
_MOST_EXCEL_BYTES = 2**28
# openpyxl creates every empty cell before the last one of a row.
_MOST_COLUMNS = 1000


def _excel_tables(packed: BinaryIO, name: str, unpacked_bytes: int) -> Iterator[Content]:
    """Yield the non-empty sheets of an Excel file as CSV, which is generated while it is read."""
    if unpacked_bytes > _MOST_EXCEL_BYTES:
        raise UnsuitableError(name, TOO_LARGE, _(CONVERT), f"Excel, {_MOST_EXCEL_BYTES:,}")
    openpyxl = import_extra("openpyxl", f"{name} (Excel)")
    # openpyxl checks little, so a damaged file can raise anything.
    with damage_as_corpus_error(name, Exception):
        packed.seek(0)
        sheets = openpyxl.load_workbook(packed, read_only=True, data_only=True).worksheets
        for sheet in sheets:
            if any(_lines_of_sheet(sheet, name)):
                title = shown(sheet.title) if len(sheets) > 1 else ""
                yield Content(
                    name=f"{name}: {title}" if title else name,
                    file_name=f"{title or 'sheet'}.csv",
                    open=partial(_opened_lines, partial(_lines_of_sheet, sheet, name)),
                    is_named=False,
                    member=title,
                    encoding="utf-8",
                )


@contextmanager
def _opened_lines(lines: Callable[[], Iterator[bytes]]) -> Iterator[BinaryIO]:
    yield stream_of(lines())


def _lines_of_sheet(sheet: Any, name: str) -> Iterator[bytes]:
    # A sheet may claim any size.
    sheet.reset_dimensions()
    sign = ""
    with damage_as_corpus_error(name, Exception):
        for row in sheet.iter_rows(values_only=True):
            cells = ["" if value is None else str(value) for value in row[:_MOST_COLUMNS]]
            if any(cells):
                # The reader of CSV takes the most frequent of these signs in the first line as the delimiter.
                sign = sign or max(",;\t|", key="".join(cells).partition("\n")[0].count)
                quoted = (f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells)
                yield f"{sign.join(quoted)}\n".encode("utf-8", "replace")


def _readable_name(member: zipfile.ZipInfo) -> str:
    """Return a member's readable name; Chinese Windows programs write GBK, which zipfile decodes as code page 437."""
    if member.flag_bits & 0x800:
        return member.filename
    try:
        raw = member.filename.encode("cp437")
    except UnicodeEncodeError:
        return member.filename
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return member.filename


def _is_taken(path: str, archive: str, tally: Tally) -> bool:
    reason = ""
    if is_hidden(PurePosixPath(path)):
        reason = N_("hidden files in archives")
    elif is_other_name(path):
        reason = NO_TEXT_NAMES
    elif is_archive_name(path):
        raise _packed_twice(_full_name(archive, path))
    if reason:
        tally.pass_over(reason, _full_name(archive, path))
    return not reason


def _full_name(archive: str, path: str) -> str:
    return f"{archive}: {shown(path)}"


def _packed_twice(name: str) -> CorpusError:
    return CorpusError(
        _(
            "{name} is itself an archive or a compressed file. Unpack the outer archive, and use the resulting folder."
        ).format(name=name)
    )


def _member(path: str, archive: str, open_member: Callable[[], AbstractContextManager[Any]]) -> Content:
    """Return a member of an archive; reading it raises CorpusError if it is damaged or is itself compressed."""
    name = _full_name(archive, path)

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        # The directory at the end of a zip archive may point anywhere and claim anything.
        with damage_as_corpus_error(name, ValueError, NotImplementedError), open_member() as content:
            if compression_of(content.read(6)):
                raise _packed_twice(name)
            content.seek(0)
            yield content

    return Content(name=name, file_name=path, open=opened, is_named=False, member=shown(path))


@contextmanager
def _rewound(file: BinaryIO) -> Iterator[BinaryIO]:
    file.seek(0)
    yield file


def tar_contents(stream: BinaryIO, name: str, tally: Tally) -> Iterator[Content]:
    """Yield the members of a tar archive that may be text; each can be read until the next one is requested."""
    with damage_as_corpus_error(name), tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            # The archive would keep all members in memory.
            archive.members.clear()  # type: ignore[attr-defined]
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                tally.pass_over(N_("links and other special members of archives"), _full_name(name, member.name))
            elif _is_taken(member.name, name, tally):
                with SpooledTemporaryFile(_SPOOLED_BYTES) as spool:
                    extracted = archive.extractfile(member)
                    assert extracted is not None
                    copyfileobj(extracted, spool)
                    yield _member(member.name, name, partial(_rewound, cast(BinaryIO, spool)))


_BATCH_ROWS = 1000


def is_parquet(content: Content) -> bool:
    """Return whether a file is a Parquet table, whatever its name."""
    with content.open() as stream:
        return stream.read(4) == b"PAR1"


def as_json_lines(content: Content) -> Content:
    """Return a Parquet table as a file of JSON lines, which is generated while it is read."""
    parquet = import_extra("pyarrow.parquet", content.name, "parquet")
    name = f"{PurePosixPath(content.file_name).stem}.jsonl"
    opened = partial(_opened_lines, partial(_lines_of_parquet, parquet, content))
    return replace(content, file_name=name, open=opened, encoding="utf-8")


def _lines_of_parquet(parquet: Any, content: Content) -> Iterator[bytes]:
    with damage_as_corpus_error(content.name, ValueError), content.open() as stream:
        for batch in parquet.ParquetFile(stream).iter_batches(_BATCH_ROWS):
            for row in batch.to_pylist():
                yield json.dumps(row, ensure_ascii=False, default=_as_json).encode("utf-8", "replace") + b"\n"


def _as_json(value: Any) -> str:
    """Return a value that JSON lacks, such as a date, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
