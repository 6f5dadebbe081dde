"""word2vec's text format: the mean vector of each word in the text, most frequent words first.

Memory holds one vector per distinct word. Words that contain white space, which readers of the format would split, are
left out and counted.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm

SUFFIX = ".vec"


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file; return the numbers of words written and left out."""
    means = _Means(contents.dimension)
    for block in blocks:
        means.add(block.tokens, block.vectors)
    words, order = means.words(), means.by_frequency()
    kept = [row for row in order if words[row].split() == [words[row]]]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(kept)} {contents.dimension}\n")
        for row in kept:
            file.write(f"{words[row]} {' '.join(map(str, means.mean(row)))}\n")
    return {"words": len(kept), "words_left_out": len(order) - len(kept)}


class _Means:
    """Sums and counts the vectors of each word, one row per word, in order of first occurrence."""

    def __init__(self, dimension: int) -> None:
        self._rows: dict[bytes, int] = {}
        self._sums = np.zeros((1024, dimension), np.float64)
        self._counts = np.zeros(1024, np.int64)

    def add(self, words: list[bytes], vectors: NDArray[Any]) -> None:
        """Add the words of one block, whose vectors have shape (N, 2P)."""
        if not words:
            return
        rows = np.array([self._rows.setdefault(word, len(self._rows)) for word in words], np.int64)
        while len(self._rows) > len(self._counts):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        order = np.argsort(rows, kind="stable")
        distinct, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
        self._sums[distinct] += np.add.reduceat(vectors[order].astype(np.float64), starts, axis=0)
        self._counts[distinct] += counts

    def words(self) -> list[str]:
        """Return the words in the order of their rows."""
        return [word.decode() for word in self._rows]

    def by_frequency(self) -> list[int]:
        """Return the rows by descending frequency, then in the order of the text."""
        return [int(row) for row in np.argsort(-self._counts[: len(self._rows)], kind="stable")]

    def mean(self, row: int) -> NDArray[np.float32]:
        """Return the mean vector of a word, shape (2P,)."""
        return np.asarray(self._sums[row] / self._counts[row]).astype(np.float32)
