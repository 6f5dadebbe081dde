"""First step of the segment stage: divide the corpus into tasks of roughly equal size, which write text shards."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from elmo_zh.config import TextConfig
from elmo_zh.corpus.content import ARCHIVE_SUFFIXES, COMPRESSED_SUFFIXES, UnsuitableError
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.corpus.read_source import ByteRange, read_range, read_source, split_source
from elmo_zh.corpus.sources import Source, Stamp
from elmo_zh.errors import CorpusError
from elmo_zh.run.job import Files, Json, Step, Work
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
    """Read several whole sources, or one byte range of a large one."""

    sources: tuple[NumberedSource, ...]
    byte_range: ByteRange | None = None

    @property
    def num_bytes(self) -> int:
        """Number of bytes to read from disk."""
        if self.byte_range:
            return self.byte_range.end - self.byte_range.start
        return sum(each.stamp.num_bytes for each in self.sources)


@dataclass(frozen=True)
class _Split:
    config: TextConfig
    range_bytes: int

    def __call__(self, numbered: NumberedSource, _files: Files) -> list[Json]:
        """Return the byte ranges of a source; empty if it can only be read as a whole."""
        return [asdict(byte_range) for byte_range in split_source(numbered.source, self.config, self.range_bytes)]


def cut(sources: list[NumberedSource], config: TextConfig, shard_bytes: int, work: Work) -> Iterator[ExtractTask]:
    """Yield the extraction tasks of a corpus in order: parts of a large source, or several small sources."""
    large = [numbered for numbered in sources if numbered.stamp.num_bytes > shard_bytes]
    step = Step(name="split", compute=_Split(config, shard_bytes), unit="files", total=len(large))
    parts = zip(large, work.run(step, large), strict=True)
    ranges = {numbered.number: list(map(ByteRange.restored, part.value())) for numbered, part in parts}
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
    """Return about how many bytes a source has when unpacked."""
    is_packed = numbered.source.file_name.lower().endswith((*COMPRESSED_SUFFIXES, *ARCHIVE_SUFFIXES))
    return numbered.stamp.num_bytes * (_EXPANSION if is_packed else 1)


@dataclass(frozen=True)
class Extract:
    """Writes the lines of a task's sources as text shards."""

    config: TextConfig
    shard_bytes: int
    rule: KeyRule | None

    def __call__(self, task: ExtractTask, files: Files) -> Json:
        """Return the sizes of the shards, the number of bytes read, and a tally of each source."""
        tallies = {numbered.number: Tally() for numbered in task.sources}
        passed_over = PassedOver()
        writer = TextShardWriter(files, int(_SHARD_TOLERANCE * self.shard_bytes), self.rule)
        for numbered in task.sources:
            source, tally = numbered.source, tallies[numbered.number]
            numbered.stamp.require(source)
            if task.byte_range:
                documents = read_range(source, task.byte_range, self.config, tally, passed_over)
            else:
                documents = read_source(source, self.config, tally, passed_over)
            try:
                for document in documents:
                    writer.start_document(numbered.number)
                    for line in document:
                        writer.write(line)
            except UnsuitableError as error:
                # Unlike UnsuitableError, CorpusError can be pickled and so reach the main process from a worker.
                raise CorpusError(*error.messages) from None
            numbered.stamp.require(source)
        writer.finish()
        return {
            "bytes": task.num_bytes,
            "shard_sizes": writer.sizes,
            "tallies": {number: tally.described() for number, tally in tallies.items()},
            "passed_over": passed_over.described(),
        }
