"""Read every line of plain or compressed UTF-8 files and of segmented text."""

import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path

from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES, unpacked
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters.registry import split_tokens


def iter_lines(path: Path, *, drop_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, unpacked if needed; `drop_mark` removes a byte order mark."""
    offset = 0
    for number, raw in enumerate(_iter_raw_lines(path), start=1):
        has_mark = drop_mark and number == 1 and raw.startswith(codecs.BOM_UTF8)
        start = len(codecs.BOM_UTF8) if has_mark else 0
        try:
            yield raw[start:].decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte = offset + start + error.start
            raise CorpusError(
                _(
                    "{path}: line {number}, byte {place} (0x{value:02x}) is not UTF-8. Convert the file first, for"
                    " example: iconv -f GB18030 -t UTF-8 OLD > NEW"
                ).format(path=path, number=number, place=byte, value=raw[start + error.start])
            ) from None
        offset += len(raw)


def _iter_raw_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if path.suffix in COMPRESSED_SUFFIXES:
            yield from unpacked(file, path.suffix, str(path), path.stat().st_size)
        else:
            yield from file


# As Python strings, a block's words take about fifteen times its size. With blocks of 1 MiB and more, the memory of a
# process grew from file to file, because words that were kept fragmented the heap.
BLOCK_BYTES = 2**18


def iter_blocks(path: Path) -> Iterator[str]:
    """Yield a segmented file in blocks of whole lines ending in LF, of about 256 KiB unless a line is longer."""
    begun: list[bytes] = []
    with path.open("rb") as file:
        while chunk := file.read(BLOCK_BYTES):
            end = chunk.rfind(b"\n") + 1
            if end:
                yield _decode(b"".join((*begun, chunk[:end])), path)
                begun = []
            begun.append(chunk[end:])
    if last := b"".join(begun):
        yield _decode(last + b"\n", path)


def _decode(block: bytes, path: Path) -> str:
    try:
        return block.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        # This is rare, so the file may be read again to find the position.
        for _ in iter_lines(path, drop_mark=False):
            pass
        raise


def iter_sentences(paths: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the tokens of each line in segmented files; lines end at LF, and only U+0020 separates tokens."""
    for path in paths:
        for line in iter_lines(path, drop_mark=False):
            yield split_tokens(line)


def iter_line_sentences(lines: Iterable[str], preparation: TextPreparation | None) -> Iterator[list[str]]:
    """Yield the tokens of each non-empty sentence; without a preparation, each line is a segmented sentence."""
    for line in lines:
        yield from preparation.sentences(line) if preparation else filter(None, [split_segmented(line)])
