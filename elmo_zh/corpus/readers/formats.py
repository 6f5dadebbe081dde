"""Describe corpus formats, and find the format of a file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from elmo_zh.choices import CORPUS_FORMATS
from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import format_of_name
from elmo_zh.corpus.counts import Form, Tally
from elmo_zh.corpus.encodings import DecodedText
from elmo_zh.errors import NO_EFFECT, CorpusError
from elmo_zh.language import _

_HEAD_CHARACTERS = 2**16


class Record(NamedTuple):
    """A line of a text, with the other columns or fields of its record if the reader yields them."""

    line: str
    columns: Mapping[str, str] = {}


Reader = Callable[[DecodedText, TextConfig, Tally], Iterator[Record]]


@dataclass(frozen=True, kw_only=True)
class CorpusFormat:
    """A corpus format as registered in `elmo_zh.choices.CORPUS_FORMATS`."""

    # Yields the lines of a decoded file. If the text `is_numbered`, each record is one line, even without text, with
    # its columns. Counts in the tally what is left out.
    read: Reader
    # Files with these suffixes, such as ".csv", are taken from folders and read in this format.
    suffixes: tuple[str, ...] = ()
    # Returns whether a text with this start is in this format; for files without a known suffix.
    starts: Callable[[str], bool] = lambda _head: False
    # Whether --field chooses among its fields.
    has_fields: bool = True
    # Whether files named .txt may be in this format, so that their start decides.
    is_in_text_files: bool = False


def require_fields(field: str, names: Sequence[str], read_as: Sequence[Form]) -> None:
    """Raise CorpusError if --field was given, but the files were all read in formats without fields."""
    formats = sorted({form.format for form in read_as})
    if field and formats and not any(load_format(name).has_fields for name in formats):
        other = f"{', '.join(names[:3])} (--input-format {', '.join(formats)})"
        raise CorpusError(_(NO_EFFECT).format(name=f"--field {field}", other=other))


def load_format(name: str) -> CorpusFormat:
    """Load a corpus format by its name; raise ConfigError if it is unknown or cannot be loaded."""
    return cast(CorpusFormat, CORPUS_FORMATS.load(name))


def find_format(text: DecodedText, wanted: str) -> str:
    """Return a file's format: the requested one or, with auto, the one its suffix or start indicates, or else text."""
    if wanted != "auto":
        return wanted
    by_name = format_of_name(text.content.file_name)
    if by_name not in (None, "json", "text"):
        return str(by_name)
    head = text.head(_HEAD_CHARACTERS)
    for name in ("jsonl",) if by_name == "json" else CORPUS_FORMATS.names():
        known = load_format(name)
        if (known.is_in_text_files or by_name != "text") and known.starts(head):
            # A single line that is numbered is read as JSON, whose records may be in an array inside it.
            return "json" if name == "jsonl" and text.is_numbered and "\n" not in head.strip() else name
    return by_name or "text"
