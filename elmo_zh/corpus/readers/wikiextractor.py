"""Files that wikiextractor writes without --json: <doc ...> lines, the text, </doc>."""

import html
import re
from collections.abc import Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.decoding import DecodedText
from elmo_zh.corpus.readers.formats import CorpusFormat, Documents
from elmo_zh.corpus.tally import PassedOver, Tally

_START = re.compile(r"\s*<doc [^>]*>")


def read_wikiextractor(text: DecodedText, _config: TextConfig, _tally: Tally, _passed_over: PassedOver) -> Documents:
    """Yield each article as a document: its title, then its paragraphs."""
    numbered = _numbered(text.lines())
    for _, lines in groupby(numbered, key=lambda pair: pair[0]):
        yield (html.unescape(line) for _, line in lines)


def _numbered(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Yield each line of text with the number of its article."""
    number = 0
    for line in lines:
        if line.startswith("<doc ") and line.endswith(">"):
            number += 1
        elif line != "</doc>":
            yield number, line


FORMAT = CorpusFormat(read=read_wikiextractor, starts=lambda head: bool(_START.match(head)))
