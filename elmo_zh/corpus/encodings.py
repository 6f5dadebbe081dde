"""Detect the encoding of a file from its byte order mark or its content, and decode it into lines of text.

Bytes that cannot be decoded are marked or refused.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from elmo_zh.corpus.content import TOO_LARGE, Content, UnsuitableError, refuse_foreign, too_long
from elmo_zh.corpus.sources import changed_error
from elmo_zh.corpus.text_files import LONGEST_LINE, lines_of_chunks, whole_lines, with_line_feeds
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _

# Replaces bytes that cannot be decoded. Unicode guarantees that this will never be a character.
MARK = "\ufdd0"
MARKING = "elmo-zh-mark"
CHUNK_BYTES = 2**18

_BYTE_ORDER_MARKS = (  # UTF-32's starts with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# GB18030 includes GBK and GB2312. The variant of Big5 that decodes best is taken; ties go to the first.
_GB, _BIG5 = ("gb18030",), ("cp950", "big5hkscs")
# A sample is large enough to detect an encoding, and small enough that most samples of a damaged file are intact.
_SAMPLE_BYTES, _LONGEST_LINE_BYTES, _NUM_SAMPLES = 100, 1000, 100
_HEAD_BYTES = 2**16
# Least fraction of three-byte characters in UTF-8; GBK text has about 0.03 by chance.
_LEAST_UTF8_FRACTION, _MANY = 0.2, 20
# A guess with less confidence is worthless; a text of very few different characters leads to such guesses.
_LEAST_CONFIDENCE = 0.2
# At most this many places may fail to decode, as a fraction of the decoded text's non-ASCII characters.
_MOST_BAD_FRACTION = 0.3
# The same for samples from the start of a file, which may be damaged there.
_MOST_BAD_SAMPLED_FRACTION = 0.9
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_FROM_THREE_BYTES = re.compile("[\u0800-\ud7ff\ue000-\ufdcf\ufdf0-\U0010ffff]")


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return MARK, error.end


codecs.register_error(MARKING, _mark)


@dataclass(frozen=True)
class Encoding:
    """The encoding of a file, and the number of places in the file that it cannot decode."""

    name: str
    num_bad: int  # Number of places in the file that do not decode, or hold `MARK` itself; 1 if unknown


def find_encoding(content: Content, wanted: str, *, trusts_head: bool = False) -> Encoding:
    """Return the wanted encoding of a file or, if that is auto, detect it; bytes that we wrote are UTF-8.

    A byte order mark decides. Without one, the encoding is UTF-8 if the whole file is valid UTF-8, or enough of the
    non-ASCII text in samples; otherwise it is GB18030 or Big5, whichever chardet prefers in the samples. If chardet is
    unsure about what may be Chinese, the encoding that decodes best is taken. With `trusts_head`, non-ASCII text in
    UTF-8 at the start is enough, so that estimates need not read the whole file.

    Raises:
        UnsuitableError: If the file is not text, or is text in some other encoding.
        CorpusError: If the requested encoding cannot read the file.
    """
    refuse_foreign(content)
    if content.encoding:
        return Encoding(content.encoding, 0)
    if wanted != "auto":
        return _wanted_encoding(content, wanted)
    with content.open() as stream:
        head = stream.read(_HEAD_BYTES)
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return Encoding(name, _num_bad(content, name))
    if trusts_head and not head.isascii() and _is_utf8(head):
        return Encoding("utf-8", 1)
    with content.open() as stream:
        if bad_byte(stream, "utf-8") is None:
            return Encoding("utf-8", 0)
    if b"\0" in head:
        raise _not_text(content)
    samples = list(_samples(content))
    if _is_utf8(b"".join(samples)):
        return Encoding("utf-8", _num_bad(content, "utf-8"))
    return _best(content, _candidates(content, samples))


def _wanted_encoding(content: Content, name: str) -> Encoding:
    try:
        return Encoding(name, _num_bad(content, name))
    except UnicodeError as error:
        # From Python 3.14 on UTF-16's error is a UnicodeDecodeError, whose text repeats the encoding.
        reason = getattr(error, "reason", error)
        # UTF-16 without a mark where Python needs one, and codecs for other purposes, such as idna.
        raise CorpusError(
            _(
                "{name} cannot be read as {encoding} ({reason}). Choose another encoding, or have it detected:"
                " --encoding auto"
            ).format(name=content.name, encoding=name, reason=reason)
        ) from None


def _is_utf8(sample: bytes) -> bool:
    """Return whether more of a sample decodes as UTF-8 than would by chance; short samples need a larger share."""
    text = sample.decode("utf-8", MARKING)
    good, bad = len(_FROM_THREE_BYTES.findall(text)), text.count(MARK)
    return good >= (_LEAST_UTF8_FRACTION if good > _MANY else 0.5) * (good + bad)


def _num_bad(content: Content, encoding: str) -> int:
    return sum(text.count(MARK) for text in _decoded(content, encoding))


def _decoded(content: Content, encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(MARKING)
    with content.open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield decoder.decode(chunk)
        yield decoder.decode(b"", True)


def _candidates(content: Content, samples: Sequence[bytes]) -> Sequence[str]:
    guess, confidence = _guess(samples)
    family = guess.lower().replace("-", "")
    if family.startswith("gb"):
        return _GB
    if family.startswith(("big5", "cp950")):
        return _BIG5
    is_unclear = confidence < _LEAST_CONFIDENCE and _has_pairs(samples)
    if is_unclear and (readable := [name for name in (*_GB, *_BIG5) if _decodes_some(samples, name)]):
        return readable
    raise _not_text(content, guess)


def _has_pairs(samples: Sequence[bytes]) -> bool:
    """Return whether non-ASCII bytes are mostly adjacent, as in Chinese but not in European languages."""
    runs = [run for sample in samples for run in _HIGH_RUN.findall(sample)]
    return sum(len(run) > 1 for run in runs) > 0.8 * len(runs)


def _decodes_some(samples: Sequence[bytes], encoding: str) -> bool:
    """Return whether an encoding decodes more than a tenth of the non-ASCII text in the samples."""
    text = b"".join(samples).decode(encoding, MARKING)
    return text.count(MARK) < _MOST_BAD_SAMPLED_FRACTION * sum(not character.isascii() for character in text)


def _guess(samples: Sequence[bytes]) -> tuple[str, float]:
    """Return the encoding with chardet's highest mean confidence over all samples ("" if none), and this mean (0-1)."""
    # Imported only here: most files are UTF-8, and chardet takes a while to load its tables.
    import chardet

    votes: dict[str, float] = {}
    found = [chardet.detect(sample) for sample in samples]
    for guess in found:
        name = guess["encoding"] or ""
        votes[name] = votes.get(name, 0.0) + guess["confidence"]
    best = max(votes, key=lambda name: votes[name], default="")
    return best, votes.get(best, 0.0) / max(1, len(found))


