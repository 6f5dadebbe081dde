"""First step of the segment stage: read the sources of a corpus and write their lines as text shards."""

from dataclasses import dataclass
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.encodings import MistakenEncodingError
from elmo_zh.corpus.ranges import ByteRange, read_range
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.readers.formats import Documents
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.errors import CorpusError
from elmo_zh.run.work_folder import Figures, PartWriter
from elmo_zh.segmenting.text_shards import KeyRule, TextShardWriter


@dataclass(frozen=True, kw_only=True)
class NumberedSource:
    """A source, its number in the corpus, and its size and time stamp when the stage began."""

    number: int
    source: Source
    stamp: Stamp


@dataclass(frozen=True, kw_only=True)
class ExtractTask:
    """Read whole sources one after another, or one byte range of a large source.

    Attributes:
        number: Position of the task in the order of the corpus, from 0.
        sources: Sources to read; exactly one if there is a byte range.
        byte_range: Range to read, or None for whole sources.
        config: The text settings.
        shard_bytes: Size at which a text shard is full.
        rule: Which lines get a key, or None if no lines are compared.
    """

    number: int
    sources: tuple[NumberedSource, ...]
    byte_range: ByteRange | None
    config: TextConfig
    shard_bytes: int
    rule: KeyRule | None

    @property
    def num_bytes(self) -> int:
        """Bytes to read from disk."""
        if self.byte_range:
            return self.byte_range.end - self.byte_range.start
        return sum(each.stamp.num_bytes for each in self.sources)


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """Result of an extraction: the bytes of each text shard, and what was read and left out of each source."""

    shard_sizes: list[int]
    tallies: dict[int, Tally]
    passed_over: PassedOver

    def described(self) -> dict[str, Any]:
        """Return the result as a JSON value."""
        return {
            # The key that interrupted runs have on disk.
            "piece_bytes": self.shard_sizes,
            "tallies": {str(number): tally.described() for number, tally in self.tallies.items()},
            "passed_over": self.passed_over.described(),
        }

    @classmethod
    def restored(cls, described: Any) -> "Extracted":
        """Return the result that `described` turned into a JSON value."""
        return cls(
            shard_sizes=described["piece_bytes"],
            tallies={int(number): Tally.restored(tally) for number, tally in described["tallies"].items()},
            passed_over=PassedOver.restored(described["passed_over"]),
        )


def extract(task: ExtractTask, writer: PartWriter) -> Figures:
    """Write the lines of a task's sources as text shards; the figures are those of `Extracted`.

    Raises:
        CorpusError: If a source cannot be read, or changes while it is read.
    """
    try:
        return _extract(task, writer, trusts_head=True).described()
    except MistakenEncodingError:
        return _extract(task, writer, trusts_head=False).described()


def _extract(task: ExtractTask, part: PartWriter, *, trusts_head: bool) -> Extracted:
    tallies = {each.number: Tally() for each in task.sources}
    passed_over = PassedOver()
    with TextShardWriter(part, task.shard_bytes, task.rule) as writer:
        for each in task.sources:
            each.stamp.require(each.source)
            if task.byte_range:
                documents = read_range(each.source, task.byte_range, task.config, tallies[each.number], passed_over)
            else:
                documents = read_source(
                    each.source, task.config, tallies[each.number], passed_over, trusts_head=trusts_head
                )
            try:
                _write_lines(documents, each.number, tallies[each.number], task, writer)
            except UnsuitableError as error:
                # Unlike UnsuitableError, CorpusError can be pickled and so reach the main process from a worker.
                raise CorpusError(*error.messages) from None
            each.stamp.require(each.source)
    return Extracted(shard_sizes=writer.sizes, tallies=tallies, passed_over=passed_over)


def _write_lines(documents: Documents, source: int, tally: Tally, task: ExtractTask, writer: TextShardWriter) -> None:
    for document in documents:
        # A range counts a document only where it starts: one that is not counted began in the range before.
        continues = task.byte_range is not None and not tally.documents
        writer.start_document(source, continues=continues)
        for line in document:
            writer.write(line)
