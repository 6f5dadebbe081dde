"""Read plain text, and the text that wikiextractor writes without --json: <doc ...> lines, the text, </doc>."""

import html
import re
from collections.abc import Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.markup import without_variants
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.layouts import find_layout
from elmo_zh.corpus.lines import joined_lines, usual_width
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents, Record
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.language import N_

_HEAD_CHARACTERS = 2**16
_ARTICLE = re.compile(r"\s*<doc [^>]*>")
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")


def read_plain(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield the documents in plain text: the whole file, its paragraphs between empty lines, or its lines."""
    lines = _lines(text, text.lines(), config, tally)
    if config.document == "file":
        yield lines
    elif config.document == "line":
        for line in lines:
            yield iter((line,))
    else:
        for _number, numbered in groupby(_numbered_paragraphs(lines), key=lambda pair: pair[0]):
            yield (line for _number, line in numbered)


def read_plain_lines(text: DecodedText, config: TextConfig, tally: Tally, _passed_over: PassedOver) -> Iterator[Record]:
    """Yield the lines unchanged: only LF and CR LF end a line, and no line is split."""
    return map(Record, _lines(text, text.exact_lines(), config, tally))


def _lines(text: DecodedText, lines: Iterator[str], config: TextConfig, tally: Tally) -> Iterator[str]:
    """Return the lines, joined if the settings say so; note a layout that would make wrong words."""
    if config.join_lines:
        return joined_lines(lines, usual_width(text.head(_HEAD_CHARACTERS)))
    if config.format == "auto" and text.is_start:
        layout, example = find_layout(text.head(_HEAD_CHARACTERS))
        if layout and not (layout == "words" and config.segmenter == "whitespace"):
            tally.layouts.setdefault(layout, example)
    return lines


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
    for _number, records in groupby(_article_lines(text), key=lambda pair: pair[0]):
        yield (record.line for _number, record in records)


def _read_article_lines(
    text: DecodedText, _config: TextConfig, _tally: Tally, _passed_over: PassedOver
) -> Iterator[Record]:
    return (record for _number, record in _article_lines(text))


def _article_lines(text: DecodedText) -> Iterator[tuple[int, Record]]:
    """Yield the number of its article and each line, with the id, url and title of the article as columns."""
    number = 0
    columns: dict[str, str] = {}
    for line in text.lines():
        if line.startswith("<doc ") and line.endswith(">"):
            number += 1
            columns = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(line)}
        elif line != "</doc>":
            yield number, Record(html.unescape(without_variants(line)), columns)


TEXT = CorpusFormat(
    read=read_plain, title=N_("plain text"), has_fields=False, suffixes=(".txt", ".text"), read_records=read_plain_lines
)
WIKIEXTRACTOR = CorpusFormat(
    read=read_wikiextractor, read_records=_read_article_lines, starts=lambda head: bool(_ARTICLE.match(head))
)
