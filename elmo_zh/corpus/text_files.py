"""Divide texts into lines, and read the lines of UTF-8 files."""

import codecs
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from elmo_zh.corpus.content import COMPRESSED_SUFFIXES
from elmo_zh.corpus.packing import unpacked
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import joined
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import split_tokens
from elmo_zh.text.sentences import pieces

# Longer lines are split, after a sentence if possible, so that a book in one line gives the same sentences.
LONGEST_LINE = 2**20
# Chinese is written without spaces, so a line break between two Chinese characters only wraps the source.
_CHINESE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
_BREAK_IN_CHINESE = re.compile(rf"(?<={_CHINESE})[ \t]*\r?\n[ \t\r\n]*(?={_CHINESE})")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_LINE_START = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


def lines_of_chunks(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text given in chunks, without line ends (LF, CR or CR LF); very long lines are split."""
    rest = ""
    for chunk in with_line_feeds(chunks):
        text = rest + chunk
        *lines, rest = text.split("\n")
        if len(text) <= LONGEST_LINE:
            yield from lines
            continue
        for line in lines:
            yield from pieces(line, LONGEST_LINE)
        *whole, rest = pieces(rest, LONGEST_LINE)
        yield from whole
    if rest:
        yield rest


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text, as `lines_of_chunks` does."""
    if len(text) <= LONGEST_LINE and "\n" not in text and "\r" not in text:
        return iter((text,) if text else ())
    # In chunks, so that a long text is not copied for each of its lines.
    return lines_of_chunks(text[start : start + LONGEST_LINE] for start in range(0, len(text), LONGEST_LINE))


def as_one_line(text: str) -> str:
    """Join the lines of a block of text; breaks between Chinese characters disappear, other breaks become spaces."""
    return _SPACE.sub(" ", _BREAK_IN_CHINESE.sub("", text)).strip(" ")


_SENTENCE_END = re.compile(r"[。！？!?…；;：:.”’」』）)》\"'—]\s*$")
_INDENTED = re.compile(r"[ \t\u3000]{2}|\u3000")


def joined_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield paragraphs from lines that were broken at about `width` characters, joined as in HTML.

    A paragraph ends after a line that is short or ends a sentence, before an empty or indented line, or when very long.
    """
    held, ends = list[str](), False
    for line in lines:
        is_blank = not line.strip()
        starts = is_blank or _INDENTED.match(line) or sum(map(len, held)) > LONGEST_LINE
        if held and (starts or ends):
            yield as_one_line("\n".join(held))
            held = []
        held.append(line)
        ends = is_blank or bool(_SENTENCE_END.search(line)) or len(line.strip()) < 0.8 * width
    if held:
        yield as_one_line("\n".join(held))


def usual_width(head: str) -> int:
    """Return the length that at most about a tenth of the non-blank lines exceed; 0 for a blank text."""
    lengths = sorted(len(line.strip()) for line in head.split("\n") if line.strip())
    return lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0


def whole_lines(chunks: Iterable[str], longest: int, *, keeps_ends: bool = False) -> Iterator[str]:
    """Yield the unsplit lines of a text, with their ends if `keeps_ends`.

    A line longer than `longest` raises ValueError with its number. Lines within a single chunk are not checked, so no
    chunk may be longer than `longest`.
    """
    # Pieces of the unfinished line, joined only once.
    fragments: list[str] = []
    length = 0
    number = 1
    for chunk in chunks:
        first, *lines = _LINE_START.split(chunk) if keeps_ends else chunk.split("\n")
        fragments.append(first)
        length += len(first)
        if length > longest:
            raise ValueError(number)
        if lines:
            yield "".join(fragments)
            yield from lines[:-1]
            number += len(lines)
            fragments, length = [lines[-1]], len(lines[-1])
    if length:
        yield "".join(fragments)


def with_line_feeds(chunks: Iterable[str], *, keeps_ends: bool = False) -> Iterator[str]:
    """Yield the chunks, turning CR LF and lone CR (the line end of old programs) into LF unless `keeps_ends`."""
    decoder = io.IncrementalNewlineDecoder(None, translate=not keeps_ends)
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode("", final=True)


def iter_lines(path: Path, *, drop_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, decompressed if its suffix says so; `drop_mark` removes a byte order mark."""
    offset = 0
    for number, raw in enumerate(_iter_raw_lines(path), start=1):
        has_mark = drop_mark and number == 1 and raw.startswith(codecs.BOM_UTF8)
        start = len(codecs.BOM_UTF8) if has_mark else 0
        try:
            yield raw[start:].decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte, line = offset + start + error.start, _("line {number}").format(number=number)
            raise CorpusError(
                _("{path} is not UTF-8. Convert it first, for example: iconv -f GB18030 -t UTF-8 OLD > NEW").format(
                    path=f"{path}: {joined([line, f'byte {byte} (0x{raw[start + error.start]:02x})'])}"
                )
            ) from None
        offset += len(raw)


def _iter_raw_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        is_packed = path.suffix in COMPRESSED_SUFFIXES
        yield from unpacked(file, path.suffix, str(path), path.stat().st_size) if is_packed else file


# As Python strings, a block's words take about fifteen times its size. With blocks of 1 MiB and more, the memory of a
# process grew from file to file, because words that were kept fragmented the heap.
BLOCK_BYTES = 2**18


def iter_blocks(path: Path) -> Iterator[str]:
    """Yield a segmented file in blocks of whole lines ending in LF, of about 256 KiB unless a line is longer."""
    with path.open("rb") as file:
        while block := b"".join(file.readlines(BLOCK_BYTES)):
            try:
                text = block.decode("utf-8").replace("\r\n", "\n")
            except UnicodeDecodeError:
                # This is rare, so the file may be read again to find the position.
                deque(iter_lines(path, drop_mark=False), maxlen=0)
                raise
            yield text if text.endswith("\n") else f"{text}\n"


def iter_sentences(paths: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the tokens of each line in segmented files; lines end at LF or CR LF, and only U+0020 separates tokens."""
    for path in paths:
        for line in iter_lines(path, drop_mark=False):
            yield split_tokens(line)


def iter_line_sentences(lines: Iterable[str], preparation: TextPreparation | None) -> Iterator[list[str]]:
    """Yield the tokens of each non-empty sentence; without a preparation, each line is a segmented sentence."""
    for line in lines:
        yield from preparation.sentences(line) if preparation else filter(None, [split_segmented(line)])
