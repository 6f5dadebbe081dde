"""Text shards: the extracted lines of a corpus on disk, in files of roughly equal size that any worker can process.

A text shard is three files. `.txt` has its lines, each ended by LF. `.runs`, uint32 of shape (n, 2), has one row for
each document, or part of one, that has lines in the shard: the number of its source and the number of lines. `.keys`
has the key and the number of each line that can be a duplicate, sorted. All numbers are little-endian.
"""

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.run.arrays import read_numbers
from elmo_zh.run.job import Files

KEYS = np.dtype([("key", "<u8"), ("line", "<u4")])
# Whether a shard is full is looked at after so many bytes.
_MEASURED_BYTES = 2**18


@dataclass(frozen=True)
class TextShard:
    """A text shard: the path of its files without the suffix, and the size in bytes of its text."""

    stem: Path
    num_bytes: int = 0

    def file(self, suffix: str) -> Path:
        """Return the path of the shard's file with this suffix."""
        return self.stem.with_name(f"{self.stem.name}.{suffix}")

    def load_runs(self) -> NDArray[np.uint32]:
        """Return a row for each document, shape (n, 2): source and number of lines."""
        return read_numbers(self.file("runs"), "<u4").reshape(-1, 2)

    def iter_lines(self) -> Iterator[str]:
        """Yield the lines without line ends."""
        with self.file("txt").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def keys(self) -> NDArray[Any]:
        """Return the keys and their lines, of dtype `KEYS`, sorted; large files are not read into memory."""
        path = self.file("keys")
        return np.memmap(path, KEYS, "r") if path.stat().st_size else np.zeros(0, KEYS)

    def remove_text(self) -> None:
        """Delete the lines, which are no longer needed once they are segmented; the keys are kept."""
        for suffix in ("txt", "runs"):
            self.file(suffix).unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class KeyRule:
    """Decides which lines have a key: long lines get an odd key and, with `has_short`, short lines an even one."""

    least_characters: int
    has_short: bool

    def key(self, line: str, encoded: bytes) -> int | None:
        """Return the key of a line, or None if it needs none; `encoded` is the line in UTF-8."""
        stripped = line.strip()
        is_long = len(stripped) >= self.least_characters
        if not stripped or not (is_long or self.has_short):
            return None
        text = encoded if len(stripped) == len(line) else stripped.encode("utf-8")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") & ~1 | is_long


class TextShardWriter:
    """Writes lines to text shards of about `shard_bytes`, numbered from 0; `finish` writes the last one.

    Attributes:
        sizes: Bytes of text in each finished shard.
    """

    def __init__(self, files: Files, shard_bytes: int, rule: KeyRule | None) -> None:
        self._files, self._shard_bytes, self._rule = files, shard_bytes, rule
        self.sizes: list[int] = []
        self.start_document(0)
        self._start_shard()

    def _start_shard(self) -> None:
        self._text = bytearray()
        self._measured_bytes = self._num_lines = 0
        self._runs = array("I")
        self._keys, self._numbers = array("Q"), array("I")

    def start_document(self, source: int) -> None:
        """Start a document of a source, or the rest of one that started in an earlier shard."""
        self._source, self._is_in_document = source, False

    def write(self, line: str) -> None:
        """Write one line of the current document, in a new shard if the current one is full."""
        if self._measured_bytes >= self._shard_bytes:
            self.finish()
            self._is_in_document = False
        if not self._is_in_document:
            self._runs.extend((self._source, 0))
            self._is_in_document = True
        encoded = line.encode("utf-8")
        self._text += encoded + b"\n"
        if self._rule is not None and (key := self._rule.key(line, encoded)) is not None:
            self._keys.append(key)
            self._numbers.append(self._num_lines)
        self._num_lines += 1
        self._runs[-1] += 1
        if len(self._text) - self._measured_bytes >= min(_MEASURED_BYTES, self._shard_bytes):
            self._measured_bytes = len(self._text)

    def finish(self) -> None:
        """Write the current shard, unless it has no lines."""
        if not self._num_lines:
            return
        keys = np.zeros(len(self._keys), KEYS)
        keys["key"], keys["line"] = self._keys, self._numbers
        keys = keys[np.argsort(keys["key"], kind="stable")]
        contents: dict[str, Any] = {"txt": self._text, "keys": keys, "runs": np.asarray(self._runs, "<u4")}
        for suffix, content in contents.items():
            with self._files.file(f"{shard_name(len(self.sizes))}.{suffix}", lasts=suffix == "keys") as unfinished:
                unfinished.write_bytes(content)
        self.sizes.append(len(self._text))
        self._start_shard()


def shard_name(number: int) -> str:
    """Return the name of a text shard within the part of the task that extracted it."""
    return f"{number:05d}"
