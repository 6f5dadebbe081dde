"""Vectors from other programs: one vector for each example (.npy), or for each word (word2vec's text format)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle.word2vec_table import Word2Vec
from elmo_zh.config.task_settings import HeadSettings
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import OptionError
from elmo_zh.language import _
from elmo_zh.tasks.encode_texts import Texts, sentences_of
from elmo_zh.tasks.linear import WORD2VEC, Features
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary
from elmo_zh.word2vec.vectors import load_word_vectors


@dataclass(frozen=True, eq=False)
class OtherVectors:
    """A row for each example, shape (N, D); or vectors of words."""

    rows: NDArray[Any] | None = None
    words: Word2Vec | None = None

    def features(self, texts: Texts) -> Features:
        """Return the features of a linear model: the rows, or the pooled vectors of each text's words."""
        if self.rows is not None:
            return Features([self.rows], np.array([], np.str_))
        return Features.of(WORD2VEC, texts, None, self.words)


def load_vectors(path: Path, texts: Texts, settings: HeadSettings) -> OtherVectors:
    """Read a file of vectors; raise OptionError if it does not suit the data.

    A word without a vector of its own gets the mean vector of the words inside it, as for `embed.unknown=backoff`.
    """
    if settings.regression or (settings.kind == "tag" and path.suffix == ".npy"):
        raise OptionError(
            _("--vectors {path}: vectors of examples (.npy) are for classes, vectors of words also for tags.").format(
                path=path
            )
        )
    if path.suffix == ".npy":
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
        if rows.ndim != 2 or len(rows) != len(texts) or rows.dtype.kind != "f":
            raise OptionError(
                _(
                    "--vectors {path}: the array is {dtype} of shape {shape}; expected a row of floating-point numbers"
                    " for each of {number} examples, in the order of the training, development and test files."
                ).format(path=path, dtype=rows.dtype, shape=rows.shape, number=f"{len(texts):,}")
            )
        return OtherVectors(rows=rows)
    words = {word for sentence in sentences_of(texts) for word in sentence}
    parts = {word[start:end] for word in words for start in range(len(word)) for end in range(start + 1, len(word) + 1)}
    candidates = Vocabulary((*SPECIALS, *sorted(parts - set(SPECIALS))))
    vectors = load_word_vectors(path, candidates, _dimension(path))
    table = np.concatenate([np.zeros((len(SPECIALS), vectors.vectors.shape[1]), np.float32), vectors.vectors])
    vocabulary = Vocabulary((*SPECIALS, *(candidates.tokens[row] for row in vectors.rows)))
    return OtherVectors(words=Word2Vec(vocabulary, table.astype(np.float16)).of_words(sorted(words)))


def _dimension(path: Path) -> int:
    """Return the length of the vectors: the second number of the header, or the length of the first line."""
    first = next(iter(iter_lines(path)), "").rstrip(" ").split(" ")
    return int(first[1]) if len(first) == 2 and first[1].isdecimal() else max(1, len(first) - 1)
