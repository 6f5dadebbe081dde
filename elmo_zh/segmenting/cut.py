"""The work of reading a corpus, cut into tasks of about equal bytes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby

from elmo_zh.config import TextConfig
from elmo_zh.corpus.names import ARCHIVE_SUFFIXES
from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES
from elmo_zh.corpus.ranges import ByteRange, split_source
from elmo_zh.corpus.sources import Source
from elmo_zh.engine.engine import Engine
from elmo_zh.segmenting.duplicates import key_rule
from elmo_zh.segmenting.extract import ExtractTask, NumberedSource

# What text packs to about a quarter of.
_EXPANSION = 4
# A range has some more bytes than wanted, up to the end of its last line, and should be one piece nevertheless.
_PIECE_SHARE = 1.5


@dataclass(frozen=True, kw_only=True)
class SplitTask:
    """A source that may be split."""

    source: NumberedSource
    config: TextConfig
    range_bytes: int


def split(task: SplitTask) -> list[ByteRange]:
    """Return the ranges of a source, none if it is read as a whole."""
    return split_source(task.source.source, task.config, task.range_bytes)


def _is_packed(source: Source) -> bool:
    return source.file_name.lower().endswith((*COMPRESSED_SUFFIXES, *ARCHIVE_SUFFIXES))


def _groups(sources: Iterable[NumberedSource], most_bytes: int) -> Iterator[list[NumberedSource]]:
    """Yield sources that follow each other, together of about so many bytes of text."""
    group: list[NumberedSource] = []
    num_bytes = 0
    for each in sources:
        group.append(each)
        num_bytes += each.stamp.num_bytes * (_EXPANSION if _is_packed(each.source) else 1)
        if num_bytes >= most_bytes:
            yield group
            group, num_bytes = [], 0
    if group:
        yield group


def cut(sources: list[NumberedSource], config: TextConfig, shard_bytes: int, engine: Engine) -> Iterator[ExtractTask]:
    """Yield the tasks of a corpus in its order: ranges of large files that can be split, else whole files together."""
    large = [each for each in sources if each.stamp.num_bytes > shard_bytes]
    splits = [SplitTask(source=each, config=config, range_bytes=shard_bytes) for each in large]
    ranges = {task.source.number: found for task, found in engine.run(split, splits)}
    numbers = count()
    task = partial(ExtractTask, config=config, piece_bytes=int(_PIECE_SHARE * shard_bytes), rule=key_rule(config))
    for is_split, some in groupby(sources, lambda each: bool(ranges.get(each.number))):
        if is_split:
            for each in some:
                for part in ranges[each.number]:
                    yield task(number=next(numbers), sources=(each,), part=part)
        else:
            for group in _groups(some, shard_bytes):
                yield task(number=next(numbers), sources=tuple(group), part=None)
