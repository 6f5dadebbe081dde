"""Read members of zip and tar archives and sheets of Excel files, without writing to the paths they name."""

import csv
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import SEEK_END
from pathlib import PurePosixPath
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import Any, BinaryIO, cast

from elmo_zh.corpus.content import Content, UnsuitableError, import_extra
from elmo_zh.corpus.names import is_archive_name, is_hidden, is_other_name, shown
from elmo_zh.corpus.packing import (
    compression_of,
    damage_as_corpus_error,
    damage_error,
    expansion_error,
    most_unpacked_bytes,
)
from elmo_zh.corpus.tally import PassedOver
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _

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


def zip_contents(packed: BinaryIO, name: str, passed_over: PassedOver) -> Iterator[Content]:
    """Yield a zip archive's members in order, or an Excel file's sheets; raise CorpusError if the file is damaged."""
    try:
        archive = zipfile.ZipFile(packed)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise damage_error(name, str(error)) from None
    with archive:
        members = [member for member in archive.infolist() if not member.filename.endswith("/")]
        names = {member.filename for member in members}
        if _EXCEL_MEMBER in names:
            yield from _excel_tables(packed, name, sum(member.file_size for member in members))
            return
        if "[Content_Types].xml" in names or {"mimetype", "content.xml"} <= names:
            raise UnsuitableError(name, N_("an office document"), _("Save it as plain text, or a table as CSV."))
        # zipfile never reads past the sizes claimed here, so they are a bound.
        if sum(member.file_size for member in members) > most_unpacked_bytes(packed.seek(0, SEEK_END)):
            raise expansion_error(name)
        for member in members:
            own_name = _readable_name(member)
            if _is_taken(own_name, name, passed_over):
                yield _zip_member(archive, member, name, shown(own_name))


# Among office documents, only Excel files have this member.
_EXCEL_MEMBER = "xl/workbook.xml"
# openpyxl reads all strings of a file into memory.
_MOST_EXCEL_BYTES = 2**28
# openpyxl creates every empty cell before the last one of a row.
_MOST_COLUMNS = 1000


def _excel_tables(packed: BinaryIO, name: str, unpacked_bytes: int) -> Iterator[Content]:
    """Yield the non-empty sheets of an Excel file; each can be read until the next one is requested."""
    if unpacked_bytes > _MOST_EXCEL_BYTES:
        raise UnsuitableError(name, N_("an Excel file that is too large"), _("Save each sheet as CSV."))
    openpyxl = import_extra("openpyxl", f"{name}, an Excel file,")
    try:
        packed.seek(0)
        book = openpyxl.load_workbook(packed, read_only=True, data_only=True)
        sheets = book.worksheets
        for sheet in sheets:
            with TemporaryFile() as table:
                if _write_table(sheet, cast(BinaryIO, table)):
                    yield _sheet_content(cast(BinaryIO, table), name, shown(sheet.title) if len(sheets) > 1 else "")
    except (CorpusError, OSError):
        raise
    except Exception as error:
        # openpyxl checks little, so a damaged file can raise anything.
        raise damage_error(name, f"{error!r:.200}") from None


def _write_table(sheet: Any, table: BinaryIO) -> bool:
    # A sheet may claim any size.
    sheet.reset_dimensions()
    text = io.TextIOWrapper(table, "utf-8", errors="surrogatepass", newline="", write_through=True)
    rows = None
    for row in sheet.iter_rows(values_only=True):
        cells = ["" if value is None else str(value) for value in row[:_MOST_COLUMNS]]
        if not any(cells):
            continue
        if rows is None:
            # The reader of CSV takes the most frequent of these signs in the first line as the delimiter.
            sign = max(",;\t|", key="".join(cells).partition("\n")[0].count)
            rows = csv.writer(text, delimiter=sign, quoting=csv.QUOTE_ALL, lineterminator="\n")
        rows.writerow(cells)
    text.detach()
    return rows is not None


def _sheet_content(table: BinaryIO, name: str, sheet: str) -> Content:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        table.seek(0)
        yield table

    own_name = f"{name}: {sheet}" if sheet else name
    return Content(name=own_name, file_name=f"{sheet or 'sheet'}.csv", open=opened, is_named=False, member=sheet)


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


def _is_taken(path: str, archive: str, passed_over: PassedOver) -> bool:
    if is_hidden(PurePosixPath(path)):
        reason = N_("hidden files in archives")
    elif is_other_name(path):
        reason = N_("files whose names do not suggest text")
    elif is_archive_name(path):
        raise _packed_twice(_full_name(archive, shown(path)))
    else:
        return True
    passed_over.add(reason, _full_name(archive, shown(path)))
    return False


def _full_name(archive: str, member: str) -> str:
    return f"{archive}: {member}"


def _packed_twice(name: str) -> CorpusError:
    return CorpusError(
        _("{name} is packed again inside an archive. Unpack the archive, and give the folder.").format(name=name)
    )


def _require_plain(member: BinaryIO, name: str) -> None:
    """Raise CorpusError if a member is itself a compressed file; otherwise go back to its start."""
    if compression_of(member.read(6)):
        raise _packed_twice(name)
    member.seek(0)


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, archive_name: str, path: str) -> Content:
    name = _full_name(archive_name, path)
    if member.flag_bits & 1:
        raise CorpusError(
            _("{name} is encrypted. Unpack the archive with its password and give the folder.").format(name=name)
        )

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        try:
            stream = archive.open(member)
        except (NotImplementedError, zipfile.BadZipFile, OSError, ValueError) as error:
            # The directory at the end of the archive may point anywhere and claim anything.
            raise damage_error(name, str(error)) from None
        try:
            with damage_as_corpus_error(name), stream:
                content = cast(BinaryIO, stream)
                _require_plain(content, name)
                yield content
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise damage_error(name, str(error)) from None

    return Content(name=name, file_name=member.filename, open=opened, is_named=False, member=path)


def tar_contents(stream: BinaryIO, name: str, passed_over: PassedOver) -> Iterator[Content]:
    """Yield the members of a tar archive in order; each can be read until the next one is requested."""
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                # The archive would keep all members in memory.
                archive.members.clear()  # type: ignore[attr-defined]
                if member.isdir() or not _is_regular(member, name, passed_over):
                    continue
                if _is_taken(member.name, name, passed_over):
                    with SpooledTemporaryFile(_SPOOLED_BYTES) as spool:
                        extracted = archive.extractfile(member)
                        assert extracted is not None
                        copyfileobj(extracted, spool)
                        yield _spooled_member(cast(BinaryIO, spool), member, name)
    except tarfile.TarError as error:
        raise damage_error(name, str(error)) from None


def _is_regular(member: tarfile.TarInfo, archive: str, passed_over: PassedOver) -> bool:
    if member.isreg() and not member.issparse():
        return True
    passed_over.add(N_("links and other special members of archives"), _full_name(archive, shown(member.name)))
    return False


def _spooled_member(spool: BinaryIO, member: tarfile.TarInfo, archive: str) -> Content:
    path = shown(member.name)
    name = _full_name(archive, path)

    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        spool.seek(0)
        _require_plain(spool, name)
        yield spool

    return Content(name=name, file_name=member.name, open=opened, is_named=False, member=path)
