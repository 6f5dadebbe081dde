"""Texts as numbers: for each unit the rows of its vectors and the numbers of its characters; and padded batches."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.bundle.word2vec import Word2Vec
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.tasks.live_vectors import LiveVectors
from elmo_zh.tasks.networks.inputs import FIRST_CHARACTER, UNKNOWN_CHARACTER, Batch
from elmo_zh.tasks.units import UnitText
from elmo_zh.tasks.vector_cache import VectorCache

# Only the first characters of a long word are read.
_MOST_CHARACTERS = 16


@dataclass(frozen=True, eq=False)
class EncodedText:
    """The n units of a text as numbers.

    Attributes:
        elmo_rows: Row of each unit's token in the cache, 0 for none, int64, shape (n,).
        word2vec_rows: Its row in the word2vec table, 0 for none, int64, shape (n,).
        characters: Numbers of the unit's characters, 0 where padded, int64, shape (n, C).
        places: Place of the unit in its token, int64, shape (n,).
    """

    elmo_rows: NDArray[np.int64]
    word2vec_rows: NDArray[np.int64]
    characters: NDArray[np.int64]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places)


class Alphabet:
    """The characters with vectors of their own: those of the training texts that occur more than once."""

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self._numbers = {character: number for number, character in enumerate(characters, start=FIRST_CHARACTER)}

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Alphabet":
        """Return the characters that occur at least twice, the most frequent first."""
        counts = Counter(character for text in texts for character in text)
        frequent = [character for character, count in counts.items() if count > 1]
        return cls("".join(sorted(frequent, key=lambda character: (-counts[character], character))))

    def __len__(self) -> int:
        return FIRST_CHARACTER + len(self.characters)

    def spell(self, units: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of the characters of units, 0 where padded, int64, shape (n, C)."""
        width = min(max(map(len, units), default=1), _MOST_CHARACTERS)
        found = np.zeros((len(units), max(width, 1)), np.int64)
        for row, unit in enumerate(units):
            for place, character in enumerate(unit[:width]):
                found[row, place] = self._numbers.get(character, UNKNOWN_CHARACTER)
        return found


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """Turns texts into numbers and batches of tensors.

    Attributes:
        cache: The ELMo vectors of all sentences of the texts, or a biLM that computes them; None if they are no input.
        word2vec: The word2vec vectors; None if they are no input.
        alphabet: The characters; None if they are no input.
    """

    cache: VectorCache | LiveVectors | None
    word2vec: Word2Vec | None
    alphabet: Alphabet | None

    def encode(self, text: UnitText) -> EncodedText:
        """Return a text as numbers."""
        nothing = np.zeros(len(text.owners), np.int64)
        elmo_rows = word2vec_rows = nothing
        characters = np.zeros((len(text.owners), 1), np.int64)
        if self.cache is not None:
            elmo_rows = _of_owners(self.cache.rows(text.sentences), text.owners)
        if self.word2vec is not None:
            tokens = [token for sentence in text.sentences for token in sentence]
            word2vec_rows = _of_owners(self.word2vec.rows(tokens), text.owners)
        if self.alphabet is not None:
            characters = self.alphabet.spell([text.text[start:end] for start, end in text.units])
        return EncodedText(elmo_rows, word2vec_rows, characters, text.places)

    def batch(self, texts: Sequence[EncodedText]) -> Batch:
        """Return texts as a padded batch."""
        shape = (len(texts), max(1, *map(len, texts)))
        mask = np.arange(shape[1]) < np.array([len(text) for text in texts])[:, None]

        def padded(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
            found = np.zeros(shape, np.int64)
            for place, each in enumerate(rows):
                found[place, : len(each)] = each
            return found

        elmo = word2vec = torch.zeros(0)
        if self.cache is not None:
            elmo = self.cache.take(padded([text.elmo_rows for text in texts]))
        if self.word2vec is not None:
            word2vec = torch.from_numpy(self.word2vec.table[padded([text.word2vec_rows for text in texts])]).float()
        return Batch(
            mask=torch.from_numpy(mask),
            elmo=elmo,
            word2vec=word2vec,
            characters=self._characters(texts, shape),
            places=torch.from_numpy(padded([text.places for text in texts])),
        )

    def _characters(self, texts: Sequence[EncodedText], shape: tuple[int, int]) -> Tensor:
        if self.alphabet is None:
            return torch.zeros(0, dtype=torch.int64)
        found = np.zeros((*shape, max(text.characters.shape[1] for text in texts)), np.int64)
        for place, text in enumerate(texts):
            found[place, : len(text), : text.characters.shape[1]] = text.characters
        return torch.from_numpy(found)


def read_alike(word2vec: Word2Vec, embedder: ElmoEmbedder, sentences: Iterable[Sequence[str]]) -> Word2Vec:
    """Return word2vec vectors for sentences, in which unknown words are read as the embedder reads them."""
    if embedder.unknown != "backoff":
        return word2vec
    return word2vec.of_words(token for sentence in sentences for token in sentence)


def _of_owners(rows: NDArray[np.int64], owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each unit's token; 0, whose vector is zero, for a unit without a token."""
    with_none = np.concatenate([rows, np.zeros(1, np.int64)])
    return with_none[owners]
