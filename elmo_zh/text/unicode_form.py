"""Unicode normalisation forms, whole and cluster by cluster."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from unicodedata import combining, is_normalized, normalize

from elmo_zh.text.alignment import Edit, Step

_BLOCK = 256
_DECOMPOSED = {"NFC": "NFD", "NFD": "NFD", "NFKC": "NFKD", "NFKD": "NFKD"}


def unicode_form_step(form: str) -> Step:
    """Return the step that brings a text into NFC, NFD, NFKC or NFKD."""
    # Any piece of a text in a form is in that form too (Unicode Standard Annex #15, "Stability").
    leaves = partial(is_normalized, form)  # type: ignore[arg-type]
    return Step("unicode_form", partial(normalize, form), partial(iter_form_edits, form), leaves)  # type: ignore[arg-type]


def iter_form_edits(form: str, text: str) -> Iterator[Edit]:
    """Yield the clusters of a text that a Unicode form changes.

    A cluster is a character and those after it that it may be composed or put in another order with. The form of a
    text is the forms of its clusters in a row (Unicode Standard Annex #15, "Concatenation of Normalized Strings").
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
    """Return whether a Unicode form may compose or reorder a character with what stands before it.

    It may where the first character of its decomposition is not a starter, or is the later one of some composition.
    Anything else stays where it is, and what follows it cannot get past it.
    """
    first = normalize(decomposed, character)[0]  # type: ignore[arg-type]
    return combining(first) != 0 or first in _later_characters()


@cache
def _later_characters() -> frozenset[str]:
    """Return every character that stands in a canonical decomposition, but not first: accents, vowels and finals."""
    blocks = ("".join(map(chr, range(code, code + _BLOCK))) for code in range(0, 0x110000, _BLOCK))
    # Most blocks decompose nowhere. Asking for a block at a time makes this a matter of milliseconds.
    characters = (character for block in blocks if normalize("NFD", block) != block for character in block)
    return frozenset(later for character in characters for later in normalize("NFD", character)[1:])
