"""From the words of a text to what a model reads: ids, and in character mode each word's character ids.

Character ids follow bilm-tf: a word is its UTF-8 bytes between a mark of its begin and one of its end, padded to a
fixed number of slots. A word with more bytes than there is room for is cut at a byte, even within a character.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from elmo_zh.vocabulary import BEGIN_ID, END_ID, UNKNOWN_ID, Vocabulary

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = range(256, 261)
NUM_CHARACTER_IDS = 261


def spell(content: Sequence[int] | bytes, num_slots: int) -> NDArray[np.int64]:
    """Return the character ids of a word's bytes (or of a sentence mark), int64, shape (num_slots,)."""
    content = content[: num_slots - 2]
    character_ids = np.full(num_slots, PADDING, np.int64)
    character_ids[0] = BEGIN_WORD
    character_ids[1 : len(content) + 1] = bytearray(content) if isinstance(content, bytes) else content
    character_ids[len(content) + 1] = END_WORD
    return character_ids


class Lexicon:
    """The input ids of a text's words.

    In token mode they are vocabulary rows, <UNK>'s for words outside. In character mode words outside the vocabulary
    get ids of their own above its rows, in the order in which they come, since each has its own spelling.

    Attributes:
        vocabulary: What the model predicts, and in token mode what it reads.
        num_slots: Character slots of each word (C); None in token mode.
        other_words: Words outside the vocabulary, in character mode; the first one has id V.
    """

    def __init__(self, vocabulary: Vocabulary, num_slots: int | None, other_words: Iterable[str] = ()) -> None:
        self.vocabulary, self.num_slots = vocabulary, num_slots
        self.other_words = list(other_words)
        self._other_ids = {word: len(vocabulary) + index for index, word in enumerate(self.other_words)}

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Return the input ids of text tokens."""
        ids = self.vocabulary.encode(tokens)
        if self.num_slots is None or UNKNOWN_ID not in ids:
            return ids
        return [self._other_id(token) if row == UNKNOWN_ID else row for row, token in zip(ids, tokens, strict=True)]

    def _other_id(self, word: str) -> int:
        found = self._other_ids.get(word)
        if found is None:
            found = self._other_ids[word] = len(self.vocabulary) + len(self.other_words)
            self.other_words.append(word)
        return found

    def targets(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the vocabulary rows that a model has to predict for input ids of any shape."""
        if self.num_slots is None:
            return ids
        return np.where(ids < len(self.vocabulary), ids, UNKNOWN_ID)

    def character_ids(self, ids: Iterable[int]) -> NDArray[np.int64]:
        """Return the spellings of input ids, shape (W, C); character mode only."""
        assert self.num_slots is not None
        return np.stack([spell(self._content(int(row)), self.num_slots) for row in ids])

    def _content(self, row: int) -> Sequence[int] | bytes:
        marks = {BEGIN_ID: [BEGIN_SENTENCE], END_ID: [END_SENTENCE]}
        return marks[row] if row in marks else self._word(row).encode("utf-8", "ignore")

    def _word(self, row: int) -> str:
        known = len(self.vocabulary)
        return self.vocabulary.tokens[row] if row < known else self.other_words[row - known]

    def is_cut(self, token: str) -> bool:
        """Return whether a word has more bytes than are read."""
        return self.num_slots is not None and len(token.encode("utf-8", "ignore")) > self.num_slots - 2
