"""First step of the segment stage: divide the corpus into tasks, which write text shards.

A text shard is three files. `.txt` has its lines, each ended by LF. `.runs`, uint32 of shape (n, 2), has one row for
each source with lines in the shard: the number of the source and how many lines it has there. `.keys` has the key and
the number of each line that is compared with others, sorted by key. All numbers are little-endian.
"""

import hashlib
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import ARCHIVE_SUFFIXES, COMPRESSED_SUFFIXES, UnsuitableError
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.read_source import ByteRange, read_lines, read_range, split_source
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.errors import CorpusError
from elmo_zh.run.arrays import read_numbers
from elmo_zh.run.job import Files, Json, Step, Work

KEYS = np.dtype([("key", "<u8"), ("line", "<u4")])
# Whether a shard is full is checked each time about this many bytes have been added.
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
        """Return a row for each source, shape (n, 2): its number and the number of lines."""
        return read_numbers(self.file("runs"), "<u4").reshape(-1, 2)

    def iter_lines(self) -> Iterator[str]:
        """Yield the lines without line ends."""
        with self.file("txt").open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line[:-1]

    def keys(self) -> NDArray[Any]:
        """Return the keys and their lines, of dtype `KEYS`, sorted by key; the file is mapped into memory, not read."""
        path = self.file("keys")
        return np.memmap(path, KEYS, "r") if path.stat().st_size else np.zeros(0, KEYS)

    def remove_text(self) -> None:
        """Delete the files that are no longer needed once the lines are segmented; keep the keys."""
        for suffix in ("txt", "runs"):
            self.file(suffix).unlink(missing_ok=True)


class TextShardWriter:
    """Writes lines to text shards of about `shard_bytes`, numbered from 0; `finish` writes the last one.

    Attributes:
        sizes: Bytes of text in each finished shard.
    """

    def __init__(self, files: Files, shard_bytes: int, least_characters: int | None) -> None:
        """Give a key to each line with at least `least_characters` characters when stripped; None means no keys."""
        self._files, self._shard_bytes, self._least_characters = files, shard_bytes, least_characters
        self.sizes: list[int] = []
        self._start_shard()

    def _start_shard(self) -> None:
        self._text = bytearray()
        self._measured_bytes = self._num_lines = 0
        self._runs = array("I")
        self._keys, self._numbers = array("Q"), array("I")

    def write(self, source: int, line: str) -> None:
        """Write one line of a source, in a new shard if the current one is full."""
        if self._measured_bytes >= self._shard_bytes:
            self.finish()
        if not self._runs or self._runs[-2] != source:
            self._runs.extend((source, 0))
        encoded = line.encode("utf-8")
        self._text += encoded + b"\n"
        if self._least_characters is not None and len(text := line.strip()) >= self._least_characters:
            digest = hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest()
            self._keys.append(int.from_bytes(digest, "little"))
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
            with self._files.file(f"{len(self.sizes):05d}.{suffix}", lasts=suffix == "keys") as unfinished:
                unfinished.write_bytes(content)
        self.sizes.append(len(self._text))
        self._start_shard()


# Compressed text unpacks to about this many times its size.
_EXPANSION = 4
# A task is somewhat larger than asked, up to the end of its last file, and should still fill only one shard.
_SHARD_TOLERANCE = 1.5


@dataclass(frozen=True, kw_only=True)
class NumberedSource:
    """A source, its number in the corpus, and its size and modification time at the start of the stage."""

    number: int
    source: Source
    stamp: Stamp

    @classmethod
    def of(cls, number: int, source: Source) -> "NumberedSource":
        """Number a source, and make its path absolute, since workers may have a different current folder."""
        absolute = replace(source, path=source.path.absolute())
        return cls(number=number, source=absolute, stamp=Stamp.of(absolute))


@dataclass(frozen=True, kw_only=True)
class ExtractTask:
    """The task of reading one or more whole sources, or one byte range of a large dump."""

    sources: tuple[NumberedSource, ...]
    byte_range: ByteRange | None = None

    @property
    def num_bytes(self) -> int:
        """Number of bytes to read from disk."""
        if self.byte_range:
            return self.byte_range.end - self.byte_range.start
        return sum(numbered.stamp.num_bytes for numbered in self.sources)


def _split(config: TextConfig, range_bytes: int, numbered: NumberedSource, _files: Files) -> list[Json]:
    """Return the byte ranges of a source; empty if it can only be read as a whole."""
    return [asdict(byte_range) for byte_range in split_source(numbered.source, config, range_bytes)]


def cut(sources: list[NumberedSource], config: TextConfig, shard_bytes: int, work: Work) -> Iterator[ExtractTask]:
    """Yield the extraction tasks of a corpus in order: a byte range of a large dump, or one or more whole sources."""
    large = [numbered for numbered in sources if numbered.stamp.num_bytes > shard_bytes]
    step = Step(name="split", compute=partial(_split, config, shard_bytes), unit="files", total=len(large))
    parts = zip(large, work.run(step, large), strict=True)
    ranges = {numbered.number: msgspec.convert(part.value(), list[ByteRange]) for numbered, part in parts}
    together: list[NumberedSource] = []
    num_bytes = 0
    for numbered in sources:
        ranges_of_source = ranges.get(numbered.number)
        if not ranges_of_source:
            together.append(numbered)
            num_bytes += _num_text_bytes(numbered)
        if together and (ranges_of_source or num_bytes >= shard_bytes):
            yield ExtractTask(sources=tuple(together))
            together, num_bytes = [], 0
        for byte_range in ranges_of_source or ():
            yield ExtractTask(sources=(numbered,), byte_range=byte_range)
    if together:
        yield ExtractTask(sources=tuple(together))


def _num_text_bytes(numbered: NumberedSource) -> int:
    """Estimate how many bytes a source has when unpacked."""
    is_packed = numbered.source.file_name.lower().endswith((*COMPRESSED_SUFFIXES, *ARCHIVE_SUFFIXES))
    return numbered.stamp.num_bytes * (_EXPANSION if is_packed else 1)


@dataclass(frozen=True)
class Extract:
    """Writes the lines of a task's sources as text shards."""

    config: TextConfig
    shard_bytes: int

    def __call__(self, task: ExtractTask, files: Files) -> Json:
        """Write the shards; return their sizes, the number of bytes read, and a tally of each source."""
        tallies = {numbered.number: Tally() for numbered in task.sources}
        least_characters = self.config.duplicate_min_characters if self.config.drop_duplicates else None
        writer = TextShardWriter(files, int(_SHARD_TOLERANCE * self.shard_bytes), least_characters)
        for numbered in task.sources:
            source, tally = numbered.source, tallies[numbered.number]
            numbered.stamp.require(source)
            if task.byte_range:
                lines = read_range(source, task.byte_range, self.config, tally)
            else:
                lines = read_lines(source, self.config, tally)
            try:
                for line in lines:
                    writer.write(numbered.number, line)
            except UnsuitableError as error:
                # Unlike UnsuitableError, CorpusError can be pickled and so reach the main process from a worker.
                raise CorpusError(*error.messages) from None
            numbered.stamp.require(source)
        writer.finish()
        return {
            "bytes": task.num_bytes,
            "shard_sizes": writer.sizes,
            "tallies": msgspec.to_builtins({str(number): tally for number, tally in tallies.items()}),
        }
