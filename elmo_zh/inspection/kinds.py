"""What tokens and characters are: Han, Latin, digits, punctuation, other."""

import unicodedata
from collections import Counter
from functools import lru_cache

from elmo_zh.text.han import HAN

KINDS = ("Han", "Latin", "digits", "punctuation", "other")


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
    found = {kind_of(character) for character in token}
    return next(kind for kind in KINDS if kind in found)


class KindCounts:
    """How many tokens and characters of each kind there are."""

    def __init__(self) -> None:
        self.tokens: Counter[str] = Counter()
        self.characters: Counter[str] = Counter()

    def add(self, token: str, count: int) -> None:
        """Count a token that stands there so often."""
        self.tokens[kind_of_token(token)] += count
        for character in token:
            self.characters[kind_of(character)] += count

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the shares of tokens and of characters by kind; they add up to 1 where there is any text."""
        return {
            what: {kind: counts[kind] / max(1, counts.total()) for kind in KINDS}
            for what, counts in (("tokens", self.tokens), ("characters", self.characters))
        }
