"""Second step of the segment stage: find repeated lines by their keys, in tasks that divide the range of keys."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.run.arrays import write_numbers
from elmo_zh.run.job import Files, Step, Work
from elmo_zh.segmenting.extract import KEYS, KeyRule, TextShard

# Why a line is left out; these numbers are in the bucket files.
DUPLICATE, BOILERPLATE = 0, 1
# A bucket task of this size takes about 120 MB of memory.
_BUCKET_KEYS = 1_000_000


def key_rule(config: TextConfig) -> KeyRule | None:
    """Return the rule for comparing lines, or None if the settings call for no comparison."""
    if not config.drop_duplicates and not config.boilerplate_copies:
        return None
    least = config.duplicate_min_characters if config.drop_duplicates else 2**31
    return KeyRule(least_characters=least, has_short=config.boilerplate_copies > 0)


@dataclass(frozen=True)
class RepeatedLines:
    """The files that list the lines to leave out: uint32 rows of shard, line and reason, sorted, shape (n, 3)."""

    paths: tuple[Path, ...]

    def in_shard(self, shard: int) -> dict[int, int]:
        """Return the numbers of the lines to leave out of a text shard, with the reason for each."""
        found: dict[int, int] = {}
        for path in self.paths:
            if path.stat().st_size:
                lines = np.memmap(path, "<u4", "r").reshape(-1, 3)
                first, last = np.searchsorted(lines[:, 0], [shard, shard + 1])
                found.update((int(line), int(reason)) for _, line, reason in lines[first:last])
        return found


def find_repeated(shards: Sequence[TextShard], config: TextConfig, work: Work) -> RepeatedLines | None:
    """Find the lines to leave out: all copies but the first, and all boilerplate; None if no lines are compared."""
    if key_rule(config) is None:
        return None
    num_buckets = -(-sum(len(shard.keys()) for shard in shards) // _BUCKET_KEYS)
    bounds = [bucket * 2**64 // max(1, num_buckets) for bucket in range(num_buckets + 1)]
    search = _Search(tuple(shards), config.boilerplate_copies)
    step = Step(name="repeated", compute=search, total=num_buckets)
    return RepeatedLines(tuple(part.file("lines") for part in work.run(step, pairwise(bounds))))


@dataclass(frozen=True)
class _Search:
    shards: tuple[TextShard, ...]
    most_copies: int  # lines with more copies are boilerplate

    def __call__(self, bounds: tuple[int, int], files: Files) -> None:
        """Write the shards, numbers and reasons of the lines to leave out whose keys are in a range, sorted."""
        found = [_keys_between(shard, *bounds) for shard in self.shards]
        keys = np.concatenate([np.zeros(0, KEYS), *found])
        shards = np.repeat(np.arange(len(found), dtype=np.uint32), np.array([len(some) for some in found], np.int64))
        # A stable sort: equal keys come together, in the order of the corpus.
        order = np.argsort(keys["key"], kind="stable")
        lines, shards = keys["line"][order], shards[order]
        is_duplicate, is_boilerplate = repeated_keys(keys["key"][order], self.most_copies)
        left_out = np.flatnonzero(is_boilerplate | is_duplicate)
        reasons = np.where(is_boilerplate[left_out], BOILERPLATE, DUPLICATE)
        table = np.stack([shards[left_out], lines[left_out], reasons.astype(np.uint32)], axis=1)
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        with files.file("lines") as unfinished:
            write_numbers(unfinished, table.astype("<u4"))


def repeated_keys(keys: NDArray[np.uint64], most_copies: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of the sorted keys are duplicates, and which are boilerplate (none if `most_copies` is 0)."""
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, np.int64)
    copies = np.diff(np.r_[starts, len(keys)])
    is_duplicate = keys & np.uint64(1) == 1
    is_duplicate[starts] = False
    return is_duplicate, np.repeat((copies > most_copies) & (most_copies > 0), copies)


def _keys_between(shard: TextShard, start: int, end: int) -> NDArray[Any]:
    keys = shard.keys()
    first, last = (bisect_left(keys, bound, key=lambda row: int(row["key"])) for bound in (start, end))
    # A copy, so that only one shard is mapped at a time.
    return np.array(keys[first:last])
