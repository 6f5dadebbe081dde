"""The files in the folder of an index, and the numbers in them; docs/contexts.md describes them for other programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.contexts.columns import COLUMN

# Bump it when a program that knows the old number would misread the new files.
INDEX_FORMAT = 3

# `count` is the number of occurrences in the texts; the other two say where a word's spelling and its postings end.
WORD = np.dtype([("end", "<i8"), ("count", "<i8"), ("postings_end", "<i8")])
# `start` is the first character of the text in its raw line, since a sentence may begin anywhere in it.
LINE = np.dtype([("end", "<i8"), ("source", "<i4"), ("number", "<i8"), ("start", "<i4"), ("tokens_end", "<i8")])
# `word` is the number of its word; `start` and `end` are its characters in the text of its line.
TOKEN = np.dtype([("word", "<i4"), ("start", "<i4"), ("end", "<i4")])
OCCURRENCE = np.dtype([("word", "<i4"), ("line", "<i4"), ("token", "<i4"), ("start", "<i4"), ("end", "<i4")])
POSTING, VECTOR, NORM = np.dtype("<i8"), np.dtype("<f2"), np.dtype("<f4")


class IndexLayout:
    """The paths of the files in an index folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Texts, model and settings of the index, and the sizes of the other files.
        self.info = path / "index.json"
        # `WORD` of each distinct token, sorted by spelling, including tokens without vectors; and the spellings in
        # UTF-8, one directly after the other.
        self.words, self.word_text = path / "words.npy", path / "words.utf8"
        # `LINE` of each line, in the order of the texts; the texts of lines, joined likewise; `TOKEN` of each token.
        self.lines, self.line_text = path / "lines.npy", path / "lines.utf8"
        self.tokens = path / "tokens.npy"
        # The columns of the lines, such as year and author: the distinct values of each column; and for each line the
        # places of its values among these, int32, shape (L, columns).
        self.column_values, self.columns = path / "columns.json", path / "columns.npy"
        # `OCCURRENCE` of each occurrence, in the order of the texts; and their numbers, word by word, ascending.
        self.occurrences, self.postings = path / "occurrences.npy", path / "postings.npy"
        # Copy of the words that the segmenter kept whole besides the model's, if there were any.
        self.user_dictionary = path / "user_dictionary.txt"

    def vectors(self, layer: int) -> Path:
        """Return the file with the vectors of all occurrences in one layer, float16, shape (N, 2P)."""
        return self.path / f"layer-{layer}.npy"

    def norms(self, layer: int) -> Path:
        """Return the file with the Euclidean norms of a layer's vectors, float32, shape (N,)."""
        return self.path / f"norms-{layer}.npy"

    def files(self, layers: Sequence[int]) -> list[Path]:
        """Return the paths of all files except `info`."""
        texts = [self.words, self.word_text, self.lines, self.line_text, self.tokens, self.columns, self.column_values]
        return [*texts, self.occurrences, self.postings, *map(self.vectors, layers), *map(self.norms, layers)]

    def arrays(
        self, counts: Mapping[str, int], layers: Sequence[int], dimension: int
    ) -> dict[Path, tuple[np.dtype[Any], tuple[int, ...]]]:
        """Return the dtype and shape of each array file, for an index with these counts."""
        num_occurrences = counts["occurrences"]
        return {
            self.words: (WORD, (counts["distinct_words"],)),
            self.lines: (LINE, (counts["lines"],)),
            self.tokens: (TOKEN, (counts["tokens"],)),
            self.columns: (COLUMN, (counts["lines"], counts["columns"])),
            self.occurrences: (OCCURRENCE, (num_occurrences,)),
            self.postings: (POSTING, (num_occurrences,)),
            **{self.vectors(layer): (VECTOR, (num_occurrences, dimension)) for layer in layers},
            **{self.norms(layer): (NORM, (num_occurrences,)) for layer in layers},
        }
