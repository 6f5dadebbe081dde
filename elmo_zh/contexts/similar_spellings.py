"""Words of an index that are spelled like a word that it lacks, for messages."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest

_MOST = 3
# Spellings less similar than this are no help (`SequenceMatcher.ratio`).
_LEAST_SIMILAR = 0.4


def similar_spellings(word: str, words: Iterable[str]) -> list[str]:
    """Return the words that are spelled most like a word, at most three."""
    characters = set(word)
    scored = (
        (SequenceMatcher(None, word, other, autojunk=False).ratio(), -len(other), other)
        for other in words
        if not characters.isdisjoint(other)
    )
    return [other for score, _, other in nlargest(_MOST, scored) if score >= _LEAST_SIMILAR]
