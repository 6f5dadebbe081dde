"""Lines that stand in a corpus more than once, found by their keys in memory that does not grow with it.

The range of keys is cut into buckets of about equally many; each is a task that sorts the keys of all pieces in it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.parts import Figures, PartWriter, run_parts
from elmo_zh.segmenting.pieces import KeyRule, Piece
from elmo_zh.segmenting.work_dir import part_name

# Why a line is left out, as the numbers in a bucket's file say.
DUPLICATE, BOILERPLATE = 0, 1
# Some 30 MB of memory for a task.
_BUCKET_KEYS = 250_000


def key_rule(config: TextConfig) -> KeyRule | None:
    """Return which lines have to be compared by the settings, None if no line has."""
    if not config.drop_duplicates and not config.boilerplate_copies:
        return None
    least = config.duplicate_min_characters if config.drop_duplicates else 2**31
    return KeyRule(least_characters=least, has_short=config.boilerplate_copies > 0)


@dataclass(frozen=True, kw_only=True)
class BucketTask:
    """The keys from `start` up to `end`, which None leaves open, of all pieces."""

    start: int
    end: int | None
    pieces: tuple[Piece, ...]
    most_copies: int


@dataclass(frozen=True)
class RepeatedLines:
    """The files that name the lines to be left out: uint32 of shape (n, 3), by piece and line."""

    paths: tuple[Path, ...]

    def in_piece(self, piece: int) -> dict[int, int]:
        """Return the lines of a piece that are to be left out, and why."""
        found: dict[int, int] = {}
        for path in self.paths:
            if path.stat().st_size:
                lines = np.memmap(path, "<u4", "r").reshape(-1, 3)
                first, last = np.searchsorted(lines[:, 0], [piece, piece + 1])
                found.update((int(line), int(reason)) for _, line, reason in lines[first:last])
        return found


def find_repeated(pieces: Sequence[Piece], config: TextConfig, folder: Path, engine: Engine) -> RepeatedLines | None:
    """Find the lines to be left out: all but the first of equal ones, or every one of those that come too often.

    Args:
        pieces: All of the corpus, in its order.
        config: Says which lines.
        folder: For the parts that name them.
        engine: Where to search.
    """
    if key_rule(config) is None:
        return None
    num_keys = sum(piece.keys.stat().st_size // 8 for piece in pieces)
    num_buckets = -(-num_keys // _BUCKET_KEYS)
    bounds = [bucket * 2**64 // max(1, num_buckets) for bucket in range(num_buckets)]
    tasks = {
        part_name(number): BucketTask(start=start, end=end, pieces=tuple(pieces), most_copies=config.boilerplate_copies)
        for number, (start, end) in enumerate(pairwise([*bounds, None]))
        if start is not None
    }
    for _ in run_parts(engine, search_bucket, tasks, folder):
        pass
    return RepeatedLines(tuple(folder / f"{name}.lines" for name in tasks))


def search_bucket(task: BucketTask, writer: PartWriter) -> Figures:
    """Write piece, line and reason of the lines of a bucket that are to be left out, in order."""
    keys, pieces, lines = _load_bucket(task)
    # Equal keys stand together, those of the earlier pieces and lines first.
    order = np.argsort(keys, kind="stable")
    keys, pieces, lines = keys[order], pieces[order], lines[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, np.int64)
    copies = np.diff(np.r_[starts, len(keys)])
    is_first = np.zeros(len(keys), np.bool_)
    is_first[starts] = True
    is_boilerplate = np.repeat(copies > task.most_copies, copies) if task.most_copies else np.zeros_like(is_first)
    is_duplicate = ~is_first & (keys & np.uint64(1) == 1)
    left_out = np.flatnonzero(is_boilerplate | is_duplicate)
    reasons = np.where(is_boilerplate[left_out], BOILERPLATE, DUPLICATE)
    table = np.stack([pieces[left_out], lines[left_out], reasons.astype(np.uint32)], axis=1)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    with writer.file("lines") as unfinished:
        table.astype("<u4").tofile(unfinished)
    return {}


def _load_bucket(task: BucketTask) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the keys of a bucket, in the order of pieces and, of equal keys, of lines; and where they are from."""
    found = list(_slices(task))
    keys = np.concatenate([np.zeros(0, np.uint64), *(keys for _, keys, _ in found)])
    lines = np.concatenate([np.zeros(0, np.uint32), *(lines for _, _, lines in found)])
    pieces = np.repeat(
        np.array([number for number, _, _ in found], np.uint32), np.array([len(keys) for _, keys, _ in found], np.int64)
    )
    return keys, pieces, lines


def _slices(task: BucketTask) -> Iterator[tuple[int, NDArray[np.uint64], NDArray[np.uint32]]]:
    for number, piece in enumerate(task.pieces):
        keys, lines = piece.open_keys()
        first = int(np.searchsorted(keys, np.uint64(task.start)))
        last = len(keys) if task.end is None else int(np.searchsorted(keys, np.uint64(task.end)))
        if last > first:
            # Copies, so that no more than one piece is mapped at a time.
            yield number, np.array(keys[first:last]), np.array(lines[first:last])
