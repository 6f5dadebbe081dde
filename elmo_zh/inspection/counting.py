"""Counts of tokens: of the frequent ones in bounded memory, and by kind (Han, Latin, digits, punctuation, other)."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from elmo_zh.text.han import HAN

KINDS = ("Han", "Latin", "digits", "punctuation", "other")


class BoundedCounts:
    """A Counter that drops the rarest entries when there are too many (Manku and Motwani 2002).

    A thing that comes again after it was dropped counts from 0, so counts are never too high, and too low by at most
    the highest count dropped, each time that was done.
    """

    def __init__(self, most: int, on_drop: Callable[[str, int], None] = lambda _thing, _count: None) -> None:
        """Start with nothing.

        Args:
            most: Number of different things to keep; up to twice as many are kept for a while.
            on_drop: Called with each thing that is dropped, and its count.
        """
        self._most, self._on_drop = most, on_drop
        self._counts: Counter[str] = Counter()

    def update(self, things: Iterable[str]) -> None:
        """Count things."""
        self._counts.update(things)
        if len(self._counts) > 2 * self._most:
            ranked = self._counts.most_common()
            self._counts = Counter(dict(ranked[: self._most]))
            for thing, count in ranked[self._most :]:
                self._on_drop(thing, count)

    def most_common(self, number: int | None = None) -> list[tuple[str, int]]:
        """Return the most frequent things that are kept, with their counts."""
        return sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:number]


@lru_cache(maxsize=2**16)
def kind_of(character: str) -> str:
    """Return the kind of a character."""
    if HAN.match(character):
        return "Han"
    category = unicodedata.category(character)
    if category == "Nd":
        return "digits"
    if category[0] in "PS":
        return "punctuation"
    if category[0] == "L" and unicodedata.name(character, "").startswith(("LATIN", "FULLWIDTH LATIN")):
        return "Latin"
    return "other"


def kind_of_token(token: str) -> str:
    """Return the first of the kinds that a token has a character of."""
    return min(map(kind_of, token), key=KINDS.index)


class KindCounts:
    """Numbers of tokens and characters of each kind."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.characters: Counter[str] = Counter()

    def add(self, token: str, count: int) -> None:
        """Count a token that occurs so often."""
        self.tokens[kind_of_token(token)] += count
        for character in token:
            self.characters[kind_of(character)] += count

    def fractions(self) -> dict[str, dict[str, float]]:
        """Return fractions of tokens and of characters by kind; they add up to 1 where there is any text."""
        return {
            what: {kind: counts[kind] / max(1, counts.total()) for kind in KINDS}
            for what, counts in (("tokens", self.tokens), ("characters", self.characters))
        }
