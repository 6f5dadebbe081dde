"""Divide a large file into byte ranges that can be read independently: plain text, JSON lines or a MediaWiki dump."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

from elmo_zh.config import TextConfig
from elmo_zh.corpus.archives import ZIP_STARTS, is_tar
from elmo_zh.corpus.content import Content
from elmo_zh.corpus.decoding import DecodedText, readable_lines
from elmo_zh.corpus.encodings import Encoding, find_encoding
from elmo_zh.corpus.packing import compression_of, stream_of, unpacked
from elmo_zh.corpus.readers.formats import Documents, find_format, load_format
from elmo_zh.corpus.readers.row_texts import listed, parse_fields, read_part_of_json_lines
from elmo_zh.corpus.sources import Source
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError

_BLOCK_BYTES = 2**18
# If there is no boundary within this many bytes, the file is taken to have no lines or no pages.
_FURTHEST_BYTES = 2**26
_PAGE = re.compile(rb"<page>")
# Start of a bz2 stream and of its first block. These bytes occur by chance once in 10^24 places.
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_LINE_END = re.compile(rb"\n")
_DUMP_START, _DUMP_END = b"<mediawiki>", b"</mediawiki>"


@dataclass(frozen=True, kw_only=True)
class ByteRange:
    """A byte range of a file, with the file's format, encoding and text fields as detected at its start."""

    start: int
    end: int
    file_bytes: int
    kind: str
    encoding: Encoding
    field: str  # Field of JSON lines that has the text
    other_fields: tuple[str, ...] = ()  # Other fields with Chinese text, unless the user chose the field

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> "ByteRange":
        """Return the range whose attributes were written as JSON."""
        lists = {"encoding": Encoding(**values["encoding"]), "other_fields": tuple(values["other_fields"])}
        return cls(**{**values, **lists})


def split_source(source: Source, config: TextConfig, range_bytes: int) -> list[ByteRange]:
    """Divide plain text, JSON lines or a dump into ranges of about `range_bytes`; other files give an empty list."""
    size = source.path.stat().st_size
    if size <= range_bytes or config.bad_bytes == "strict":
        return []  # errors must name a line of the whole file
    whole = _whole_range(source, config, size)
    if whole is None:
        return []
    with source.open_packed() as file:
        cuts = list(_cuts(file, size, range_bytes, _boundary(file, whole.kind)))
    if not cuts:
        return []
    return [replace(whole, start=start, end=end) for start, end in zip([0, *cuts], [*cuts, size], strict=True)]


def _whole_range(source: Source, config: TextConfig, size: int) -> ByteRange | None:
    """Return the whole file as one range, if its format can be split."""
    with source.open_packed() as file:
        head = file.read(512)
    if head[:4] in ZIP_STARTS or is_tar(head) or compression_of(head) not in (None, ".bz2"):
        return None
    content = Content(name=source.name, file_name=source.file_name, open=source.open, is_named=source.is_named)
    is_packed = compression_of(head) is not None
    if is_packed:
        # Dumps are always UTF-8; reading one twice to make sure would take as long as all the rest.
        encoding = Encoding("utf-8", 1)
        if config.encoding not in ("auto", "utf-8"):
            return None
    else:
        try:
            encoding = find_encoding(content, config.encoding)
        except CorpusError:
            return None  # reading it raises the error
    text = DecodedText(content, encoding)
    kind = find_format(text, config.format)
    whole = ByteRange(start=0, end=size, file_bytes=size, kind=kind, encoding=encoding, field="")
    if is_packed or kind == "wikidump":
        return whole if kind == "wikidump" and encoding.name == "utf-8" else None
    # In UTF-16 and UTF-32, the byte of a line feed occurs inside other characters too.
    if encoding.name.startswith(("utf-16", "utf-32")):
        return None
    if kind == "jsonl":
        return _with_fields(whole, text, config)
    is_divisible = kind == "text" and config.document != "paragraph" and not config.join_lines
    return whole if is_divisible else None


def _with_fields(whole: ByteRange, text: DecodedText, config: TextConfig) -> ByteRange | None:
    tally = Tally()
    try:
        next(load_format("jsonl").read(text, config, tally, PassedOver()), None)
    except CorpusError:
        return None  # reading it raises the error
    return replace(whole, field=config.field or tally.read_field, other_fields=tuple(tally.other_fields))


def _boundary(file: BinaryIO, kind: str) -> re.Pattern[bytes]:
    if kind != "wikidump":
        return _LINE_END
    file.seek(0)
    return _STREAM if compression_of(file.read(6)) else _PAGE


def _cuts(file: BinaryIO, size: int, range_bytes: int, boundary: re.Pattern[bytes]) -> Iterator[int]:
    """Yield the start of each range except the first."""
    last = 0
    for wanted in range(range_bytes, size, range_bytes):
        if wanted <= last:
            continue
        found = _find(file, wanted, boundary)
        if found is not None and found < size:
            yield found
            last = found


def _find(file: BinaryIO, start: int, boundary: re.Pattern[bytes]) -> int | None:
    """Return the first boundary at or after an offset: after a line feed, or before a page or a stream."""
    start -= boundary is _LINE_END
    file.seek(start)
    rest, place = b"", start
    while place - start < _FURTHEST_BYTES and (block := file.read(_BLOCK_BYTES)):
        data = rest + block
        if match := boundary.search(data):
            offset = match.end() if boundary is _LINE_END else match.start()
            return place - len(rest) + offset
        place += len(block)
        rest = data[-16:]
    return None


def read_range(
    source: Source, byte_range: ByteRange, config: TextConfig, tally: Tally, passed_over: PassedOver
) -> Documents:
    """Yield the documents in a range, as `read_source` does for a file; a document that spans ranges counts once."""
    opened = partial(_open_range, source, byte_range)
    content = Content(name=source.name, file_name=source.file_name, open=opened, is_named=source.is_named)
    text = DecodedText(content, byte_range.encoding, is_start=byte_range.start == 0)
    if byte_range.start == 0:
        tally.forms[byte_range.kind, byte_range.encoding.name, listed(parse_fields(byte_range.field))] += 1
        tally.other_fields.update(byte_range.other_fields)
    goes_on = byte_range.kind == "text" and config.document == "file" and byte_range.start > 0
    if byte_range.kind == "jsonl":
        documents = read_part_of_json_lines(text, byte_range.field, config, tally)
    else:
        documents = load_format(byte_range.kind).read(text, config, tally, passed_over)
    for document in documents:
        tally.documents += not goes_on
        yield readable_lines(document, byte_range.encoding, config.bad_bytes, tally)


@contextmanager
def _open_range(source: Source, byte_range: ByteRange) -> Iterator[BinaryIO]:
    with source.open_packed() as file:
        packed = compression_of(file.read(6))
        file.seek(byte_range.start)
        num_bytes = byte_range.end - byte_range.start
        pieces = _next_bytes(file, num_bytes)
        if packed:
            # BZ2File would mistake a damaged stream for the end of the file, and silently drop the pages after it.
            stream = unpacked(stream_of(pieces), packed, source.name, num_bytes)
            pieces = iter(partial(stream.read, _BLOCK_BYTES), b"")
        if byte_range.kind == "wikidump":
            start = [_DUMP_START] if byte_range.start else []
            end = [_DUMP_END] if byte_range.end < byte_range.file_bytes else []
            pieces = chain(start, pieces, end)
        yield stream_of(pieces)


def _next_bytes(file: BinaryIO, num_bytes: int) -> Iterator[bytes]:
    while num_bytes and (data := file.read(min(_BLOCK_BYTES, num_bytes))):
        num_bytes -= len(data)
        yield data
