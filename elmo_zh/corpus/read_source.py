"""Read a source: unpack it, detect the encoding and format of each file in it, and count its text.

A large MediaWiki dump, which takes long to parse, can be divided into byte ranges that are read independently.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from mmap import ACCESS_READ, mmap
from operator import itemgetter
from typing import BinaryIO

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import Content, UnsuitableError, is_archive_name, suffix_of
from elmo_zh.corpus.counts import Form, Tally
from elmo_zh.corpus.encodings import (
    SURROGATES,
    UNDECODABLE,
    UNREADABLE,
    DecodedText,
    Encoding,
    find_encoding,
    refuse_bad_bytes,
    refuse_surrogates,
)
from elmo_zh.corpus.packing import (
    ZIP_STARTS,
    as_json_lines,
    compression_of,
    is_parquet,
    is_tar,
    stream_of,
    tar_contents,
    unpacked,
    wrong_name,
    zip_contents,
)
from elmo_zh.corpus.readers.formats import Record, find_format, load_format
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.errors import CorpusError


def read_lines(source: Source, config: TextConfig, tally: Tally, *, trusts_head: bool = False) -> Iterator[str]:
    """Yield the lines of a source.

    The tally counts dropped text; the caller counts the lines that are yielded. With `trusts_head`, a file whose start
    is UTF-8 is assumed to be all UTF-8, so that its start can be read without the rest.

    Raises:
        CorpusError: If a file cannot be read, for example because it is damaged or has changed. A file that is not a
            corpus is only counted, unless the user named it.
    """
    try:
        for _member, records in read_files(source, config, tally, numbered=False, trusts_head=trusts_head):
            yield from map(itemgetter(0), records)
    except UnsuitableError as error:
        if source.is_named:
            raise
        tally.pass_over(error.reason, source.name)


def read_files(
    source: Source, config: TextConfig, tally: Tally, *, numbered: bool = True, trusts_head: bool = False
) -> Iterator[tuple[str, Iterator[Record]]]:
    """Yield each file's path in its archive, or "", and its records, which must be read before the next file.

    If lines are numbered, none is left out: undecodable bytes raise CorpusError.
    """
    strict = numbered or config.bad_bytes == "strict"
    texts = decoded_files(source, config.encoding, tally, strict=strict, trusts_head=trusts_head)
    for text in texts:
        text = replace(text, is_numbered=numbered)
        try:
            records = _begun(text, config, tally)
        except UnsuitableError as error:
            _pass_over(error, text.content, source, tally)
            continue
        yield text.content.member, records


def decoded_files(
    source: Source, encoding: str, tally: Tally, *, strict: bool = True, trusts_head: bool = False
) -> Iterator[DecodedText]:
    """Yield each file of a source as text, to be read before the next one; if `strict`, bad bytes raise CorpusError."""
    before = Stamp.of(source)
    for content in _contents(source, tally):
        try:
            packed = as_json_lines(content) if is_parquet(content) else content
            text = DecodedText(packed, find_encoding(packed, encoding, trusts_head=trusts_head))
        except UnsuitableError as error:
            _pass_over(error, content, source, tally)
            continue
        if strict:
            refuse_bad_bytes(text)
        yield text
    before.require(source)


def _pass_over(error: UnsuitableError, content: Content, source: Source, tally: Tally) -> None:
    """Count an archive's member that cannot be read as a corpus; raise the error for any other file."""
    if content.is_named or content.name == source.name:
        raise error
    tally.pass_over(error.reason, content.name)


def _contents(source: Source, tally: Tally) -> Iterator[Content]:
    with source.open_packed() as stream:
        if stream.read(4) in ZIP_STARTS:
            yield from zip_contents(stream, source.name, tally)
            return
    with source.open() as stream:
        head = stream.read(512)
        # An empty tar archive consists of zeros.
        if is_tar(head) or (is_archive_name(source.file_name) and head and not any(head)):
            stream.close()
            with source.open() as again:
                yield from tar_contents(again, source.name, tally)
            return
    if is_archive_name(source.file_name) and source.path.stat().st_size:
        raise wrong_name(source.name, suffix_of(source.file_name))
    yield source.content()


