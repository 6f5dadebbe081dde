"""Fast inference: from segmented sentences to their vectors.

In one call, each distinct sentence is computed once, and so is the token vector of each distinct word. Sentences of
similar length are computed together, without affecting each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elmo_zh.reader.bilm import BatchReader, State
from elmo_zh.reader.lstm import Floats, Ids, iter_length_sorted
from elmo_zh.reader.token_layer import Composition, parts_of
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID

# Rows of <S>, </S> and the first word.
_BEGIN, _END, _FIRST_WORD = 0, 1, 2

Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddedSentence:
    """The vectors of a sentence, with its tokens.

    Attributes:
        vectors: In the `dtype` of the embedder, shape (L + 1, n, 2P), where n is the number of tokens.
        tokens: The n tokens.
        offsets: Start and end of each token in the sentence as given, in characters, end exclusive, int32, (n, 2).
            For a sentence given as tokens, positions refer to the tokens joined by single spaces.
        is_unknown: True for each token outside the vocabulary, bool, shape (n,); all False in character mode.
    """

    vectors: Vectors = field(repr=False)
    tokens: list[str]
    offsets: NDArray[np.int32] = field(repr=False)
    is_unknown: NDArray[np.bool_] = field(repr=False)


class SentenceVectors:
    """Computes the vectors of sentences with a biLM; `read_batch` runs its layers, by default `BiLMReader.read`."""

    def __init__(
        self,
        weights: ModelWeights,
        lexicon: Lexicon,
        batch_tokens: int,
        unknown: str,
        read_batch: BatchReader | None = None,
    ) -> None:
        self._reader, self._batch_tokens = weights.reader, batch_tokens
        self._read_batch = read_batch or self._reader.read
        self._word_vectors = WordVectors(weights, lexicon, unknown)

    def read(self, sentences: Sequence[Sequence[str]], dtype: str = "float32") -> list[Vectors]:
        """Return the vectors of each segmented sentence in `dtype`, shape (L + 1, n, 2P); n is 0 if it is empty."""
        shape = self._reader.shape
        vectors = [np.zeros((shape.num_layers + 1, 0, 2 * shape.projection_dim), dtype) for _ in sentences]
        places: dict[tuple[str, ...], list[int]] = {}
        for place, tokens in enumerate(sentences):
            if tokens:
                places.setdefault(tuple(tokens), []).append(place)
        distinct = list(places)
        word_vectors, numbered = self._word_vectors.number(distinct)
        for batch in iter_length_sorted([len(numbers) for numbers in numbered], self._batch_tokens):
            state = self._reader.start_state(len(batch))
            layers, _ = self._read_batch(word_vectors, [numbered[index] for index in batch], state)
            start = 0
            for index in batch:
                end = start + len(distinct[index])
                for place in places[distinct[index]]:
                    # A copy, so that no array keeps its whole batch in memory or shares memory with an equal sentence.
                    vectors[place] = layers[:, start:end].astype(dtype)
                start = end
        return vectors

    def follow(self, tokens: Sequence[str], state: State) -> tuple[Vectors, State]:
        """Return the vectors of a sentence that starts from a given state, and the state after it."""
        word_vectors, numbered = self._word_vectors.number([tuple(tokens)])
        return self._read_batch(word_vectors, numbered, state)


# Most words whose vectors from a character CNN are kept: about 100 MB in a model of the published size.
_MOST_KEPT_WORDS = 50_000


class WordVectors:
    """Computes the token layer's vectors, first for <S> and </S>, then for words.

    In token mode the input for a word outside the vocabulary is the vector of <UNK>. With `unknown` = backoff it is
    composed from the vectors of the known words in it (`Composition`), if it has any.
    """

    def __init__(self, weights: ModelWeights, lexicon: Lexicon, unknown: str = "unk") -> None:
        self._weights, self._lexicon = weights, lexicon
        self._is_token_mode = weights.shape.characters is None
        self._backs_off = unknown == "backoff" and self._is_token_mode
        self._composition: Composition | None = None
        self._marks = weights.token_vectors(lexicon.without_other_words(), [BEGIN_ID, END_ID])
        # The row of each word that the character CNN has already computed.
        self._kept: dict[str, int] = {}
        self._table = self._marks[:0]

    def __call__(self, words: Sequence[str]) -> Floats:
        """Return the vectors of <S>, </S> and then W distinct words, shape (2 + W, P)."""
        look_up = self._look_up if self._is_token_mode else self._remember
        return np.concatenate([self._marks, look_up(words)])

    def number(self, sentences: Sequence[tuple[str, ...]]) -> tuple[Floats, list[Ids]]:
        """Return the vectors of <S>, </S> and the distinct words, and each sentence, with marks, as row numbers."""
        rows: dict[str, int] = {}
        numbered = []
        for tokens in sentences:
            numbers = np.empty(len(tokens) + 2, np.int64)
            numbers[0], numbers[-1] = _BEGIN, _END
            numbers[1:-1] = [rows.setdefault(token, len(rows) + _FIRST_WORD) for token in tokens]
            numbered.append(numbers)
        return self(list(rows)), numbered

    def _look_up(self, words: Sequence[str]) -> Floats:
        ids = self._lexicon.encode(words)
        vectors = self._weights.token_vectors(self._lexicon, ids)
        if self._backs_off:
            vocabulary, places = self._lexicon.vocabulary, {word: place for place, word in enumerate(words)}
            unknown = (word for word, row in zip(words, ids, strict=True) if row == UNKNOWN_ID)
            for word, parts in parts_of(vocabulary, unknown).items():
                # Learned only if there is such a word.
                self._composition = self._composition or Composition.learn(self._weights.token_table, vocabulary)
                vectors[places[word]] = self._composition.row(parts)
        return vectors

    def _remember(self, words: Sequence[str]) -> Floats:
        new = [word for word in words if word not in self._kept]
        if len(self._kept) + len(new) > _MOST_KEPT_WORDS:
            self._kept.clear()
            new, self._table = list(words), self._marks[:0]
        if new:
            lexicon = self._lexicon.without_other_words()
            vectors = self._weights.token_vectors(lexicon, lexicon.encode(new))
            self._kept.update((word, len(self._table) + place) for place, word in enumerate(new))
            self._table = np.concatenate([self._table, vectors])
        return self._table[[self._kept[word] for word in words]]
