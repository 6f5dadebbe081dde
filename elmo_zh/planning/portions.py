"""What a sample is taken from: the files of a corpus, and the members of its zip archives."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO, cast

from elmo_zh.corpus.archives import ZIP_STARTS
from elmo_zh.corpus.names import format_of_name, is_archive_name, is_hidden, is_other_name
from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES, compression_of, unpacked
from elmo_zh.corpus.sources import Source
from elmo_zh.errors import CorpusError

# Unpacked bytes that tell how far a kind of compression goes, and of how many files.
_MEASURED_BYTES, _MEASURED_FILES = 2**21, 5


@dataclass(frozen=True, kw_only=True)
class Portion:
    """One file's content.

    Attributes:
        source: The file that it is, or stands in.
        name: What messages call it.
        file_name: Its name without the suffix of a compression; the suffix that is left tells of its format.
        packed_bytes: Its size on disk.
        num_bytes: Its size unpacked, estimated where only its packed size is known.
        compression: Suffix of the compression, empty if there is none.
        member: Which member of a zip archive, empty if the source is none.
    """

    source: Source
    name: str
    file_name: str
    packed_bytes: int
    num_bytes: float
    compression: str = ""
    member: str = ""

    @contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open the unpacked bytes, and the bytes whose position tells how far reading has come."""
        if self.member:
            with zipfile.ZipFile(self.source.path) as archive, archive.open(self.member) as stream:
                yield cast(BinaryIO, stream), cast(BinaryIO, stream)
            return
        with self.source.open_packed() as packed:
            if not self.compression:
                yield packed, packed
                return
            with unpacked(packed, self.compression, self.name, self.packed_bytes) as content:
                yield content, packed


def find_portions(sources: Sequence[Source]) -> list[Portion]:
    """Return the portions of sources in their order, empty files left out.

    Raises:
        CorpusError: If a zip archive is damaged or encrypted.
    """
    portions = [portion for source in sources for portion in _portions_of(source)]
    expansions = {kind: _expansion(portions, kind) for kind in {portion.compression for portion in portions}}
    return [_expanded(portion, expansions[portion.compression]) for portion in portions if portion.packed_bytes]


def _portions_of(source: Source) -> Iterator[Portion]:
    size = source.path.stat().st_size
    start = b"" if format_of_name(source.file_name) and not _is_packed_name(source) else _start(source)
    if start.startswith(ZIP_STARTS):
        yield from _members(source)
        return
    compression = compression_of(start) or ""
    file_name = source.file_name
    if compression and file_name.lower().endswith(compression):
        file_name = file_name[: -len(compression)]
    yield Portion(
        source=source,
        name=source.name,
        file_name=file_name,
        packed_bytes=size,
        num_bytes=size,
        compression=compression,
    )


def _is_packed_name(source: Source) -> bool:
    return source.file_name.lower().endswith(COMPRESSED_SUFFIXES)


def _start(source: Source) -> bytes:
    with source.open_packed() as packed:
        return packed.read(6)


def _members(source: Source) -> Iterator[Portion]:
    try:
        with zipfile.ZipFile(source.path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise CorpusError(f"{source.name} is a damaged zip archive ({error}). Fetch or pack it again.") from None
    for member in members:
        name = member.filename
        if member.is_dir() or is_hidden(PurePosixPath(name)) or is_archive_name(name) or is_other_name(name):
            continue
        if member.flag_bits & 1:
            raise CorpusError(
                f"{source.name}: {name} is encrypted. Unpack the archive with its password and give the folder."
            )
        yield Portion(
            source=source,
            name=f"{source.name}: {name}",
            file_name=PurePosixPath(name).name,
            packed_bytes=member.file_size,
            num_bytes=member.file_size,
            member=name,
        )


def _expansion(portions: Sequence[Portion], compression: str) -> float:
    """Return how many bytes come out of one, by the starts of some files; 1 without compression."""
    chosen = [portion for portion in portions if portion.compression == compression and portion.packed_bytes]
    if not compression or not chosen:
        return 1.0
    num_read = num_packed = 0
    for portion in chosen[:: max(1, len(chosen) // _MEASURED_FILES)][:_MEASURED_FILES]:
        with portion.open() as (stream, packed):
            num_read += len(stream.read(_MEASURED_BYTES))
            num_packed += packed.tell()
    return num_read / max(1, num_packed)


def _expanded(portion: Portion, expansion: float) -> Portion:
    if not portion.compression:
        return portion
    return Portion(**{**vars(portion), "num_bytes": portion.packed_bytes * expansion})