def _begun(text: DecodedText, config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Return the records of a file, and count its format once the first one has been read."""
    kind = find_format(text, config.format)
    tally.read_field = ""
    records = load_format(kind).read(text, config, tally)
    first = next(records, None)
    tally.add_form(Form(kind, text.encoding.name, tally.read_field))
    return _readable(chain([] if first is None else [first], _rest(records)), text, config, tally)


def _rest(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records after the first; turn UnsuitableError into CorpusError, as the file clearly is a corpus."""
    try:
        yield from records
    except UnsuitableError as error:
        raise CorpusError(*error.messages) from None


def _readable(records: Iterator[Record], text: DecodedText, config: TextConfig, tally: Tally) -> Iterator[Record]:
    """Yield the records; one with bad bytes or lone surrogates is dropped, mended with U+FFFD or refused."""
    # A file without bad bytes may contain the mark itself.
    unreadable = UNREADABLE if text.encoding.num_bad else SURROGATES
    find = unreadable.search
    for number, record in enumerate(records, start=1):
        line = record.line
        if line.isascii() or not find(line):
            yield record
        elif text.is_numbered or config.bad_bytes == "strict":
            refuse_surrogates(line, number, text.name)
            yield record  # bad bytes have been refused, so the file itself has the mark
        elif config.bad_bytes == "skip-line":
            tally.drop(UNDECODABLE, len(line))
        else:
            yield record._replace(line=unreadable.sub("\ufffd", line))


_BLOCK_BYTES = 2**18
# A cut is left out if no boundary follows within this many bytes.
_FURTHEST_BYTES = 2**26
_PAGE = re.compile(rb"<page>")
# Start of a bz2 stream and of its first block. These bytes occur by chance once in 10^24 places.
_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_DUMP_START, _DUMP_END = b"<mediawiki>", b"</mediawiki>"
# Dumps are always UTF-8; reading one twice to make sure would take as long as all the rest.
_DUMP_ENCODING = Encoding("utf-8", 1)


@dataclass(frozen=True, kw_only=True)
class ByteRange:
    """A byte range of a dump that has `file_bytes` in all."""

    start: int
    end: int
    file_bytes: int


def split_source(source: Source, config: TextConfig, range_bytes: int) -> list[ByteRange]:
    """Divide a dump into ranges of about `range_bytes`; return [] for a file that has to be read as a whole."""
    size = source.path.stat().st_size
    # Errors have to name a line of the whole file.
    if size <= range_bytes or config.bad_bytes == "strict" or config.encoding not in ("auto", "utf-8"):
        return []
    with source.open_packed() as file:
        head = file.read(512)
        if head[:4] in ZIP_STARTS or is_tar(head) or compression_of(head) not in (None, ".bz2"):
            return []
        text = DecodedText(source.content(), _DUMP_ENCODING)
        if find_format(text, config.format) != "wikidump":
            return []
        cuts = list(_cuts(file, range_bytes, _STREAM if compression_of(head) else _PAGE))
    bounds = pairwise([0, *cuts, size]) if cuts else ()
    return [ByteRange(start=start, end=end, file_bytes=size) for start, end in bounds]


def _cuts(file: BinaryIO, range_bytes: int, boundary: re.Pattern[bytes]) -> Iterator[int]:
    """Yield the start of each range except the first: the start of a page or of a bz2 stream."""
    with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        last = 0
        for wanted in range(range_bytes, len(data), range_bytes):
            match = boundary.search(data, wanted, wanted + _FURTHEST_BYTES) if wanted > last else None
            if match:
                last = match.start()
                yield last


def read_range(source: Source, byte_range: ByteRange, config: TextConfig, tally: Tally) -> Iterator[str]:
    """Yield the lines in a range of a dump, as `read_lines` does for a file."""
    content = replace(source.content(), open=partial(_open_range, source, byte_range))
    text = DecodedText(content, _DUMP_ENCODING)
    if not byte_range.start:
        tally.add_form(Form("wikidump", _DUMP_ENCODING.name))
    records = load_format("wikidump").read(text, config, tally)
    return map(itemgetter(0), _readable(records, text, config, tally))


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
        start = [_DUMP_START] if byte_range.start else []
        end = [_DUMP_END] if byte_range.end < byte_range.file_bytes else []
        yield stream_of(chain(start, pieces, end))


def _next_bytes(file: BinaryIO, num_bytes: int) -> Iterator[bytes]:
    while num_bytes and (data := file.read(min(_BLOCK_BYTES, num_bytes))):
        num_bytes -= len(data)
        yield data
