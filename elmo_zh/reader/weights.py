"""The weights of a trained biLM and its softmax as NumPy arrays, and its token layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.reader.bilm import BiLMReader, BiLMShape, State
from elmo_zh.reader.lstm import Floats, Ids, mark_sentence
from elmo_zh.reader.token_layer import encode_words
from elmo_zh.vocabulary.lexicon import Alphabet, Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

_CNN = "bilm.character_cnn."


def build_lexicon(shape: BiLMShape, vocabulary: Vocabulary | None, alphabet: Alphabet) -> Lexicon:
    """Return the lexicon that maps words to a model's input ids; only character mode works without a vocabulary."""
    num_slots = shape.characters.num_slots if shape.characters else None
    return Lexicon(vocabulary or Vocabulary(SPECIALS), num_slots, alphabet=alphabet)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelWeights:
    """A trained biLM, and its softmax if it has one.

    Attributes:
        shape: The architecture.
        arrays: The weights, float32, by the names of the parameters in `model.language_model`; `bundle.weights` lists
            them with their names in the file.
        warm_state: The state to start sentences from, for one sentence (B = 1), or None for zeros.
    """

    shape: BiLMShape
    arrays: Mapping[str, Floats]
    warm_state: State | None = None

    @property
    def has_softmax(self) -> bool:
        """Whether the model predicts words."""
        return "softmax.weight" in self.arrays

    @property
    def token_table(self) -> Floats:
        """The vectors of the vocabulary's words in token mode, shape (V, P)."""
        return self.arrays["bilm.token_table.weight"]

    @cached_property
    def is_tied(self) -> bool:
        """Whether the softmax equals the token table, as a tied softmax does."""
        is_token_mode = self.shape.characters is None
        return is_token_mode and self.has_softmax and np.array_equal(self.token_table, self.arrays["softmax.weight"])

    @cached_property
    def reader(self) -> BiLMReader:
        """The LSTM layers, prepared to read sentences."""
        return BiLMReader(self.shape, self.arrays, self.warm_state)

    def token_vectors(self, lexicon: Lexicon, ids: Sequence[int] | NDArray[Any]) -> Floats:
        """Return the token layer's vectors of W input ids of a lexicon, shape (W, P)."""
        if self.shape.characters is None:
            return self.token_table[np.asarray(ids, np.int64)]
        weights = {name.removeprefix(_CNN): array for name, array in self.arrays.items() if name.startswith(_CNN)}
        words = lexicon.targets(np.asarray(ids, np.int64))
        return encode_words(self.shape.characters, weights, lexicon.character_ids(ids), words)

    def number_words(self, lexicon: Lexicon, sentences: Sequence[NDArray[Any]]) -> tuple[Floats, list[Ids]]:
        """Return word vectors, shape (W, P), and the rows of these vectors for each sentence of ids and its marks."""
        marked = [mark_sentence(sentence) for sentence in sentences]
        if self.shape.characters is None:
            return self.token_table, marked
        distinct, numbers = np.unique(np.concatenate(marked), return_inverse=True)
        ends = np.cumsum([len(sentence) for sentence in marked])[:-1]
        return self.token_vectors(lexicon, distinct), np.split(numbers.astype(np.int64), ends)
