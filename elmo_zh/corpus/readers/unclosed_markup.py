"""How much of a wiki page's markup is never closed, which is what its parsing may take long for."""

import re
from collections import Counter
from collections.abc import Iterator

# Deeper than this the parser takes markup for text, after it has tried.
_DEEPEST = 40
_ALONE = frozenset(("br", "hr", "wbr", "img", "meta", "link", "li", "dt", "dd", "td", "th", "tr"))
_MARK = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|\[(?=[a-z/]{2,9}[:/])|\]|<!--|-->|</?[a-zA-Z]+(?=[\s/>])(?:[^<>]{0,300}?/>)?"
)
_CLOSES = {"}}": "{{", "]]": "[[", "|}": "{|", "]": "[", "-->": "<!--"}


def num_unclosed(source: str) -> int:
    """Return how many times a page opens what it does not close in order, or opens too deep."""
    num_unclosed = 0
    opened: list[str] = []
    depths: Counter[str] = Counter()
    for kind, is_end in _marks(source):
        if not is_end:
            num_unclosed += len(opened) >= _DEEPEST
            opened.append(kind)
            depths[kind] += 1
        elif depths[kind]:
            while (inner := opened.pop()) != kind:
                depths[inner] -= 1
                num_unclosed += 1
            depths[kind] -= 1
    return num_unclosed + len(opened)


def _marks(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each sign that opens or closes something, and whether it closes."""
    for match in _MARK.finditer(source):
        mark = match[0]
        if mark in _CLOSES:
            yield _CLOSES[mark], True
        elif not mark.startswith("<") or mark == "<!--":
            yield mark, False
        elif not mark.endswith("/>") and (tag := mark.strip("</").lower()) not in _ALONE:
            yield tag, mark.startswith("</")
