"""Words to model inputs: ids, and in character mode the spelling of each word."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.alphabet import BYTES, Alphabet
from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID, Vocabulary


class Lexicon:
    """The input ids of words.

    In token mode they are vocabulary rows; words outside the vocabulary have the row of <UNK>. In character mode (with
    `num_slots` characters for each word) other words get ids of their own above the rows, in order of first occurrence,
    because each has its own spelling.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        num_slots: int | None,
        other_words: Iterable[str] = (),
        alphabet: Alphabet = BYTES,
    ) -> None:
        self.vocabulary, self.num_slots, self.alphabet = vocabulary, num_slots, alphabet
        self.other_words = list(other_words)
        self._other_ids: dict[str, int] | None = None  # built on demand: training only reads ids

    def without_other_words(self) -> "Lexicon":
        """Return a lexicon for the same model without words outside the vocabulary."""
        return Lexicon(self.vocabulary, self.num_slots, alphabet=self.alphabet)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Return the input ids of text tokens."""
        if self.num_slots is None:
            return self.vocabulary.encode(tokens)
        tokens = [self.alphabet.cut(token, self.num_slots) for token in tokens]
        ids = self.vocabulary.encode(tokens)
        return [self._other_id(token) if row == UNKNOWN_ID else row for row, token in zip(ids, tokens, strict=True)]

    def _other_id(self, word: str) -> int:
        if self._other_ids is None:
            first = len(self.vocabulary)
            self._other_ids = {known: first + index for index, known in enumerate(self.other_words)}
        found = self._other_ids.get(word)
        if found is None:
            found = self._other_ids[word] = len(self.vocabulary) + len(self.other_words)
            self.other_words.append(word)
        return found

    def targets(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the vocabulary rows to predict for input ids of any shape."""
        if self.num_slots is None:
            return ids
        return np.where(ids < len(self.vocabulary), ids, UNKNOWN_ID)

    def character_ids(self, ids: Iterable[int]) -> NDArray[np.int64]:
        """Return the spellings of input ids, shape (W, C); character mode only."""
        spellings = [self._spell(int(row)) for row in ids]
        return np.stack(spellings) if spellings else np.zeros((0, self.num_slots or 0), np.int64)

    def _spell(self, row: int) -> NDArray[np.int64]:
        assert self.num_slots is not None
        if row in (BEGIN_ID, END_ID):
            mark = self.alphabet.begin_sentence if row == BEGIN_ID else self.alphabet.end_sentence
            return self.alphabet.spell_sentence_mark(mark, self.num_slots)
        known = len(self.vocabulary)
        word = self.vocabulary.tokens[row] if row < known else self.other_words[row - known]
        return self.alphabet.spell(word, self.num_slots)

    def is_cut(self, token: str) -> bool:
        """Return whether a word has too many characters and is truncated."""
        return self.num_slots is not None and self.alphabet.is_cut(token, self.num_slots)
