"""Read a source: unpack it, detect the encoding and format of each file in it, and count its text."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

from elmo_zh.config import TextConfig
from elmo_zh.corpus.archives import ZIP_STARTS, is_tar, tar_contents, zip_contents
from elmo_zh.corpus.content import Content, UnsuitableError
from elmo_zh.corpus.decoding import DecodedText, readable_lines, refuse_bad_bytes, refuse_surrogates
from elmo_zh.corpus.encodings import find_encoding
from elmo_zh.corpus.names import is_archive_name, suffix_of
from elmo_zh.corpus.parquet import as_json_lines, is_parquet
from elmo_zh.corpus.readers.formats import (
    Documents,
    Record,
    find_format,
    find_record_format,
    load_format,
    read_records,
)
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError
from elmo_zh.language import _

Item = TypeVar("Item")


def read_source(
    source: Source, config: TextConfig, tally: Tally, passed_over: PassedOver, *, trusts_head: bool = False
) -> Documents:
    """Yield the documents of a source, each an iterator over lines, to be read before the next document.

    The tally counts dropped text; the caller counts the lines that are yielded. With `trusts_head`, a file whose start
    is UTF-8 is assumed to be all UTF-8, so that its start can be read without the rest.

    Raises:
        CorpusError: If a file is damaged, was named but cannot be a corpus, or changed while it was read.
    """
    try:
        yield from _read_contents(
            source, passed_over, lambda content: _read_content(content, config, tally, passed_over, trusts_head)
        )
    except UnsuitableError as error:
        if source.is_named:
            raise
        passed_over.add(error.reason, source.name)


def read_files(
    source: Source, config: TextConfig, tally: Tally, passed_over: PassedOver
) -> Iterator[tuple[str, Iterator[Record]]]:
    """Yield each file's path in its archive, or "", and its records, which must be read before the next file."""
    return _read_contents(
        source, passed_over, lambda content: _read_records_of_content(content, config, tally, passed_over)
    )


def decoded_files(source: Source, encoding: str, passed_over: PassedOver) -> Iterator[DecodedText]:
    """Yield each file of a source as decoded text, to be read before the next; raise CorpusError for bad bytes."""

    def decode(content: Content) -> Iterator[DecodedText]:
        text = DecodedText(content, find_encoding(content, encoding))
        refuse_bad_bytes(text, may_skip=False)
        yield text

    return _read_contents(source, passed_over, decode)


def _read_contents(
    source: Source, passed_over: PassedOver, read: Callable[[Content], Iterator[Item]]
) -> Iterator[Item]:
    before = Stamp.of(source)
    for content in _contents(source, passed_over):
        try:
            yield from read(as_json_lines(content) if is_parquet(content) else content)
        except UnsuitableError as error:
            if content.is_named or content.name == source.name:
                raise
            passed_over.add(error.reason, content.name)
    before.require(source)


def _contents(source: Source, passed_over: PassedOver) -> Iterator[Content]:
    with source.open_packed() as stream:
        if stream.read(4) in ZIP_STARTS:
            yield from zip_contents(stream, source.name, passed_over)
            return
    with source.open() as stream:
        head = stream.read(512)
        # An empty tar archive consists of zeros.
        if is_tar(head) or (is_archive_name(source.file_name) and head and not any(head)):
            stream.close()
            with source.open() as again:
                yield from tar_contents(again, source.name, passed_over)
            return
    if is_archive_name(source.file_name) and source.path.stat().st_size:
        raise CorpusError(
            _("{name} is not a {kind} file, despite its name. Rename it, or pack it again.").format(
                name=source.name, kind=suffix_of(source.file_name)
            )
        )
    yield Content(name=source.name, file_name=source.file_name, open=source.open, is_named=source.is_named)


def _read_content(
    content: Content, config: TextConfig, tally: Tally, passed_over: PassedOver, trusts_head: bool
) -> Documents:
    text = DecodedText(content, find_encoding(content, config.encoding, trusts_head=trusts_head))
    if config.bad_bytes == "strict":
        refuse_bad_bytes(text, may_skip=True)
    kind = find_format(text, config.format)
    tally.read_field = ""
    documents = load_format(kind).read(text, config, tally, passed_over)
    for document in _begun(documents, kind, text, tally):
        tally.documents += 1
        yield readable_lines(document, text.encoding, config.bad_bytes, tally)


def _read_records_of_content(
    content: Content, config: TextConfig, tally: Tally, passed_over: PassedOver
) -> Iterator[tuple[str, Iterator[Record]]]:
    text = DecodedText(content, find_encoding(content, config.encoding))
    refuse_bad_bytes(text, may_skip=False)
    kind = find_record_format(text, config.format)
    tally.read_field = ""
    records = _begun(read_records(kind, text, config, tally, passed_over), kind, text, tally)
    yield content.member, _checked(records, text.name)


def _checked(records: Iterator[Record], name: str) -> Iterator[Record]:
    for number, record in enumerate(records, start=1):
        refuse_surrogates(record.line, number, name)
        yield record


def _begun(items: Iterator[Item], kind: str, text: DecodedText, tally: Tally) -> Iterator[Item]:
    """Count a file's format once its first document or record has been read; return all documents or records."""
    first = next(items, None)
    tally.forms[kind, text.encoding.name, tally.read_field] += 1
    return chain([] if first is None else [first], _rest(items))


def _rest(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the documents or lines after the first; the file is clearly a corpus by now, so any error means damage."""
    try:
        yield from items
    except UnsuitableError as error:
        raise CorpusError(*error.messages) from None
