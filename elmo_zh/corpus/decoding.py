"""Decode a file into chunks or lines of text; bytes that cannot be decoded are marked or refused."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from elmo_zh.corpus.content import Content, UnsuitableError
from elmo_zh.corpus.encodings import CHUNK_BYTES, MARK, MARKING, Encoding, bad_byte
from elmo_zh.corpus.lines import lines_of_chunks, whole_lines, with_line_feeds
from elmo_zh.corpus.sources import changed_error
from elmo_zh.corpus.tally import Tally
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _

UNDECODABLE = N_("lines with undecodable bytes")
# A line that is read whole takes about a hundred times its size in memory.
_LONGEST_EXACT_LINE = 2**22
_BYTE_ORDER_MARK = "\ufeff"
# JSON can escape lone surrogates, which no file can hold.
_UNREADABLE = re.compile(f"[{MARK}\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class DecodedText:
    """A file, or a byte range of one, whose encoding is known; each method reads it from the start."""

    content: Content
    encoding: Encoding
    is_start: bool = True

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return self.content.name

    def chunks(self) -> Iterator[str]:
        """Yield chunks without byte order mark, and `MARK` for bad bytes; raise CorpusError if the file has changed."""
        decoder = codecs.getincrementaldecoder(self.encoding.name)(MARKING if self.encoding.num_bad else "strict")
        is_first = self.is_start
        with self.content.open() as stream:
            while True:
                chunk = stream.read(CHUNK_BYTES)
                try:
                    text = decoder.decode(chunk, not chunk)
                except UnicodeDecodeError:
                    raise changed_error(self.name) from None
                if text:
                    yield text.removeprefix(_BYTE_ORDER_MARK) if is_first else text
                    is_first = False
                if not chunk:
                    return

    def lines(self) -> Iterator[str]:
        """Yield the lines; very long ones are split."""
        return lines_of_chunks(self.chunks())

    def exact_lines(self) -> Iterator[str]:
        """Yield unsplit lines that end only at LF or CR LF."""
        advice = _("Put each paragraph on a line of its own.")
        lines = self._bounded(whole_lines(self.chunks(), _LONGEST_EXACT_LINE), _LONGEST_EXACT_LINE, advice)
        return (line.removesuffix("\r") for line in lines)

    def whole_lines(self, longest: int, *, keeps_ends: bool = False) -> Iterator[str]:
        """Yield whole lines; raise CorpusError if one is longer than `longest`."""
        advice = _("Check the format of the file, or read it as plain text: --input-format text")
        chunks = with_line_feeds(self.chunks(), keeps_ends=keeps_ends)
        return self._bounded(whole_lines(chunks, longest, keeps_ends=keeps_ends), longest, advice)

    def _bounded(self, lines: Iterator[str], longest: int, advice: str) -> Iterator[str]:
        try:
            yield from lines
        except ValueError as error:
            message = _("{name}: line {number} is longer than {longest:,} characters.").format(
                name=self.name, number=error, longest=longest
            )
            raise CorpusError(f"{message} {advice}") from None

    def head(self, most_characters: int) -> str:
        """Return the start of the text."""
        chunks: list[str] = []
        for chunk in self.chunks():
            chunks.append(chunk)
            if sum(map(len, chunks)) >= most_characters:
                break
        return "".join(chunks)[:most_characters]


def require_length(text: DecodedText, longest: int, what: str) -> None:
    """Raise UnsuitableError for a file with more characters than the parser of its format can handle."""
    num_characters = 0
    for chunk in text.chunks():
        num_characters += len(chunk)
        if num_characters > longest:
            raise UnsuitableError(
                text.name,
                N_("too many characters for its format"),
                _("Split the file, or read it as plain text: --input-format text"),
                f"{what}, {longest:,}",
            )


# Encodings that Python calls by a name that few people know.
_COMMON_NAMES = {"CP950": "Big5 (CP950)"}


def refuse_bad_bytes(text: DecodedText, *, may_skip: bool) -> None:
    """Raise CorpusError with the position of undecodable bytes; with `may_skip`, also name the option to skip them."""
    if not text.encoding.num_bad:
        return
    with text.content.open() as stream:
        found = bad_byte(stream, text.encoding.name)
    if found:
        line, place, value = found
        encoding = text.encoding.name.upper()
        likely = {"UTF-8": "GB18030", "GB18030": "UTF-8"}.get(encoding, "NAME")
        message = _("{name}: line {number} is not valid {encoding}: byte 0x{value:02x} at offset {place} of the file.")
        advice = _("Correct the file, or specify its encoding, such as --encoding {likely}")
        if may_skip:
            advice = _("Specify its encoding, such as --encoding {likely}, or skip such lines: --bad-bytes skip-line")
        told = {"name": text.name, "number": line, "value": value, "place": place, "likely": likely}
        raise CorpusError(f"{message} {advice}".format(**told, encoding=_COMMON_NAMES.get(encoding, encoding)))


def without_surrogates(text: str) -> str:
    """Return a text with lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def refuse_surrogates(line: str, number: int, name: str) -> None:
    """Raise CorpusError for a line with a lone surrogate, which JSON can escape but no file can contain."""
    if not line.isascii() and (found := _SURROGATES.search(line)):
        raise CorpusError(
            _("{name}: record {number}, character {place} is half of a surrogate pair. Correct the record.").format(
                name=name, number=number, place=found.start() + 1
            )
        )


def readable_lines(lines: Iterator[str], encoding: Encoding, policy: str, tally: Tally) -> Iterator[str]:
    """Yield the decodable lines of a document; drop and count the others, or replace their bytes with U+FFFD."""
    # A file without bad bytes may contain the mark itself.
    unreadable = _UNREADABLE if encoding.num_bad else _SURROGATES
    find = unreadable.search
    for line in lines:
        if line.isascii() or not find(line):
            yield line
        elif policy == "skip-line":
            tally.drop(UNDECODABLE, len(line))
        else:
            yield unreadable.sub("\ufffd", line)
