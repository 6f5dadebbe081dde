"""Read lines of UTF-8 from plain and compressed files; no line is ever skipped."""

import codecs
from collections.abc import Iterator
from pathlib import Path

from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES, unpacked
from elmo_zh.errors import CorpusError


def iter_lines(path: Path, *, drop_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without line ends, decompressed according to its suffix.

    Lines end at LF, with or without a CR before it, and nowhere else. With `drop_mark` U+FEFF at the start is a byte
    order mark; in segmented files it is a character.
    """
    offset = 0
    for number, raw in enumerate(_iter_raw_lines(path), start=1):
        has_mark = drop_mark and number == 1 and raw.startswith(codecs.BOM_UTF8)
        start = len(codecs.BOM_UTF8) if has_mark else 0
        try:
            yield raw[start:].decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte = offset + start + error.start
            raise CorpusError(
                f"{path}: line {number}, byte {byte} (0x{raw[start + error.start]:02x}) is not UTF-8."
                f" Convert the file first, for example: iconv -f GB18030 -t UTF-8 OLD > NEW"
            ) from None
        offset += len(raw)


def _iter_raw_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if path.suffix in COMPRESSED_SUFFIXES:
            yield from unpacked(file, path.suffix, str(path), path.stat().st_size)
        else:
            yield from file