def _samples(content: Content) -> Iterator[bytes]:
    """Yield the first non-ASCII lines of a file in groups, splitting very long lines."""
    num_samples = 0
    sample = b""
    with content.open() as stream:
        while num_samples < _NUM_SAMPLES and (line := stream.readline(_LONGEST_LINE_BYTES)):
            if not line.isascii():
                sample += line
            if len(sample) >= _SAMPLE_BYTES:
                yield sample
                num_samples += 1
                sample = b""
    if sample:
        yield sample


def _best(content: Content, candidates: Sequence[str]) -> Encoding:
    """Return the candidate with the fewest places that fail to decode; raise UnsuitableError if there are too many."""
    found = {name: _num_bad(content, name) for name in candidates}
    name = min(candidates, key=lambda candidate: found[candidate])
    if found[name]:
        num_high = sum(len(text) - len(text.encode("ascii", "ignore")) for text in _decoded(content, name))
        if found[name] > _MOST_BAD_FRACTION * num_high:
            raise _not_text(content)
    return Encoding(name, found[name])


def _not_text(content: Content, guess: str = "") -> UnsuitableError:
    return UnsuitableError(
        content.name,
        N_("not text in UTF-8, GB18030 or Big5, and no byte order mark was found"),
        _("If it is text in another encoding, specify the encoding: --encoding {name}").format(name=guess or "NAME"),
    )


