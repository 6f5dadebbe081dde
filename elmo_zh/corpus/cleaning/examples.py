"""Short excerpts of a corpus for people to read, with invisible characters escaped."""

import re
from itertools import takewhile
from unicodedata import category

LONGEST_EXAMPLE = 80
_BEFORE_CHANGE = 20
_PLAIN = re.compile(r"[ !-\[\]-~\u3001-\u3029\u4e00-\u9fa5\uff01-\uff5e]*")


def visible(text: str) -> str:
    r"""Return a text with invisible and combining characters escaped as Python does.

    >>> visible("苹\u200b果\u3000\x1b[2J e\u0301 \\")
    '苹\\u200b果\\u3000\\x1b[2J e\\u0301 \\\\'
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable() and not category(character).startswith("M"):
        return character
    # Lone surrogates too, which no file could hold.
    return character.encode("unicode_escape").decode("ascii")


def shortened(text: str) -> str:
    """Return the start of a text, for display."""
    return visible(text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…")


def around_change(before: str, after: str) -> tuple[str, str]:
    """Return the text around the first difference of two texts, for display."""
    pairs = zip(before, after, strict=False)
    first = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = max(0, first - _BEFORE_CHANGE) if max(len(before), len(after)) > LONGEST_EXAMPLE else 0
    mark = "…" if start else ""
    return shortened(mark + before[start:]), shortened(mark + after[start:])
