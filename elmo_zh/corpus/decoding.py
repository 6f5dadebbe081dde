"""From a file's bytes to its text, as chunks or lines, with what cannot be decoded marked or refused."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from elmo_zh.corpus.content import Content, UnsuitableError
from elmo_zh.corpus.encodings import CHUNK_BYTES, MARK, MARKING, Encoding, MistakenEncodingError, bad_byte
from elmo_zh.corpus.lines import lines_of_chunks, whole_lines_of_chunks
from elmo_zh.corpus.sources import changed_error
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import CorpusError

UNDECODABLE = "bytes that do not decode"
_BYTE_ORDER_MARK = "\ufeff"
# JSON can spell halves of characters that no file can hold.
_UNREADABLE = re.compile(f"[{MARK}\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class DecodedText:
    """A file, or a part of one, whose encoding is known; each method reads it from the start.

    Attributes:
        content: Its bytes.
        encoding: What they are decoded by.
        is_start: Whether it starts as the file does, perhaps with a byte order mark.
    """

    content: Content
    encoding: Encoding
    is_start: bool = True

    @property
    def name(self) -> str:
        """What messages call the file."""
        return self.content.name

    def chunks(self) -> Iterator[str]:
        """Yield the text in pieces of any length, without the byte order mark; `MARK` stands for what is no text.

        Raises:
            CorpusError: If bytes do not decode that did when the encoding was looked for.
            MistakenEncodingError: If that was not done for all of them.
        """
        decoder = codecs.getincrementaldecoder(self.encoding.name)(MARKING if self.encoding.num_bad else "strict")
        is_first = self.is_start
        with self.content.open() as stream:
            while True:
                chunk = stream.read(CHUNK_BYTES)
                try:
                    text = decoder.decode(chunk, not chunk)
                except UnicodeDecodeError:
                    if not self.encoding.is_sure:
                        raise MistakenEncodingError(self.name) from None
                    raise changed_error(self.name) from None
                if text:
                    yield text.removeprefix(_BYTE_ORDER_MARK) if is_first else text
                    is_first = False
                if not chunk:
                    return

    def lines(self) -> Iterator[str]:
        """Yield the lines; very long ones are cut."""
        return lines_of_chunks(self.chunks())

    def whole_lines(self, longest: int) -> Iterator[str]:
        """Yield the lines, none of them cut.

        Raises:
            CorpusError: For a line longer than so many characters.
        """
        try:
            yield from whole_lines_of_chunks(self.chunks(), longest)
        except ValueError as error:
            raise CorpusError(
                f"{self.name}: line {error} is longer than {longest:,} characters, which no record should be."
                " Check its format, or read it as plain text: --format text"
            ) from None

    def head(self, most_characters: int) -> str:
        """Return the start of the text."""
        parts: list[str] = []
        for chunk in self.chunks():
            parts.append(chunk)
            if sum(map(len, parts)) >= most_characters:
                break
        return "".join(parts)[:most_characters]


def require_length(text: DecodedText, longest: int, what: str) -> None:
    """Raise UnsuitableError for a file of more characters than the parser of its format should be given."""
    num_characters = 0
    for chunk in text.chunks():
        num_characters += len(chunk)
        if num_characters > longest:
            raise UnsuitableError(
                text.name,
                f"longer than {longest:,} characters, which is too long for {what}",
                "Split it, or read it as plain text: --format text",
            )


def refuse_bad_bytes(text: DecodedText) -> None:
    """Raise CorpusError with line and byte if the text has bytes that do not decode."""
    if not text.encoding.num_bad:
        return
    with text.content.open() as stream:
        found = bad_byte(stream, text.encoding.name)
    if found:
        line, place, value = found
        encoding = text.encoding.name.upper()
        raise CorpusError(
            f"{text.name}: line {line}, byte {place} (0x{value:02x}) is not {encoding}. Name another encoding"
            " (--encoding GB18030), correct the file, or leave such lines out: --bad-bytes skip-line"
        )


def readable_lines(lines: Iterator[str], encoding: Encoding, policy: str, tally: Tally) -> Iterator[str]:
    """Yield the lines that hold characters only, and the others as the policy says.

    Args:
        lines: Lines of a document.
        encoding: Whether it has bytes that do not decode.
        policy: "skip-line" drops such lines; "replace" puts U+FFFD where the bytes were.
        tally: Counts what is dropped or replaced.
    """
    # A file without bad bytes may hold the mark as what it is.
    unreadable = _UNREADABLE if encoding.num_bad else _HALVES
    find = unreadable.search
    for line in lines:
        if line.isascii() or not find(line):
            yield line
        elif policy == "skip-line":
            tally.drop(UNDECODABLE, len(line))
        else:
            yield unreadable.sub("\ufffd", line)
