"""The files of an index of occurrences, and the arrays in them; docs/contexts.md describes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Rises when a program that knows the old number would misread the new files.
# Format 1 has no `start` of lines, so the places in an index of split lines are unknown.
INDEX_FORMAT = 2

# `count` is the number of occurrences in the texts; the other two say where a word's spelling and its postings end.
WORD = np.dtype([("end", "<i8"), ("count", "<i8"), ("postings_end", "<i8")])
# `start` is the first character of the text in its raw line, since a sentence may begin anywhere in it.
LINE = np.dtype([("end", "<i8"), ("source", "<i4"), ("number", "<i8"), ("start", "<i4")])
LINE_OF_FORMAT_1 = np.dtype(LINE.descr[:3])
OCCURRENCE = np.dtype([("word", "<i4"), ("line", "<i4"), ("token", "<i4"), ("start", "<i4"), ("end", "<i4")])
POSTING, VECTOR, NORM = np.dtype("<i8"), np.dtype("<f2"), np.dtype("<f4")


@dataclass(frozen=True)
class IndexLayout:
    """The names of the files in the folder of an index."""

    path: Path

    @property
    def info(self) -> Path:
        """Texts, model and settings of the index, and the sizes of the other files."""
        return self.path / "index.json"

    @property
    def words(self) -> Path:
        """`WORD` of each word, sorted by spelling."""
        return self.path / "words.npy"

    @property
    def word_text(self) -> Path:
        """The spellings of the words, in UTF-8, without anything between them."""
        return self.path / "words.utf8"

    @property
    def lines(self) -> Path:
        """`LINE` of each line that holds an occurrence, in the order of the texts."""
        return self.path / "lines.npy"

    @property
    def line_text(self) -> Path:
        """The texts of these lines, in UTF-8, without anything between them."""
        return self.path / "lines.utf8"

    @property
    def occurrences(self) -> Path:
        """`OCCURRENCE` of each occurrence, in the order of the texts."""
        return self.path / "occurrences.npy"

    @property
    def postings(self) -> Path:
        """Numbers of the occurrences, word by word, ascending."""
        return self.path / "postings.npy"

    def vectors(self, layer: int) -> Path:
        """Vectors of the occurrences in a layer, float16, shape (N, 2P)."""
        return self.path / f"layer-{layer}.npy"

    def norms(self, layer: int) -> Path:
        """Euclidean norms of these vectors, float32, shape (N,)."""
        return self.path / f"norms-{layer}.npy"

    def files(self, layers: Sequence[int]) -> list[Path]:
        """Return all files but `info`."""
        texts = [self.words, self.word_text, self.lines, self.line_text, self.occurrences, self.postings]
        return [*texts, *map(self.vectors, layers), *map(self.norms, layers)]


def is_index(folder: Path) -> bool:
    """Return whether a folder is an index."""
    layout = IndexLayout(folder)
    return layout.info.is_file() and layout.occurrences.is_file()


def array_kinds(
    layout: IndexLayout, counts: Mapping[str, int], layers: Sequence[int], dimension: int, number: int = INDEX_FORMAT
) -> dict[Path, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return dtype and shape of each array file of an index with these counts, in this number of the format."""
    num_occurrences = counts["occurrences"]
    return {
        layout.words: (WORD, (counts["words"],)),
        layout.lines: (LINE if number > 1 else LINE_OF_FORMAT_1, (counts["kept_lines"],)),
        layout.occurrences: (OCCURRENCE, (num_occurrences,)),
        layout.postings: (POSTING, (num_occurrences,)),
        **{layout.vectors(layer): (VECTOR, (num_occurrences, dimension)) for layer in layers},
        **{layout.norms(layer): (NORM, (num_occurrences,)) for layer in layers},
    }
