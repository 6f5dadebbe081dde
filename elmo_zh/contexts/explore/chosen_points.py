"""Which words of an index a page shows, and which of their occurrences: its points."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.choice import occurrence_hashes, word_key
from elmo_zh.contexts.index import ContextIndex, Occurrence
from elmo_zh.errors import ElmoZhError

# A map of fewer points shows nothing, so such words are shown only if they are named.
LEAST_OCCURRENCES = 20
# Repeated lines are passed over: so many times the points wanted are looked at.
_LOOKED_AT_PER_POINT = 2


@dataclass(frozen=True, kw_only=True)
class PageChoice:
    """The rule by which the words of a page and their occurrences are chosen.

    Attributes:
        words: The words to show, in this order; none: those whose vectors differ most.
        num_words: How many words to show if none are given, at most.
        max_per_word: How many occurrences of a word to show, at most; of more, a random sample.
        seed: Seed of the samples and of t-SNE.
    """

    words: tuple[str, ...] = ()
    num_words: int = 20
    max_per_word: int = 100
    seed: int = 1


@dataclass(frozen=True)
class WordPoints:
    """A word of a page.

    Attributes:
        word: The word.
        occurrences: Its occurrences that are shown, in the order of the texts.
    """

    word: str
    occurrences: tuple[Occurrence, ...]

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the occurrences in the index, int64, shape (n,)."""
        return np.array([each.number for each in self.occurrences], np.int64)


def choose_points(index: ContextIndex, choice: PageChoice) -> list[WordPoints]:
    """Return the words of a page with their occurrences.

    Raises:
        ElmoZhError: If a given word is not in the index, or none is given and no word occurs often enough.
    """
    words = tuple(dict.fromkeys(choice.words)) or _most_varied_words(index, choice)
    return [WordPoints(word, tuple(_points_of(index, word, choice))) for word in words]


def _points_of(index: ContextIndex, word: str, choice: PageChoice) -> Sequence[Occurrence]:
    """Return a sample of a word's occurrences in different lines, in the order of the texts."""
    found = sample(index.occurrences(word), word, _LOOKED_AT_PER_POINT * choice.max_per_word, choice.seed)
    distinct: dict[tuple[str, int], Occurrence] = {}
    for number in found.tolist():
        occurrence = index.occurrence(number)
        distinct.setdefault((index.line(occurrence.line).text, occurrence.start), occurrence)
    kept = list(distinct.values())[: choice.max_per_word]
    return sorted(kept, key=lambda each: each.number)


def sample(numbers: NDArray[np.int64], word: str, size: int, seed: int) -> NDArray[np.int64]:
    """Return some of a word's occurrences in random order: those with the smallest hashes, as in an index."""
    hashes = occurrence_hashes(word_key(word, seed), np.arange(len(numbers)))
    return numbers[np.argsort(hashes, kind="stable")[:size]]


def _most_varied_words(index: ContextIndex, choice: PageChoice) -> tuple[str, ...]:
    """Return the words of at least two characters whose vectors in the top layer differ most from each other.

    Single characters are left out, since the function words would be first among them.
    """
    varied = [(spread(index, word, choice), word) for word in _frequent_words(index)]
    if not varied:
        raise ElmoZhError(
            f"{index.path}: no word of two characters or more occurs {LEAST_OCCURRENCES} times in it. Choose words of"
            " it with --word, or index more text."
        )
    return tuple(word for _, word in sorted(varied, reverse=True)[: choice.num_words])


def _frequent_words(index: ContextIndex) -> Iterator[str]:
    for word in index.words:
        if len(word) > 1 and not word.isascii() and len(index.occurrences(word)) >= LEAST_OCCURRENCES:
            yield word


def spread(index: ContextIndex, word: str, choice: PageChoice) -> float:
    """Return one minus the mean cosine of pairs of a word's vectors in the top layer of an index."""
    numbers = np.sort(sample(index.occurrences(word), word, choice.max_per_word, choice.seed))
    unit = unit_vectors(index, index.layers[-1], numbers)
    count = len(unit)
    total = float((unit.sum(axis=0, dtype=np.float64) ** 2).sum())
    return 1.0 - (total - count) / max(1, count * (count - 1))


def unit_vectors(index: ContextIndex, layer: int, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the vectors of occurrences in a layer, scaled to length 1, float32, shape (n, 2P); zero stays zero."""
    vectors = index.vectors(layer)[numbers].astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms == 0, np.float32(1), norms))
