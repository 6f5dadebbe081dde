"""Cutting a corpus into extraction tasks of about equal bytes."""

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

# Compressed text unpacks to about this many times its size.
_EXPANSION = 4
# A byte range is somewhat larger than asked, up to the end of its last line, and should still fill only one shard.
_SHARD_TOLERANCE = 1.5


@dataclass(frozen=True, kw_only=True)
class SplitTask:
    """Find the byte ranges of one large source."""

    source: NumberedSource
    config: TextConfig
    range_bytes: int


def split(task: SplitTask) -> list[ByteRange]:
    """Return the byte ranges of a source; none if it can only be read as a whole."""
    return split_source(task.source.source, task.config, task.range_bytes)


def cut(sources: list[NumberedSource], config: TextConfig, shard_bytes: int, engine: Engine) -> Iterator[ExtractTask]:
    """Yield the extraction tasks of a corpus in its order.

    A source larger than `shard_bytes` becomes one task for each byte range if it can be split. Other consecutive
    sources share a task until they have about that many bytes of text.
    """
    large = [each for each in sources if each.stamp.num_bytes > shard_bytes]
    splits = [SplitTask(source=each, config=config, range_bytes=shard_bytes) for each in large]
    ranges = {task.source.number: found for task, found in engine.run(split, splits)}
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
    """Yield lists of consecutive sources, each list with about `task_bytes` of text."""
    together: list[NumberedSource] = []
    num_bytes = 0
    for each in sources:
        together.append(each)
        num_bytes += each.stamp.num_bytes * (_EXPANSION if _is_packed(each.source) else 1)
        if num_bytes >= task_bytes:
            yield together
            together, num_bytes = [], 0
    if together:
        yield together


def _is_packed(source: Source) -> bool:
    return source.file_name.lower().endswith((*COMPRESSED_SUFFIXES, *ARCHIVE_SUFFIXES))
