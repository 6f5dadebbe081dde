"""From the files of a corpus to pieces of lines, in tasks of about equal bytes."""

from dataclasses import dataclass
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.encodings import MistakenEncodingError
from elmo_zh.corpus.ranges import ByteRange, read_range
from elmo_zh.corpus.read import read_source
from elmo_zh.corpus.readers.formats import Documents
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.engine.parts import Figures, PartWriter
from elmo_zh.errors import CorpusError
from elmo_zh.segmenting.pieces import KeyRule, PieceWriter


@dataclass(frozen=True, kw_only=True)
class NumberedSource:
    """A source, its number in the corpus, and how it stood when the stage began."""

    number: int
    source: Source
    stamp: Stamp


@dataclass(frozen=True, kw_only=True)
class ExtractTask:
    """Whole sources that are read one after another, or a range of one."""

    number: int
    sources: tuple[NumberedSource, ...]
    part: ByteRange | None
    config: TextConfig
    piece_bytes: int
    rule: KeyRule | None

    @property
    def num_bytes(self) -> int:
        """Bytes on disk."""
        return self.part.end - self.part.start if self.part else sum(each.stamp.num_bytes for each in self.sources)


@dataclass(frozen=True, kw_only=True)
class Extracted:
    """What an extraction found: the bytes of its pieces, and of each source what was read and left out."""

    piece_bytes: list[int]
    tallies: dict[int, Tally]
    passed_over: PassedOver

    def described(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "piece_bytes": self.piece_bytes,
            "tallies": {str(number): tally.described() for number, tally in self.tallies.items()},
            "passed_over": self.passed_over.described(),
        }

    @classmethod
    def restored(cls, described: Any) -> "Extracted":
        """Return what `described` described."""
        return cls(
            piece_bytes=described["piece_bytes"],
            tallies={int(number): Tally.restored(tally) for number, tally in described["tallies"].items()},
            passed_over=PassedOver.restored(described["passed_over"]),
        )


def extract(task: ExtractTask, writer: PartWriter) -> Figures:
    """Write the lines of a task's sources as pieces; the figures are those of `Extracted`.

    Raises:
        CorpusError: For what cannot be read, and for a file that changes meanwhile.
    """
    try:
        return _extract(task, writer, trusts_head=True).described()
    except MistakenEncodingError:
        return _extract(task, writer, trusts_head=False).described()


def _extract(task: ExtractTask, part: PartWriter, *, trusts_head: bool) -> Extracted:
    tallies = {each.number: Tally() for each in task.sources}
    passed_over = PassedOver()
    with PieceWriter(part, task.piece_bytes, task.rule) as writer:
        for each in task.sources:
            each.stamp.require(each.source)
            if task.part:
                documents = read_range(each.source, task.part, task.config, tallies[each.number], passed_over)
            else:
                documents = read_source(
                    each.source, task.config, tallies[each.number], passed_over, trusts_head=trusts_head
                )
            try:
                _write_documents(documents, each.number, tallies[each.number], task, writer)
            except UnsuitableError as error:
                raise CorpusError(*error.messages) from None  # one that can travel between processes
            each.stamp.require(each.source)
    return Extracted(piece_bytes=writer.piece_bytes, tallies=tallies, passed_over=passed_over)


def _write_documents(documents: Documents, source: int, tally: Tally, task: ExtractTask, writer: PieceWriter) -> None:
    for document in documents:
        goes_on = task.part is not None and not tally.documents
        writer.start_document(source, goes_on=goes_on)
        for line in document:
            writer.write(line)
