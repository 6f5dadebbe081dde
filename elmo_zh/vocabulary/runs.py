"""Runs: words and their counts in a file, sorted, so that files of any size can be merged in little memory.

A line is a word, U+0020, which stands in no word, and the count. Words are sorted by their UTF-8 bytes, which is the
order of their code points.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

# Files that are read at the same time; each takes a few hundred kilobytes.
MOST_MERGED = 16

_BUFFER_BYTES = 2**18

Counted = tuple[bytes, int]


def write_run(path: Path, counted: Iterable[Counted]) -> None:
    """Write words, which come sorted, and their counts."""
    with path.open("wb", _BUFFER_BYTES) as file:
        file.writelines(b"%b %d\n" % entry for entry in counted)


def iter_run(path: Path) -> Iterator[Counted]:
    """Yield the words of a run and their counts."""
    with path.open("rb", _BUFFER_BYTES) as file:
        for line in file:
            word, _, count = line.rpartition(b" ")
            yield word, int(count)


def iter_merged(paths: Iterable[Path]) -> Iterator[Counted]:
    """Yield each word of some runs once, sorted, with its counts added up."""
    with ExitStack() as stack:
        runs = [stack.enter_context(closing(iter_run(path))) for path in paths]  # type: ignore[type-var]
        for word, entries in groupby(merge(*runs), key=itemgetter(0)):
            yield word, sum(count for _, count in entries)
