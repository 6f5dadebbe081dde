"""Halves of characters that JSON can spell, kept from a parser that would make question marks of them."""

import re
from collections.abc import Iterable, Iterator

# Unicode keeps it from ever being a character; it stands for half of one on its way through the parser.
_HALF_MARK = "\ufdd1"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SPELT = re.compile(rf"{_HIGH}|{_LOW}")
# After an even number of backslashes, of which each two are one that is meant.
_PAIR_OR_HALF = re.compile(rf"(?<!\\)((?:\\\\)*)(?:({_HIGH}{_LOW})|{_HIGH}|{_LOW})")
# What the next chunk may make a pair of, or the rest of an escape.
_UNFINISHED = re.compile(
    rf"(?<!\\)(?:\\\\)*((?:{_HIGH})?\\(?:u[0-9a-fA-F]{{0,3}})?|{_HIGH})\Z"
)  # fmt: skip
_END_CHARACTERS = 2**10


def marked_halves(chunks: Iterable[str]) -> Iterator[str]:
    r"""Yield JSON in chunks, in which no escape is cut, with a mark for each \\ud800 that is no part of a pair."""
    held = ""
    for chunk in chunks:
        text = held + chunk
        held = ""
        if "\\" in text[-12:] and (unfinished := _UNFINISHED.search(text[-_END_CHARACTERS:])):
            held = unfinished[1]
            text = text[: len(text) - len(held)]
        yield _marked(text)
    yield _marked(held)


def _marked(text: str) -> str:
    if not _SPELT.search(text):
        return text
    return _PAIR_OR_HALF.sub(lambda match: match[0] if match[2] else match[1] + _HALF_MARK, text)


def with_halves(value: str) -> str:
    """Return a text as it comes out of the parser with halves of characters for the marks."""
    return value.replace(_HALF_MARK, "\ud800")
