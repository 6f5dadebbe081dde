"""Character ids of words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The ids of characters and marks; the highest is padding."""

    begin_sentence: int  # Id of the only character of <S>
    end_sentence: int  # Id of the only character of </S>
    begin_word: int  # Id of the mark before each word's characters
    end_word: int  # Id of the mark after them
    padding: int  # Id that fills the remaining slots
    # Ids of Unicode characters; None if the characters of a word are its UTF-8 bytes.
    numbers: Mapping[str, int] | None = None
    unknown: int = 0  # Id of characters that are not in `numbers`

    @property
    def size(self) -> int:
        """Number of ids."""
        return self.padding + 1

    def cut(self, word: str, num_slots: int) -> str:
        """Return a word as it is looked up in a table of words: truncated if characters are Unicode characters.

        ELMoForManyLangs does the same.
        """
        return word if self.numbers is None else word[: num_slots - 2]

    def spell(self, word: str, num_slots: int) -> NDArray[np.int64]:
        """Return a word's character ids, int64, shape (num_slots,).

        A word with too many characters is truncated; with bytes, that may be in the middle of a character.
        """
        return self._fill(self._content(word), num_slots)

    def spell_sentence_mark(self, mark: int, num_slots: int) -> NDArray[np.int64]:
        """Return the character ids of <S> or </S>, given the id of its only character."""
        return self._fill([mark], num_slots)

    def is_cut(self, word: str, num_slots: int) -> bool:
        """Return whether a word has too many characters and is truncated."""
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
