"""What the tests of the readers share: contents made of bytes, and readers read to their end."""

import bz2
import gzip
import importlib
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import Content
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.encodings import DecodedText, Encoding
from elmo_zh.corpus.read_source import read_lines
from elmo_zh.corpus.sources import find_sources

zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


def content_of(data: bytes, name: str = "a.txt") -> Content:
    @contextmanager
    def opened() -> Iterator[BinaryIO]:
        yield io.BytesIO(data)

    return Content(name=name, file_name=name, open=opened, is_named=True)


def text_of(text: str, name: str = "a.txt") -> DecodedText:
    return DecodedText(content_of(text.encode("utf-8", "surrogatepass"), name), Encoding("utf-8", 0))


def lines_from(reader: Callable[..., Any], text: str, tally: Tally | None = None, **settings: str) -> list[str]:
    records = reader(text_of(text), TextConfig(**settings), tally if tally is not None else Tally())
    return [record.line for record in records]


def dropped_of(tally: Tally) -> dict[str, int]:
    """Return the characters that were left out, by reason."""
    return {reason: found.characters for reason, found in tally.dropped.items()}


def items_of(tally: Tally) -> dict[str, int]:
    """Return how many lines, records or elements were left out, by reason."""
    return {reason: found.count for reason, found in tally.dropped.items()}


def read(path: Path, tally: Tally | None = None, **settings: Any) -> list[str]:
    """Read the lines of a file or folder as the segment stage does."""
    tally = tally if tally is not None else Tally()
    return [
        line
        for source in find_sources([str(path)]).sources
        for line in read_lines(source, TextConfig(**settings), tally)
    ]
