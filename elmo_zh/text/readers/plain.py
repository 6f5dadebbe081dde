"""Plain text: a document is a file, a paragraph between empty lines, or a line."""

from collections.abc import Iterator
from itertools import groupby

from elmo_zh.config import TextConfig
from elmo_zh.text.readers.decoding import DecodedText
from elmo_zh.text.readers.tally import Tally


def read_plain(text: DecodedText, config: TextConfig, _tally: Tally) -> Iterator[Iterator[str]]:
    """Yield the documents of plain text, each as its lines."""
    if config.document == "file":
        yield text.lines()
    elif config.document == "line":
        for line in text.lines():
            yield iter((line,))
    else:
        # Empty lines come as documents without text, so that they are counted like others.
        for _, lines in groupby(text.lines(), key=lambda line: bool(line.strip())):
            yield lines
