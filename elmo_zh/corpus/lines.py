"""Divide text into lines, in bounded memory however long the lines are."""

import io
import re
from collections.abc import Iterable, Iterator

from elmo_zh.text.sentences import pieces

# Longer lines are split, after a sentence if possible, so that a book in one line gives the same sentences.
LONGEST_LINE = 2**20
# Chinese is written without spaces, so a line break between two Chinese characters only wraps the source.
_CHINESE = r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"
_BREAK_IN_CHINESE = re.compile(rf"(?<={_CHINESE})[ \t]*\r?\n[ \t\r\n]*(?={_CHINESE})")
_SPACE = re.compile(r"[ \t\r\n\f]+")
_LINE_START = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")


def lines_of_chunks(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text given in chunks, without line ends; lines end only at LF, CR or CR LF."""
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
    """Turn a block of markup (HTML, Markdown) into one line; line breaks between Chinese characters disappear."""
    return _SPACE.sub(" ", _BREAK_IN_CHINESE.sub("", text)).strip(" ")


_SENTENCE_END = re.compile(r"[。！？!?…；;：:.”’」』）)》\"'—]\s*$")
_INDENTED = re.compile(r"[ \t\u3000]{2}|\u3000")


def joined_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield paragraphs from lines that were broken at about `width` characters, joined as in HTML.

    A paragraph ends where a sentence ends with a line, after a short line, and before an empty or an indented one.
    """
    held: list[str] = []
    for line in lines:
        if held and (not line.strip() or _INDENTED.match(line) or sum(map(len, held)) > LONGEST_LINE):
            yield as_one_line("\n".join(held))
            held = []
        held.append(line)
        if not line.strip() or _SENTENCE_END.search(line) or len(line.strip()) < 0.8 * width:
            yield as_one_line("\n".join(held))
            held = []
    if held:
        yield as_one_line("\n".join(held))


def usual_width(head: str) -> int:
    """Return the length that only the longest tenth of the lines exceed."""
    lengths = sorted(len(line.strip()) for line in head.split("\n") if line.strip())
    return lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0


def whole_lines(chunks: Iterable[str], longest: int, *, keeps_ends: bool = False) -> Iterator[str]:
    """Yield the unsplit lines of a text; raise ValueError with the number of a line longer than `longest`."""
    # Pieces of the unfinished line, joined only once.
    fragments: list[str] = []
    length = 0
    number = 1
    for chunk in chunks:
        first, *lines = _LINE_START.split(chunk) if keeps_ends else chunk.split("\n")
        fragments.append(first)
        length += len(first)
        if lines:
            yield "".join(fragments)
            yield from lines[:-1]
            number += len(lines)
            fragments, length = [lines[-1]], len(lines[-1])
        if length > longest:
            raise ValueError(number)
    if length:
        yield "".join(fragments)


def with_line_feeds(chunks: Iterable[str], *, keeps_ends: bool = False) -> Iterator[str]:
    """Yield the chunks, turning CR LF and lone CR (the line end of old programs) into LF unless `keeps_ends`."""
    decoder = io.IncrementalNewlineDecoder(None, translate=not keeps_ends)
    for chunk in chunks:
        yield decoder.decode(chunk)
    yield decoder.decode("", final=True)
