"""Unicode normalisation forms, of a whole text and cluster by cluster."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from unicodedata import combining, is_normalized, normalize

from elmo_zh.text.alignment import Edit, Step

_RANGE = 256
_DECOMPOSED = {"NFC": "NFD", "NFD": "NFD", "NFKC": "NFKD", "NFKD": "NFKD"}


def unicode_form_step(form: str) -> Step:
    """Return the step that normalises a text to NFC, NFD, NFKC or NFKD."""
    # Every substring of a normalised text is normalised too (Unicode Standard Annex #15, "Stability").
    leaves = partial(is_normalized, form)  # type: ignore[arg-type]
    return Step("unicode_form", partial(normalize, form), partial(iter_form_edits, form), leaves)  # type: ignore[arg-type]


def iter_form_edits(form: str, text: str) -> Iterator[Edit]:
    """Yield the clusters of a text that a Unicode form changes.

    A cluster is a character and the following ones that may be composed or reordered with it. The normalised text is
    the concatenation of its normalised clusters (Unicode Standard Annex #15, "Concatenation of Normalized Strings").
    """
    decomposed = _DECOMPOSED[form]
    starts = [index for index, character in enumerate(text) if index == 0 or not _may_join(decomposed, character)]
    for start, end in pairwise([*starts, len(text)]):
        cluster = text[start:end]
        new = normalize(form, cluster)  # type: ignore[arg-type]
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
