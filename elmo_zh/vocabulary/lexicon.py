"""Turn words into model inputs: ids and, in character mode, the spelling of each word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID, Vocabulary


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The ids of characters and marks; the highest id is padding."""

    begin_sentence: int  # Id of the only character of <S>
    end_sentence: int  # Id of the only character of </S>
    begin_word: int  # Id of the mark before each word's characters
    end_word: int  # Id of the mark after each word's characters
    padding: int  # Id that fills the remaining slots
    # Ids of Unicode characters; None if the characters of a word are its UTF-8 bytes.
    numbers: Mapping[str, int] | None = None
    unknown: int = 0  # Id of characters that are not in `numbers`

    @property
    def size(self) -> int:
        """Number of ids."""
        return self.padding + 1

    def cut(self, word: str, num_slots: int) -> str:
        """Return a word as it is looked up: truncated if the alphabet is Unicode characters, as in ELMoForManyLangs."""
        return word if self.numbers is None else word[: num_slots - 2]

    def spell(self, word: str, num_slots: int) -> NDArray[np.int64]:
        """Return a word's character ids, truncated if there are too many, int64, shape (num_slots,)."""
        return self._fill(self._content(word), num_slots)

    def spell_sentence_mark(self, mark: int, num_slots: int) -> NDArray[np.int64]:
        """Return the character ids of <S> or </S>, given the id of its only character."""
        return self._fill([mark], num_slots)

    def is_cut(self, word: str, num_slots: int) -> bool:
        """Return whether a word is too long for the slots and will be truncated."""
        return len(self._content(word)) > num_slots - 2

    def _content(self, word: str) -> Sequence[int]:
        if self.numbers is None:
            # A lone surrogate has no UTF-8 bytes; it is dropped, as in AllenNLP.
            return word.encode("utf-8", "ignore")
        return [self.numbers.get(character, self.unknown) for character in word]

    def _fill(self, content: Sequence[int], num_slots: int) -> NDArray[np.int64]:
        content = list(content[: num_slots - 2])
        padding = [self.padding] * (num_slots - 2 - len(content))
        return np.array([self.begin_word, *content, self.end_word, *padding], np.int64)


# The ids of bilm-tf: the UTF-8 bytes of a word, and above them the marks.
BYTES = Alphabet(begin_sentence=256, end_sentence=257, begin_word=258, end_word=259, padding=260)


class Lexicon:
    """Maps words to input ids.

    In token mode, ids are vocabulary rows; words outside the vocabulary have the row of <UNK>. In character mode (if
    `num_slots` is not None) other words get ids of their own above the rows, in order of first occurrence, because each
    has its own spelling.
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
        """Return a lexicon for the same model, without the words outside the vocabulary."""
        return Lexicon(self.vocabulary, self.num_slots, alphabet=self.alphabet)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Return the input ids of tokens; in character mode, words outside the vocabulary get ids of their own."""
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
        """Return the vocabulary rows to predict for an array of input ids of any shape."""
        if self.num_slots is None:
            return ids
        return np.where(ids < len(self.vocabulary), ids, UNKNOWN_ID)

    def character_ids(self, ids: Iterable[int]) -> NDArray[np.int64]:
        """Return the spellings of input ids, shape (W, C); for character mode only."""
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
        """Return whether a word is too long for the slots and will be truncated; False in token mode."""
        return self.num_slots is not None and self.alphabet.is_cut(token, self.num_slots)
