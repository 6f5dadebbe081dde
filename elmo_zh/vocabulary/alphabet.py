"""From a word's spelling to character ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The numbers of characters and marks; the highest is padding.

    Attributes:
        begin_sentence: The one character of <S>.
        end_sentence: The one character of </S>.
        begin_word: Before each word's characters.
        end_word: After them.
        padding: After that, up to the number of slots.
        numbers: Those of Unicode characters; None where a word's UTF-8 bytes are its characters.
        unknown: Of characters without a number.
    """

    begin_sentence: int
    end_sentence: int
    begin_word: int
    end_word: int
    padding: int
    numbers: Mapping[str, int] | None = None
    unknown: int = 0

    @property
    def size(self) -> int:
        """How many different numbers there are."""
        return self.padding + 1

    def cut(self, word: str, num_slots: int) -> str:
        """Return a word as it is looked up in a table of words; cut, where its characters are Unicode's.

        That is how ELMoForManyLangs does it.
        """
        return word if self.numbers is None else word[: num_slots - 2]

    def spell(self, word: str, num_slots: int) -> NDArray[np.int64]:
        """Return a word's character ids, int64, shape (num_slots,).

        A word with more characters than there is room for is cut; among bytes that may be within a character.
        """
        return self._fill(self._content(word), num_slots)

    def spell_sentence_mark(self, mark: int, num_slots: int) -> NDArray[np.int64]:
        """Return the character ids of <S> or </S>, given its one character."""
        return self._fill([mark], num_slots)

    def is_cut(self, word: str, num_slots: int) -> bool:
        """Return whether a word has more characters than are read."""
        return len(self._content(word)) > num_slots - 2

    def _content(self, word: str) -> Sequence[int]:
        if self.numbers is None:
            # A lone surrogate has no bytes; it is left out, as AllenNLP does.
            return word.encode("utf-8", "ignore")
        return [self.numbers.get(character, self.unknown) for character in word]

    def _fill(self, content: Sequence[int], num_slots: int) -> NDArray[np.int64]:
        content = list(content[: num_slots - 2])
        padding = [self.padding] * (num_slots - 2 - len(content))
        return np.array([self.begin_word, *content, self.end_word, *padding], np.int64)


# The published ids of bilm-tf: a word's UTF-8 bytes as they are, and the marks above them.
BYTES = Alphabet(begin_sentence=256, end_sentence=257, begin_word=258, end_word=259, padding=260)
