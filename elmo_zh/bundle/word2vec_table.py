"""The word2vec vectors that a model's token table or, in character mode, its softmax started from.

A model that started from another model has that model's vectors.

In word2vec.hdf5 the dataset `vectors` is float16, shape (V, P): a row for each line of vocab.data, zeros for special
tokens and for words without a vector.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.bundle import BundleLayout
from elmo_zh.bundle.find_bundle import find_bundle
from elmo_zh.checks import check_token_sentences, check_tokens
from elmo_zh.errors import BundleError, RunError
from elmo_zh.hdf5 import create_hdf5
from elmo_zh.hdf5.foreign_file import ForeignFile
from elmo_zh.language import _
from elmo_zh.reader.token_layer import parts_of
from elmo_zh.run.layout import RunDir
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary, load_vocabulary
from elmo_zh.word2vec.vectors import WordVectors, load_word_vectors

_DATASET = "vectors"
# The largest float16 with 5 significant bits.
_LARGEST = 63488


@dataclass(frozen=True, eq=False)
class Word2Vec:
    """The word2vec vectors of a vocabulary.

        word2vec = Word2Vec.load("runs/latest/model")
        [vectors] = word2vec.embed_tokens([["今天", "天气", "很", "好"]])  # float32, (4, P)

    Attributes:
        vocabulary: The words.
        table: A row for each token of the vocabulary, zeros if it has no vector, float16, shape (V, P).
    """

    vocabulary: Vocabulary
    table: NDArray[np.float16]

    def __repr__(self) -> str:
        return f"<Word2Vec of {len(self.vocabulary):,} tokens: dimension {self.dimension}>"

    @classmethod
    def load(cls, path: str | Path) -> "Word2Vec":
        """Load the vectors of a bundle or a run.

        Args:
            path: The folder of a bundle, the name of an installed model, or the folder of a run.

        Raises:
            TypeError: If `path` is not a path.
            BundleError: If there is no bundle or run, or the bundle's vectors are missing or damaged.
            RunError: If the run's vectors are missing or damaged, or the vocabulary is damaged.
        """
        folder = find_bundle(path)
        layout, run = BundleLayout(folder), RunDir(folder)
        if layout.word2vec.is_file():
            vocabulary = load_vocabulary(layout.vocab)
            return cls(vocabulary, read_table(layout.word2vec, len(vocabulary)))
        if run.word2vec.is_file():
            vocabulary = load_vocabulary(run.vocab)
            return cls(vocabulary, build_table(load_word_vectors(run.word2vec, vocabulary), len(vocabulary)))
        message = _("{path} has no word2vec vectors. Use a model that was trained and exported with them.")
        raise (RunError if run.vocab_counts.is_file() else BundleError)(message.format(path=folder))

    def of_words(self, words: Iterable[str]) -> "Word2Vec":
        """Return the vectors of only these words; an unknown one gets the mean vector of the known words inside it.

        A word that contains no known word gets zeros. The new vocabulary has the special tokens first, then each
        distinct word once, in the order given.

        Raises:
            TypeError: If `words` is a single string, or an item is not a string.
        """
        distinct = tuple(check_tokens(words if isinstance(words, str) else dict.fromkeys(words), "of_words", "words"))
        parts = parts_of(self.vocabulary, (word for word in distinct if word not in self.vocabulary))
        table = self.table[[*range(len(SPECIALS)), *self.vocabulary.encode(distinct)]]
        for row, word in enumerate(distinct, start=len(SPECIALS)):
            if word in parts:
                table[row] = self.table[parts[word]].mean(axis=0, dtype=np.float32)
        return Word2Vec(Vocabulary((*SPECIALS, *distinct)), table)

    @property
    def dimension(self) -> int:
        """P, the length of each vector."""
        return int(self.table.shape[1])

    def rows(self, tokens: Iterable[str]) -> NDArray[np.int64]:
        """Return each token's row in `table`; words outside the vocabulary get the row of <UNK>, which is all zeros.

        Raises:
            TypeError: If `tokens` is a single string, or an item is not a string.
        """
        return np.array(self.vocabulary.encode(check_tokens(tokens, "rows", "tokens")), np.int64)

    def embed_tokens(self, sentences: Iterable[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return the vectors of segmented sentences.

        Args:
            sentences: One list of tokens per sentence.

        Returns:
            One array per sentence, float32, shape (n, P); zeros for words without a vector.

        Raises:
            TypeError: If a sentence is not a list of tokens, or a token is not a string.
        """
        checked = check_token_sentences(sentences, "word2vec.embed_tokens")
        return [self.table[self.rows(tokens)].astype(np.float32) for tokens in checked]


def build_table(vectors: WordVectors, num_tokens: int) -> NDArray[np.float16]:
    """Return one row per token of the vocabulary, float16, shape (V, P), clipping numbers that are out of range."""
    table = np.zeros((num_tokens, vectors.vectors.shape[1]), np.float16)
    table[vectors.rows] = _to_float16(vectors.vectors)
    return table


def _to_float16(array: NDArray[np.float32]) -> NDArray[np.float16]:
    most = np.finfo(np.float16).max
    return array.clip(-most, most).astype(np.float16)


def shorten(table: NDArray[np.float16]) -> NDArray[np.float16]:
    """Return a table rounded to 5 significant bits, so that the compressed file is about a third smaller."""
    bits = table.clip(-_LARGEST, _LARGEST).view(np.uint16)
    return ((bits + 0x20) & 0xFFC0).view(np.float16)


def write_table(path: Path, table: NDArray[np.float16]) -> None:
    """Write word2vec.hdf5, compressed, which saves about a seventh of its size."""
    with create_hdf5(path) as file:
        file.create_dataset(_DATASET, data=table, compression="gzip", shuffle=True)


def read_table(path: Path, num_tokens: int) -> NDArray[np.float16]:
    """Read word2vec.hdf5, float16, shape (V, P); raise BundleError if it does not have `num_tokens` rows of numbers."""
    file = ForeignFile(path)
    shape = file.shapes.get(_DATASET, ())
    width = shape[1] if len(shape) == 2 else 0
    return _to_float16(file.read_array(_DATASET, (num_tokens, width)))
