"""Words of an index that are spelled like a word that it lacks, for messages."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from pathlib import Path

from elmo_zh.corpus.names import shown

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


def explain_missing_word(word: str, words: Sequence[str], index: Path) -> str:
    """Return the message that a word is not in an index, with similar ones that are."""
    similar = similar_spellings(word, words)
    # The words of a stranger's index may hold line feeds.
    found = ", ".join(map(shown, similar))
    advice = f"Did you mean {found}?" if similar else "No word of it has one of these characters."
    return f"{shown(word) or 'An empty word'} is not in the index {index}. {advice}"
