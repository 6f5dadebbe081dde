"""First step of the segment stage: divide the corpus into tasks of roughly equal size, which write text shards."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.names import ARCHIVE_SUFFIXES
from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES
from elmo_zh.corpus.ranges import ByteRange, read_range, split_source
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.readers.formats import Documents
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.engine.engine import Engine
from elmo_zh.errors import CorpusError
from elmo_zh.run.work_folder import Figures, PartWriter
from elmo_zh.segmenting.duplicates import key_rule
from elmo_zh.segmenting.text_shards import KeyRule, TextShardWriter

# Compressed text unpacks to about this many times its size.
_EXPANSION = 4
# A byte range is somewhat larger than asked, up to the end of its last line, and should still fill only one shard.
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
    """Read several whole sources, or one byte range of a large one, into text shards of `shard_bytes`."""

    number: int
    sources: tuple[NumberedSource, ...]
    byte_range: ByteRange | None
    config: TextConfig
    shard_bytes: int
    rule: KeyRule | None

    @property
    def num_bytes(self) -> int:
        """Number of bytes to read from disk."""
        if self.byte_range:
            return self.byte_range.end - self.byte_range.start
        return sum(each.stamp.num_bytes for each in self.sources)


def _split(task: tuple[NumberedSource, TextConfig, int]) -> list[ByteRange]:
    """Return the byte ranges of a source; empty if it can only be read as a whole."""
    numbered, config, range_bytes = task
    return split_source(numbered.source, config, range_bytes)


def cut(sources: list[NumberedSource], config: TextConfig, shard_bytes: int, engine: Engine) -> Iterator[ExtractTask]:
    """Yield the extraction tasks of a corpus in order: parts of a large source, or several small sources."""
    large = [each for each in sources if each.stamp.num_bytes > shard_bytes]
    splits = [(each, config, shard_bytes) for each in large]
    ranges = {each.number: found for (each, *_), found in engine.run(_split, splits)}
    numbers = count()
    task = partial(ExtractTask, config=config, shard_bytes=int(_SHARD_TOLERANCE * shard_bytes), rule=key_rule(config))
    for is_split, consecutive in groupby(sources, lambda each: bool(ranges.get(each.number))):
        if is_split:
            for each in consecutive:
                for byte_range in ranges[each.number]:
                    yield task(number=next(numbers), sources=(each,), byte_range=byte_range)
        else:
            for together in _join_small(consecutive, shard_bytes):
                yield task(number=next(numbers), sources=tuple(together), byte_range=None)


def _join_small(sources: Iterable[NumberedSource], task_bytes: int) -> Iterator[list[NumberedSource]]:
    together: list[NumberedSource] = []
    num_bytes = 0
    for each in sources:
        together.append(each)
        is_packed = each.source.file_name.lower().endswith((*COMPRESSED_SUFFIXES, *ARCHIVE_SUFFIXES))
        num_bytes += each.stamp.num_bytes * (_EXPANSION if is_packed else 1)
        if num_bytes >= task_bytes:
            yield together
            together, num_bytes = [], 0
    if together:
        yield together


def extract(task: ExtractTask, part: PartWriter) -> Figures:
    """Write the lines of a task's sources as text shards; return the shard sizes and a tally of each source."""
    tallies = {each.number: Tally() for each in task.sources}
    passed_over = PassedOver()
    with TextShardWriter(part, task.shard_bytes, task.rule) as writer:
        for each in task.sources:
            each.stamp.require(each.source)
            if task.byte_range:
                documents = read_range(each.source, task.byte_range, task.config, tallies[each.number], passed_over)
            else:
                documents = read_source(each.source, task.config, tallies[each.number], passed_over)
            try:
                _write_lines(documents, each.number, tallies[each.number], task, writer)
            except UnsuitableError as error:
                # Unlike UnsuitableError, CorpusError can be pickled and so reach the main process from a worker.
                raise CorpusError(*error.messages) from None
            each.stamp.require(each.source)
    return {
        "shard_sizes": writer.sizes,
        "tallies": {str(number): tally.described() for number, tally in tallies.items()},
        "passed_over": passed_over.described(),
    }


def _write_lines(documents: Documents, source: int, tally: Tally, task: ExtractTask, writer: TextShardWriter) -> None:
    for document in documents:
        # Only the range in which a document starts counts it; a document that is not counted began in an earlier range.
        continues = task.byte_range is not None and not tally.documents
        writer.start_document(source, continues=continues)
        for line in document:
            writer.write(line)
