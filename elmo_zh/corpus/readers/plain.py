"""Read plain text, and the text that wikiextractor writes without --json: <doc ...> lines, the text, </doc>."""

import html
import re
from collections.abc import Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents, Record
from elmo_zh.corpus.tally import PassedOver, Tally

_ARTICLE = re.compile(r"\s*<doc [^>]*>")


def read_plain(text: DecodedText, config: TextConfig, _tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the documents in plain text: the whole file, its paragraphs between empty lines, or its lines."""
    if config.document == "file":
        yield text.lines()
    elif config.document == "line":
        for line in text.lines():
            yield iter((line,))
    else:
        for _, numbered in groupby(_numbered_paragraphs(text.lines()), key=lambda pair: pair[0]):
            yield (line for _, line in numbered)


def read_plain_lines(
    text: DecodedText, _config: TextConfig, _tally: Tally, _passed_over: PassedOver
) -> Iterator[Record]:
    """Yield the lines unchanged: only LF and CR LF end a line, and no line is split."""
    return map(Record, text.exact_lines())


def _numbered_paragraphs(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    number = 0
    was_empty = False
    for line in lines:
        is_empty = not line.strip()
        number += was_empty and not is_empty
        was_empty = is_empty
        yield number, line


def read_wikiextractor(text: DecodedText, _config: TextConfig, _tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield each article as a document: its title, then its paragraphs."""
    for _, lines in groupby(_numbered_articles(text.lines()), key=lambda pair: pair[0]):
        yield (html.unescape(line) for _, line in lines)


def _numbered_articles(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    number = 0
    for line in lines:
        if line.startswith("<doc ") and line.endswith(">"):
            number += 1
        elif line != "</doc>":
            yield number, line


TEXT = CorpusFormat(
    read=read_plain, title="plain text", has_fields=False, suffixes=(".txt", ".text"), read_records=read_plain_lines
)
WIKIEXTRACTOR = CorpusFormat(read=read_wikiextractor, starts=lambda head: bool(_ARTICLE.match(head)))
