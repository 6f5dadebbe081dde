"""Counts of a text's unknown words in bounded memory, for reports of the most frequent ones."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

# Distinct words that are counted; when there are more, the rarer half is forgotten.
MAX_WORDS = 100_000

Word = TypeVar("Word", bound=Hashable)


class UnknownWords(Generic[Word]):
    """Counts of unknown words: exact up to many thousand distinct ones.

    With more, the counts of the frequent ones are exact or a little too low.

    Attributes:
        counts: The count of each word, as far as it is known.
    """

    def __init__(self) -> None:
        self.counts: Counter[Word] = Counter()

    def add(self, words: Iterable[Word] | Mapping[Word, int]) -> None:
        """Count further unknown words, or add their counts."""
        self.counts.update(words)
        if len(self.counts) > MAX_WORDS:
            self.counts = Counter(dict(self.counts.most_common(MAX_WORDS // 2)))
