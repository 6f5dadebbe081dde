"""Segmented text in blocks of whole lines, for work that looks at words and not at one sentence after another."""

from collections.abc import Iterator
from pathlib import Path

from elmo_zh.text.corpus import iter_lines

# A block's words are some fifteen times as large as Python strings. With a mebibyte and more, what a process holds grew
# from file to file, as words that stayed lay scattered among those that did not.
BLOCK_BYTES = 2**18


def iter_blocks(path: Path) -> Iterator[str]:
    """Yield a segmented file in blocks of whole lines that all end in LF, also the last; a CR before it is dropped.

    The lines are those of `iter_lines`. A block is larger than 256 KiB only where one line is.

    Raises:
        CorpusError: With file, line and byte for bytes that are not UTF-8.
    """
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
        # Rare, so that the place may be looked for from the start.
        for _ in iter_lines(path, drop_mark=False):
            pass
        raise