def bad_byte(stream: BinaryIO, encoding: str) -> tuple[int, int, int] | None:
    """Return the line (from 1), offset (from 0) and value of the first byte that does not decode; None if all do."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    num_before, line = 0, 1
    is_last = False
    while not is_last:
        chunk = stream.read(CHUNK_BYTES)
        is_last = not chunk
        try:
            line += decoder.decode(chunk, is_last).count("\n")
        except UnicodeDecodeError as error:
            # The decoder may have kept back bytes of the previous chunk.
            place = num_before - (len(error.object) - len(chunk)) + error.start
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
            return line, place, error.object[error.start]
        num_before += len(chunk)
    return None


UNDECODABLE = N_("lines with undecodable bytes")
# A numbered line is one sentence to the models, which take some kilobytes of memory for each of its characters.
LONGEST_EXACT_LINE = 2**18
_BYTE_ORDER_MARK = "\ufeff"
# JSON can escape lone surrogates, which no file can hold.
UNREADABLE = re.compile(f"[{MARK}\ud800-\udfff]")
SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class DecodedText:
    """A file whose encoding is known; each method reads it from the start."""

    content: Content
    encoding: Encoding
    is_numbered: bool = False  # Whether a command numbers the lines, so that none is split or left out

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return self.content.name

    def chunks(self) -> Iterator[str]:
        """Yield the text in chunks, without a byte order mark and with `MARK` for bad bytes.

        Raises:
            CorpusError: If bad bytes appear in a file that had none, since it must have changed.
        """
        decoder = codecs.getincrementaldecoder(self.encoding.name)(MARKING if self.encoding.num_bad else "strict")
        is_first = True
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
        """Yield the lines; very long ones are split.

        Numbered lines end only at LF or CR LF, and very long ones raise CorpusError.
        """
        if self.is_numbered:
            return (line.removesuffix("\r") for line in self._bounded(self.chunks(), LONGEST_EXACT_LINE))
        return lines_of_chunks(self.chunks())

    def whole_lines(self, longest: int = LONGEST_LINE, *, keeps_ends: bool = False) -> Iterator[str]:
        """Yield whole lines, with their ends if `keeps_ends`; raise CorpusError if one is longer than `longest`."""
        return self._bounded(with_line_feeds(self.chunks(), keeps_ends=keeps_ends), longest, keeps_ends=keeps_ends)

    def _bounded(self, chunks: Iterator[str], longest: int, *, keeps_ends: bool = False) -> Iterator[str]:
        try:
            yield from whole_lines(chunks, longest, keeps_ends=keeps_ends)
        except ValueError as error:
            line = _("line {number}").format(number=error)
            raise too_long(f"{self.name}: {line}", longest) from None

    def head(self, most_characters: int) -> str:
        """Return the start of the text."""
        chunks: list[str] = []
        for chunk in self.chunks():
            chunks.append(chunk)
            if sum(map(len, chunks)) >= most_characters:
                break
        return "".join(chunks)[:most_characters]


def require_length(text: DecodedText, longest: int, what: str) -> None:
    """Raise UnsuitableError for a file with more than `longest` characters; `what` is its format."""
    num_characters = 0
    for chunk in text.chunks():
        num_characters += len(chunk)
        if num_characters > longest:
            raise UnsuitableError(
                text.name,
                TOO_LARGE,
                _("Split the file into smaller ones."),
                f"{what}, {longest:,}",
            )


def refuse_bad_bytes(text: DecodedText) -> None:
    """Raise CorpusError with the position of the first undecodable byte, if there is one."""
    if not text.encoding.num_bad:
        return
    with text.content.open() as stream:
        place = bad_byte(stream, text.encoding.name)
    if place:
        encoding = text.encoding.name.upper()
        raise CorpusError(
            _(
                "{name}: line {number} is not valid {encoding}: byte 0x{value:02x} at offset {place} of the file."
                " Correct the file, or specify its encoding, such as --encoding {likely}. segment can skip such lines:"
                " --bad-bytes skip-line"
            ).format(
                name=text.name,
                number=place[0],
                place=place[1],
                value=place[2],
                encoding=encoding,
                likely={"UTF-8": "GB18030", "GB18030": "UTF-8"}.get(encoding, "NAME"),
            )
        )


def without_surrogates(text: str) -> str:
    """Return a text with lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else SURROGATES.sub("\ufffd", text)


def refuse_surrogates(line: str, number: int, name: str) -> None:
    """Raise CorpusError for a line with a lone surrogate, which JSON can escape but UTF-8 cannot encode."""
    if not line.isascii() and (found := SURROGATES.search(line)):
        raise CorpusError(
            _("{name}: record {number}, character {place} is half of a surrogate pair. Correct the record.").format(
                name=name, number=number, place=found.start() + 1
            )
        )
