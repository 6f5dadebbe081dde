"""The encoding of one file: by its mark, else by what decodes, judged on all of its bytes."""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from elmo_zh.corpus.content import Content, UnsuitableError
from elmo_zh.errors import CorpusError

# Stands for bytes that cannot be decoded. Unicode keeps it from ever being a character.
MARK = "\ufdd0"
MARKING = "elmo-zh-mark"
CHUNK_BYTES = 2**18

_BYTE_ORDER_MARKS = (  # that of UTF-32 starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# GB18030 holds GBK and GB2312. Of the kinds of Big5 the first that decodes best is taken.
_GB, _BIG5 = ("gb18030",), ("cp950", "big5hkscs")
# Enough of each piece to know its encoding by, and so few that most have no broken byte where some do.
_PIECE_BYTES, _LONGEST_PIECE_BYTES, _NUM_PIECES = 100, 1000, 100
_HEAD_BYTES = 2**16
# Below this share of characters from three bytes, what looks like UTF-8 by chance is no UTF-8; GBK text has some 0.03.
_LEAST_UTF8_SHARE, _MANY = 0.2, 20
# Below this a guess says nothing, as of a text of very few different characters.
_LEAST_CONFIDENCE = 0.2
# Above this share of bytes that decode to nothing, a file is no text in an encoding.
_MOST_BAD_SHARE = 0.3
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_COMMON = re.compile("[\t\r\n -~\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
_FROM_THREE_BYTES = re.compile("[\u0800-\ud7ff\ue000-\ufdcf\ufdf0-\U0010ffff]")


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return MARK, error.end


codecs.register_error(MARKING, _mark)


@dataclass(frozen=True)
class Encoding:
    """How the bytes of a file become characters.

    Attributes:
        name: As Python knows it.
        num_bad: Places in the file that do not decode.
        is_sure: Whether all of the file was looked at.
    """

    name: str
    num_bad: int
    is_sure: bool = True


class MistakenEncodingError(Exception):
    """A file is not in the encoding that its start was in."""


def find_encoding(content: Content, wanted: str, *, trusts_head: bool = False) -> Encoding:
    """Return the encoding of a file, having decoded all of it.

    A byte order mark decides; else UTF-8 if all of the file is, or a fair part of what is not ASCII in a sample; else
    what chardet takes most pieces of the sample for, if that is a kind of GB18030 or Big5.

    Args:
        content: The file.
        wanted: The encoding to take in any case, or "auto".
        trusts_head: Let a fair piece of UTF-8 at the start of a file do; whoever decodes it finds out if it is not.

    Raises:
        UnsuitableError: If the file is in none of these encodings.
    """
    if wanted != "auto":
        return _wanted_encoding(content, wanted)
    with content.open() as stream:
        head = stream.read(_HEAD_BYTES)
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return Encoding(name, _num_bad(content, name))
    if trusts_head and _starts_as_utf8(head):
        return Encoding("utf-8", 0, is_sure=False)
    with content.open() as stream:
        if bad_byte(stream, "utf-8") is None:
            return Encoding("utf-8", 0)
    if b"\0" in head:
        name = _unmarked(head)
        raise _not_text(content, name and f"It looks like {name} without its mark; if it is, add: --encoding {name}")
    sample = list(_pieces(content))
    if _is_utf8(b"".join(sample)):
        return Encoding("utf-8", _num_bad(content, "utf-8"))
    return _best(content, _candidates(content, sample))


def _starts_as_utf8(head: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        return False
    return len(_FROM_THREE_BYTES.findall(text)) > _MANY


def _wanted_encoding(content: Content, name: str) -> Encoding:
    try:
        return Encoding(name, _num_bad(content, name))
    except UnicodeError as error:
        # UTF-16 without a mark where Python wants one, and codecs that are made for other things, such as idna.
        raise CorpusError(
            f"{content.name} cannot be read as {name} ({error}). Name another encoding, or leave --encoding out."
        ) from None


def _is_utf8(sample: bytes) -> bool:
    """Return whether more of a sample decodes as UTF-8 than chance would bring, of which a short one has more."""
    text = sample.decode("utf-8", MARKING)
    good, bad = len(_FROM_THREE_BYTES.findall(text)), text.count(MARK)
    return good >= (_LEAST_UTF8_SHARE if good > _MANY else 0.5) * (good + bad)


def _unmarked(head: bytes) -> str:
    """Return the kind of UTF-16 or 32 in which these bytes are common characters, empty if in none."""
    for name, width in (("UTF-32-LE", 4), ("UTF-32-BE", 4), ("UTF-16-LE", 2), ("UTF-16-BE", 2)):
        try:
            text = head[: len(head) // width * width].decode(name)
        except UnicodeDecodeError:
            continue
        if len(_COMMON.findall(text)) > 0.8 * len(text) > 0:
            return name
    return ""


def _num_bad(content: Content, encoding: str) -> int:
    """Decode a file and count the places that do not decode."""
    return sum(_num_marks(text, chunk, encoding) for text, chunk in _decoded(content, encoding))


def _decoded(content: Content, encoding: str) -> Iterator[tuple[str, bytes]]:
    decoder = codecs.getincrementaldecoder(encoding)(MARKING)
    with content.open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield decoder.decode(chunk), chunk
        yield decoder.decode(b"", True), b""


def _num_marks(text: str, chunk: bytes, encoding: str) -> int:
    """Count the marks; those that stand in the file itself as U+FDD0 are none, though that is no character either."""
    num_marks = text.count(MARK)
    if num_marks and encoding == "utf-8":
        return num_marks - chunk.count(MARK.encode("utf-8"))
    return num_marks


def _candidates(content: Content, sample: Sequence[bytes]) -> Sequence[str]:
    guess, confidence = _guess(sample)
    family = guess.lower().replace("-", "")
    if family.startswith("gb"):
        return _GB
    if family.startswith(("big5", "cp950")):
        return _BIG5
    if confidence < _LEAST_CONFIDENCE and _has_pairs(sample):
        return (*_GB, *_BIG5)
    raise _not_text(content, f" It looks like {guess}; if it is, add: --encoding {guess}" if guess else "")


def _has_pairs(sample: Sequence[bytes]) -> bool:
    """Return whether bytes beyond ASCII mostly stand together, as in Chinese and not in European languages."""
    runs = [run for piece in sample for run in _HIGH_RUN.findall(piece)]
    return sum(len(run) > 1 for run in runs) > 0.8 * len(runs)


def _guess(sample: Sequence[bytes]) -> tuple[str, float]:
    """Return what most of the pieces of a sample look like, empty if like nothing, and how much so from 0 to 1.

    One broken byte rules an encoding out for chardet, so it is not asked about the sample as a whole.
    """
    # Only here: most files are UTF-8, and chardet takes a while to load its tables.
    import chardet

    votes: dict[str, float] = {}
    found = [chardet.detect(piece) for piece in sample]
    for guess in found:
        name = guess["encoding"] or ""
        votes[name] = votes.get(name, 0.0) + guess["confidence"]
    best = max(votes, key=lambda name: votes[name], default="")
    return best, votes.get(best, 0.0) / max(1, len(found))


def _pieces(content: Content) -> Iterator[bytes]:
    """Yield some pieces of a file, of whole lines where these are not too long, that are not ASCII only."""
    num_pieces = 0
    piece = b""
    with content.open() as stream:
        while num_pieces < _NUM_PIECES and (line := stream.readline(_LONGEST_PIECE_BYTES)):
            if not line.isascii():
                piece += line
            if len(piece) >= _PIECE_BYTES:
                yield piece
                num_pieces += 1
                piece = b""
    if piece:
        yield piece


def _best(content: Content, candidates: Sequence[str]) -> Encoding:
    """Return the candidate that decodes most of the file, if that is nearly all that is not ASCII."""
    found = {name: _num_bad(content, name) for name in candidates}
    name = min(candidates, key=lambda candidate: found[candidate])
    if found[name]:
        num_high = sum(len(text) - len(text.encode("ascii", "ignore")) for text, _ in _decoded(content, name))
        if found[name] > _MOST_BAD_SHARE * num_high:
            raise _not_text(content)
    return Encoding(name, found[name])


def _not_text(content: Content, guess: str = "") -> UnsuitableError:
    return UnsuitableError(
        content.name,
        "not text in UTF-8, GB18030 or Big5, nor with a byte order mark",
        guess.strip() or "If it is text in another encoding, name that: --encoding NAME",
    )


def bad_byte(stream: BinaryIO, encoding: str) -> tuple[int, int, int] | None:
    """Return line (from 1), place (from 0) and value of the first byte that does not decode; None if all do."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    num_before, line = 0, 1
    is_last = False
    while not is_last:
        chunk = stream.read(CHUNK_BYTES)
        is_last = not chunk
        try:
            line += decoder.decode(chunk, is_last).count("\n")
        except UnicodeDecodeError as error:
            # The decoder had kept back bytes of the chunk before.
            place = num_before - (len(error.object) - len(chunk)) + error.start
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
            return line, place, error.object[error.start]
        num_before += len(chunk)
    return None
