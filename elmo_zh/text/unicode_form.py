"""Unicode normalisation forms, of a whole text and cluster by cluster."""

import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import chain, pairwise
from unicodedata import combining, is_normalized, normalize

from elmo_zh.text.alignment import Edit, Step

_RANGE = 256
# Normalisation takes time that grows with the square of a run of combining marks. In the stream-safe text format
# (Unicode Standard Annex #15, section 13) a run has 30 at most, and U+034F, which nothing is composed with, divides it.
_MOST_MARKS = 30
_DIVIDER = "\u034f"
_DECOMPOSED = {"NFC": "NFD", "NFD": "NFD", "NFKC": "NFKD", "NFKD": "NFKD"}


def unicode_form_step(form: str) -> Step:
    """Return the step that normalises a text to NFC, NFD, NFKC or NFKD."""

    def leaves(text: str) -> bool:
        # Every substring of a normalised text is normalised too (Unicode Standard Annex #15, "Stability").
        return not _may_have_long_run(text) and is_normalized(form, text)  # type: ignore[arg-type]

    return Step("unicode_form", partial(to_form, form), partial(iter_form_edits, form), leaves)


def to_form(form: str, text: str) -> str:
    """Return a text in NFC, NFD, NFKC or NFKD, with U+034F after every 30 combining marks of a longer run."""
    # Decomposition can make a run longer.
    return _divide_runs(normalize(form, _divide_runs(text)))  # type: ignore[arg-type]


def _divide_runs(text: str) -> str:
    return _long_run().sub(_divide, text) if _may_have_long_run(text) else text


def _may_have_long_run(text: str) -> bool:
    """Return whether there may be a run longer than 30: it would hold one of each 31 characters."""
    return not _marks().isdisjoint(text[_MOST_MARKS :: _MOST_MARKS + 1])


def _divide(run: re.Match[str]) -> str:
    return _DIVIDER.join(run[0][start : start + _MOST_MARKS] for start in range(0, len(run[0]), _MOST_MARKS))


@cache
def _long_run() -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(sorted(_marks())))}]{{{_MOST_MARKS + 1},}}")


@cache
def _marks() -> frozenset[str]:
    """Return every character whose decomposition begins with a combining mark that may be reordered."""
    # Planes 2 to 13 have none.
    characters = map(chr, chain(range(0x300, 0x20000), range(0xE0000, 0xE1000)))
    return frozenset(character for character in characters if combining(normalize("NFD", character)[0]))


def iter_form_edits(form: str, text: str) -> Iterator[Edit]:
    """Yield the clusters of a text that a Unicode form changes.

    A cluster is a character and the following ones that may be composed or reordered with it. The normalised text is
    the concatenation of its normalised clusters (Unicode Standard Annex #15, "Concatenation of Normalized Strings").
    """
    decomposed = _DECOMPOSED[form]
    starts = [index for index, character in enumerate(text) if index == 0 or not _may_join(decomposed, character)]
    for start, end in pairwise([*starts, len(text)]):
        cluster = text[start:end]
        new = to_form(form, cluster)
        if new != cluster:
            yield Edit(start, end, len(new))


@cache
def _may_join(decomposed: str, character: str) -> bool:
    """Return whether a Unicode form may compose or reorder a character with the characters before it.

    It may if the first character of its decomposition is not a starter, or is the second one of some composition. Any
    other character stays in place, and no later one moves across it.
    """
    first = normalize(decomposed, character)[0]  # type: ignore[arg-type]
    return combining(first) != 0 or first in _later_characters()


@cache
def _later_characters() -> frozenset[str]:
    """Return every character that is in a canonical decomposition, but not first: accents, vowels and finals."""
    ranges = ("".join(map(chr, range(code, code + _RANGE))) for code in range(0, 0x110000, _RANGE))
    # Most ranges hold no decomposable character; testing a range at a time takes milliseconds.
    characters = (character for text in ranges if normalize("NFD", text) != text for character in text)
    return frozenset(later for character in characters for later in normalize("NFD", character)[1:])
