"""Lines of text of any length, in pieces that memory can hold."""

from collections.abc import Iterable, Iterator

from elmo_zh.text.sentences import split_sentences

# Longer lines are cut, after a sentence where there is one: a book in one line gives the same sentences.
LONGEST_LINE = 2**20


def lines_of_chunks(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a text that comes in chunks; a line ends at LF, with or without a CR before it.

    The line ends are not part of the lines.
    """
    rest = ""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split("\n")
        for line in lines:
            yield from _bounded(line.removesuffix("\r"))
        if len(rest) > LONGEST_LINE:
            piece, rest = _cut(rest)
            yield piece
    if rest:
        yield from _bounded(rest.removesuffix("\r"))


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text."""
    return lines_of_chunks((text,))


def whole_lines_of_chunks(chunks: Iterable[str], longest: int) -> Iterator[str]:
    """Yield the lines of a text, uncut; one longer than `longest` characters raises ValueError with its number."""
    rest = ""
    number = 1
    for chunk in chunks:
        *lines, rest = (rest + chunk).split("\n")
        for line in lines:
            yield line.removesuffix("\r")
            number += 1
        if len(rest) > longest:
            raise ValueError(number)
    if rest:
        yield rest.removesuffix("\r")


def _bounded(line: str) -> Iterator[str]:
    while len(line) > LONGEST_LINE:
        piece, line = _cut(line)
        yield piece
    yield line


def _cut(line: str) -> tuple[str, str]:
    """Split a long line after the last sentence that surely ends in its first part, else at the limit."""
    start = line[:LONGEST_LINE]
    # More signs that belong to its end may follow the last sentence, even if it seems to be over.
    *sentences, last = split_sentences(start)
    cut = len(start) - len(last) if sentences else LONGEST_LINE
    return line[:cut], line[cut:]
