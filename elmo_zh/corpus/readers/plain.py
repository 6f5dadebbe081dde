"""Plain text: a document is the file, a paragraph between empty lines, or a line."""

from collections.abc import Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.tally import PassedOver, Tally


def read_plain(text: DecodedText, config: TextConfig, _tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the documents of plain text, each as its lines."""
    if config.document == "file":
        yield text.lines()
    elif config.document == "line":
        for line in text.lines():
            yield iter((line,))
    else:
        for _, numbered in groupby(_numbered_paragraphs(text.lines()), key=lambda pair: pair[0]):
            yield (line for _, line in numbered)


def read_plain_lines(text: DecodedText, _config: TextConfig, _tally: Tally, _passed_over: PassedOver) -> Iterator[str]:
    """Yield the lines as they are: only LF and CR LF end a line, and none is split."""
    return text.exact_lines()


def _numbered_paragraphs(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Yield each line with the number of its paragraph; empty lines belong to the paragraph before them."""
    number = 0
    was_empty = False
    for line in lines:
        is_empty = not line.strip()
        number += was_empty and not is_empty
        was_empty = is_empty
        yield number, line


FORMAT = CorpusFormat(read=read_plain, suffixes=(".txt", ".text"), read_records=read_plain_lines)
