"""Segmented files, one sentence a line: their sentences, or blocks of whole lines for work that needs words only."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from elmo_zh.corpus.files import iter_lines
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters.registry import split_tokens

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


def iter_sentences(paths: Iterable[Path]) -> Iterator[list[str]]:
    """Yield the tokens of each line of the run's segmented files: lines end at LF, tokens are split at U+0020 only."""
    for path in paths:
        for line in iter_lines(path, drop_mark=False):
            yield split_tokens(line)


def iter_file_sentences(path: Path, preparation: TextPreparation | None) -> Iterator[list[str]]:
    """Yield the tokens of each sentence of a file, leaving out sentences without any.

    Args:
        path: UTF-8, plain or compressed.
        preparation: Of raw text; None for segmented text, one sentence a line, tokens split at U+0020.
    """
    for line in iter_lines(path):
        yield from preparation.sentences(line) if preparation else filter(None, [split_tokens(line)])
