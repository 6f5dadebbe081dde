"""Second step of the segment stage: find repeated lines by their keys, in tasks that divide the range of keys."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.run.arrays import write_numbers
from elmo_zh.run.job import Files, Step, Work
from elmo_zh.segmenting.extract import KEYS, TextShard

# A bucket task of this size takes about 120 MB of memory.
_BUCKET_KEYS = 1_000_000


@dataclass(frozen=True)
class RepeatedLines:
    """The files that list the lines to leave out: uint32 rows of shard and line, sorted, shape (n, 2)."""

    paths: tuple[Path, ...]

    def in_shard(self, shard: int) -> set[int]:
        """Return the numbers of the lines to leave out of a text shard."""
        numbers: set[int] = set()
        for path in self.paths:
            if path.stat().st_size:
                lines = np.memmap(path, "<u4", "r").reshape(-1, 2)
                first, last = np.searchsorted(lines[:, 0], [shard, shard + 1])
                numbers.update(lines[first:last, 1].tolist())
        return numbers


def find_repeated(shards: Sequence[TextShard], work: Work) -> RepeatedLines:
    """Find the lines to leave out: all copies but the first of each line that has a key."""
    num_buckets = -(-sum(len(shard.keys()) for shard in shards) // _BUCKET_KEYS)
    bounds = [bucket * 2**64 // max(1, num_buckets) for bucket in range(num_buckets + 1)]
    step = Step(name="repeated", compute=_Search(tuple(shards)), total=num_buckets)
    return RepeatedLines(tuple(part.file("lines") for part in work.run(step, pairwise(bounds))))


@dataclass(frozen=True)
class _Search:
    shards: tuple[TextShard, ...]

    def __call__(self, bounds: tuple[int, int], files: Files) -> None:
        """For the keys in a range, write the shard and number of each line to leave out, sorted."""
        rows = [_keys_between(shard, *bounds) for shard in self.shards]
        keys = np.concatenate([np.zeros(0, KEYS), *rows])
        shards = np.repeat(np.arange(len(rows), dtype=np.uint32), np.array(list(map(len, rows)), np.int64))
        # The first of each key, in the order of the corpus, stays.
        _, first = np.unique(keys["key"], return_index=True)
        table = np.delete(np.stack([shards, keys["line"]], axis=1), first, axis=0)
        with files.file("lines") as unfinished:
            write_numbers(unfinished, table[np.lexsort((table[:, 1], table[:, 0]))].astype("<u4"))


def _keys_between(shard: TextShard, start: int, end: int) -> NDArray[Any]:
    keys = shard.keys()
    first, last = (bisect_left(keys, bound, key=lambda row: int(row["key"])) for bound in (start, end))
    # A copy, so that only one shard is mapped at a time.
    return np.array(keys[first:last])
