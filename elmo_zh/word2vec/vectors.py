"""Word vectors for the rows of a vocabulary, the job of training them, and their files in word2vec's text format."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.run.files import atomic_path
from elmo_zh.vocabulary.vocabulary import SPECIALS, UNKNOWN_ID, Vocabulary


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Vectors for some of a vocabulary's rows."""

    rows: NDArray[np.int64]  # Row numbers, int64, shape (num_found,)
    vectors: NDArray[np.float32]  # Vectors of these rows, float32, shape (num_found, dimension)


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """The text to train on, the vocabulary rows that get vectors, and the settings; see `train_word2vec`."""

    rows: NDArray[np.int64]
    files: Sequence[Path]
    vocabulary: Vocabulary
    counts: Sequence[int]
    dimension: int
    config: Word2vecConfig

    @property
    def num_tokens(self) -> int:
        """The total number of tokens in all epochs."""
        return self.config.epochs * sum(self.counts[UNKNOWN_ID:])


def save_word_vectors(path: Path, vocabulary: Vocabulary, vectors: WordVectors) -> None:
    """Write vectors in word2vec's text format, with enough digits to restore float32 values exactly."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(vectors.rows)} {vectors.vectors.shape[1]}\n")
        for row, vector in zip(vectors.rows, vectors.vectors, strict=True):
            file.write(f"{vocabulary.tokens[row]} {' '.join(map(str, vector))}\n")


def load_word_vectors(path: Path, vocabulary: Vocabulary, dimension: int) -> WordVectors:
    """Read the vectors that `save_word_vectors` wrote; raise RunError for a line that it would not have written."""
    rows = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
    vectors: dict[int, NDArray[np.float32]] = {}
    for number, line in islice(enumerate(iter_lines(path, drop_mark=False), start=1), 1, None):
        word, *numbers = line.split(" ")
        try:
            vector = np.array(numbers, np.float32)
        except ValueError:
            vector = np.zeros(0, np.float32)
        if word not in rows or len(vector) != dimension or not np.isfinite(vector).all():
            raise RunError(
                _("{path}: line {number} is damaged. Recreate the file with: {value}").format(
                    path=path, number=number, value=command("word2vec", "--run", path.parent, "--force")
                )
            )
        vectors[rows[word]] = vector
    found = np.array(sorted(vectors), np.int64)
    return WordVectors(rows=found, vectors=np.array([vectors[row] for row in found]).reshape(len(found), dimension))


def has_spread(vectors: NDArray[np.float32]) -> bool:
    """Return whether vectors differ; from one vector, or many alike, a table would start with equal rows."""
    return len(vectors) > 1 and bool(np.ptp(vectors, axis=0).any())
