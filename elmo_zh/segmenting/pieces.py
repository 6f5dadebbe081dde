"""Extracted text on disk, in pieces of equal bytes that any worker can go on with.

A piece is three files: `.txt` has its lines, ended by LF; `.runs`, uint32 of shape (n, 3), says for lines that follow
each other of which source they are, how many, and whether a document starts there; `.keys`, uint64, has the key of each
line that can be a duplicate, sorted, and `.places`, uint32, the line of each. All numbers are little-endian.
"""

import hashlib
from array import array
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_zh.engine.parts import PartWriter

# Lines are put together to be written so many bytes at a time.
_BLOCK_BYTES = 2**18


@dataclass(frozen=True)
class Piece:
    """The files of one piece; `stem` is their path without suffix."""

    stem: Path

    def _file(self, suffix: str) -> Path:
        return self.stem.with_name(f"{self.stem.name}.{suffix}")

    @property
    def text(self) -> Path:
        """Its lines."""
        return self._file("txt")

    @property
    def runs(self) -> Path:
        """Of which sources and documents they are."""
        return self._file("runs")

    @property
    def keys(self) -> Path:
        """The keys of its lines."""
        return self._file("keys")

    @property
    def places(self) -> Path:
        """The lines of its keys."""
        return self._file("places")

    def load_runs(self) -> NDArray[np.uint32]:
        """Return source, number of lines and whether a document starts, for each run of lines, shape (n, 3)."""
        return np.fromfile(self.runs, "<u4").reshape(-1, 3)

    def iter_lines(self) -> Iterator[str]:
        """Yield the lines."""
        with self.text.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def open_keys(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the sorted keys and the line of each, without reading them into memory."""
        if not self.keys.stat().st_size:
            return np.zeros(0, "<u8"), np.zeros(0, "<u4")
        return np.memmap(self.keys, "<u8", "r"), np.memmap(self.places, "<u4", "r")

    def forget_text(self) -> None:
        """Remove the lines, which are needed no more."""
        for path in (self.text, self.runs):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class SizedPiece:
    """A piece and the bytes of its lines, which are known also when these are gone."""

    piece: Piece
    num_bytes: int


@dataclass(frozen=True, kw_only=True)
class KeyRule:
    """Which lines have a key: those of `least_characters` and more, and the others where they are wanted too.

    The lowest bit of a key is 1 for the long ones. The other 63 are of the line's text, white space at its ends aside:
    of a billion different lines two have the same key with a chance of one in twenty.
    """

    least_characters: int
    has_short: bool

    def key(self, line: str, encoded: bytes) -> int | None:
        """Return the key of a line, also given in UTF-8; None if it needs none."""
        is_long = len(line) >= self.least_characters
        if not is_long and not self.has_short:
            return None
        stripped = line.strip()
        if not stripped:
            return None
        text = encoded if len(stripped) == len(line) else stripped.encode("utf-8")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") & ~1 | is_long


class PieceWriter:
    """Writes lines as pieces of about `piece_bytes` each, numbered from 0; the last one ends with the block."""

    def __init__(self, writer: PartWriter, piece_bytes: int, rule: KeyRule | None) -> None:
        self._writer, self._piece_bytes, self._rule = writer, piece_bytes, rule
        self.piece_bytes: list[int] = []
        self._source = 0
        self._open = ExitStack()
        self._start_piece()

    def __enter__(self) -> "PieceWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if kind is None:
            self._end_block()
            if self._num_lines:
                self._finish_piece()
        self._open.__exit__(kind, error, trace)

    def _start_piece(self) -> None:
        self._file: BinaryIO | None = None
        self._lines: list[bytes] = []
        self._line_bytes = self._block_bytes = self._num_lines = 0
        self._runs = array("I")
        self._keys, self._places = array("Q"), array("I")

    def start_document(self, source: int, *, goes_on: bool = False) -> None:
        """Say that the next lines are of a new document of a source, or of one that goes on."""
        self._source = source
        self._start_run(goes_on=goes_on)

    def _start_run(self, *, goes_on: bool) -> None:
        if self._runs and not self._runs[-2]:
            # A document without a line.
            del self._runs[-3:]
        self._runs.extend((self._source, 0, not goes_on))

    def write(self, line: str) -> None:
        """Write one line of the document."""
        if self._block_bytes >= self._piece_bytes:
            # The document at hand goes on in the next piece, unless none of its lines has come yet.
            goes_on = self._runs[-2] > 0 or not self._runs[-1]
            self._finish_piece()
            self._start_run(goes_on=goes_on)
        encoded = line.encode("utf-8")
        self._lines.append(encoded)
        self._line_bytes += len(encoded) + 1
        if self._rule is not None and (key := self._rule.key(line, encoded)) is not None:
            self._keys.append(key)
            self._places.append(self._num_lines)
        self._num_lines += 1
        self._runs[-2] += 1
        if self._line_bytes >= min(_BLOCK_BYTES, self._piece_bytes):
            self._end_block()

    def _end_block(self) -> None:
        if not self._lines:
            return
        if self._file is None:
            unfinished = self._open.enter_context(self._part_file("txt", lasts=False))
            self._file = self._open.enter_context(unfinished.open("wb"))
        self._lines.append(b"")
        self._file.write(b"\n".join(self._lines))
        self._block_bytes += self._line_bytes
        self._lines, self._line_bytes = [], 0

    def _part_file(self, suffix: str, *, lasts: bool) -> AbstractContextManager[Path]:
        return self._writer.file(f"{piece_name(len(self.piece_bytes))}.{suffix}", lasts=lasts)

    def _finish_piece(self) -> None:
        self._open.close()
        keys = np.asarray(self._keys, "<u8")
        # Of equal keys the first line stays first.
        order = np.argsort(keys, kind="stable")
        self._write("keys", keys[order], lasts=True)
        self._write("places", np.asarray(self._places, "<u4")[order], lasts=True)
        self._write("runs", np.asarray(self._runs, "<u4"), lasts=False)
        self.piece_bytes.append(self._block_bytes)
        self._start_piece()

    def _write(self, suffix: str, numbers: NDArray[Any], *, lasts: bool) -> None:
        with self._part_file(suffix, lasts=lasts) as unfinished:
            numbers.tofile(unfinished)


def piece_name(number: int) -> str:
    """Return the name of a piece in the part that it is of."""
    return f"{number:05d}"
