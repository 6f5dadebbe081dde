"""Describe corpus formats, find the format of a file, and read its records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, cast

from elmo_zh.choices import CORPUS_FORMATS
from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import format_of_name
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.corpus.encodings import DecodedText

Documents = Iterator[Iterator[str]]
Reader = Callable[[DecodedText, TextConfig, Tally, PassedOver], Documents]

_HEAD_CHARACTERS = 2**16


class Record(NamedTuple):
    """A numbered line of a text, or the text of a record as one line with the record's other columns or fields."""

    line: str
    columns: Mapping[str, str] = {}
    document: int = 0  # the number of its document in the file


RecordReader = Callable[[DecodedText, TextConfig, Tally, PassedOver], Iterator[Record]]


@dataclass(frozen=True, kw_only=True)
class CorpusFormat:
    """A corpus format as registered in `elmo_zh.choices.CORPUS_FORMATS`."""

    # Yields the documents of a decoded file, each an iterator over lines, which the caller reads before the next one.
    # Counts dropped text in the tally, and content that does not belong to the corpus in `passed_over`. If it is None,
    # the lines of all records with one number are a document.
    read: Reader | None = None
    # Files with these suffixes, such as ".csv", are taken from folders and read in this format.
    suffixes: tuple[str, ...] = ()
    # Returns whether a text with this start is in this format; for files without a known suffix.
    starts: Callable[[str], bool] | None = None
    # The name for users, if it is not the name in the registry; and whether --field chooses among its fields.
    title: str = ""
    has_fields: bool = True
    # Whether files named .txt may be in this format, so that their start decides.
    is_in_text_files: bool = False
    # Yields every record, even without text, for commands that number the lines. If it is None, they read the lines of
    # all documents.
    read_records: RecordReader | None = None


def has_fields(kind: str) -> bool:
    """Return whether --field applies to files of this format."""
    return load_format(kind).has_fields


def load_format(name: str) -> CorpusFormat:
    """Load a corpus format by its name; raise ConfigError if no such format is installed."""
    return cast(CorpusFormat, CORPUS_FORMATS.load(name))


def find_format(text: DecodedText, wanted: str) -> str:
    """Return a file's format: the requested one or, if that is auto, the one that its suffix or its start indicates."""
    if wanted != "auto":
        return wanted
    by_name = format_of_name(text.content.file_name)
    if by_name not in (None, "json", "text"):
        return str(by_name)
    head = text.head(_HEAD_CHARACTERS)
    for name in ("jsonl",) if by_name == "json" else CORPUS_FORMATS.names():
        known = load_format(name)
        if known.starts is not None and (known.is_in_text_files or by_name != "text") and known.starts(head):
            return name
    return by_name or "text"


def find_record_format(text: DecodedText, wanted: str) -> str:
    """Return a file's format for reading records: JSON for a single line, unless its name says JSON lines."""
    kind = find_format(text, wanted)
    is_guess = wanted == "auto" and kind == "jsonl" and format_of_name(text.content.file_name) != "jsonl"
    return "json" if is_guess and "\n" not in text.head(_HEAD_CHARACTERS).strip() else kind


def read_documents(
    kind: str, text: DecodedText, config: TextConfig, tally: Tally, passed_over: PassedOver
) -> Documents:
    """Yield the documents of a file."""
    known = load_format(kind)
    if known.read is not None:
        yield from known.read(text, config, tally, passed_over)
    elif known.read_records is not None:
        records = known.read_records(text, config, tally, passed_over)
        for _number, of_document in groupby(records, key=lambda record: record.document):
            yield (record.line for record in of_document)


def read_records(
    kind: str, text: DecodedText, config: TextConfig, tally: Tally, passed_over: PassedOver
) -> Iterator[Record]:
    """Return the records of a file; if its format has no records, return the lines of its documents."""
    read = load_format(kind).read_records
    if read is not None:
        return read(text, config, tally, passed_over)
    return (Record(line) for document in read_documents(kind, text, config, tally, passed_over) for line in document)
