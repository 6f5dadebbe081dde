"""Word vectors for the rows of a vocabulary, the job of training them, and their files in word2vec's text format."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import Word2vecConfig
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import RunError
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
    """Read the vectors of the words in the vocabulary from a file in word2vec's text format.

    Raises:
        RunError: If a line does not have `dimension` values, or a value is not finite.
    """
    rows_by_word = {word: row for row, word in enumerate(vocabulary.tokens) if row >= len(SPECIALS)}
    found: dict[int, NDArray[np.float32]] = {}
    for number, line in enumerate(iter_lines(path), start=1):
        word, *numbers = line.rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and word.isdecimal() and (dimension != 1 or numbers == ["1"]):
            continue  # the header: number of words and dimension
        if len(numbers) != dimension:
            raise RunError(
                f"{path}: line {number} has {len(numbers)} numbers; expected {dimension} (model.projection_dim)."
                " Give vectors of that length, or change model.projection_dim."
            )
        row = rows_by_word.get(word)
        if row is not None and row not in found:
            found[row] = _parse_vector(numbers, path, number)
    rows = np.array(sorted(found), np.int64)
    vectors = np.array([found[row] for row in rows], np.float32).reshape(len(rows), dimension)
    return WordVectors(rows=rows, vectors=vectors)


def _parse_vector(numbers: Sequence[str], path: Path, line: int) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float32)
    except ValueError:
        vector = np.full(1, np.nan, np.float32)
    if not np.isfinite(vector).all():
        raise RunError(f"{path}: line {line} contains a value that is not a finite number. Correct or remove the line.")
    return vector
