"""Tags that mark spans: BIO, BMES and BIOES, and the spans that they mark.

A span is (first unit, unit after the last, type). Inside this program spans are always marked by BIOES tags (Ratinov
and Roth 2009, who call them BILOU). Tags are read as conlleval does: a tag that does not continue a span begins one.
"""

import re
from collections.abc import Iterable, Sequence

from elmo_zh.errors import CorpusError

Span = tuple[int, int, str]

# The letters of each scheme: the first unit of a span, one inside, the last, and the only one.
_LETTERS: dict[str, tuple[str, str, str, str]] = {
    "BIO": ("B", "I", "I", "B"),
    "BMES": ("B", "M", "E", "S"),
    "BIOES": ("B", "I", "E", "S"),
}
SCHEMES = tuple(_LETTERS)
OUTSIDE = "O"
_TAG = re.compile(r"([BIMES])(?:[-_](.+))?")


def marks_span(tag: str) -> bool:
    """Return whether a tag is one of a scheme with the type of its span, such as B-PER."""
    match = _TAG.fullmatch(tag)
    return bool(match and match[2])


def detect_scheme(tags: Iterable[str], name: str) -> str:
    """Return the scheme of a file's tags; "" if they mark no spans, such as parts of speech.

    Args:
        tags: All tags of the file.
        name: The file, for messages.

    Raises:
        CorpusError: If some tags belong to no scheme or to two.
    """
    distinct = dict.fromkeys(tags)
    parsed = {tag: _TAG.fullmatch(tag) for tag in distinct if tag != OUTSIDE}
    letters = {match[1] for match in parsed.values() if match}
    typed = [bool(match and match[2]) for match in parsed.values()]
    marks = "B" in letters and (any(typed) or all(parsed.values()))
    if not marks and not (typed and all(typed)):
        return ""
    unknown = [tag for tag, match in parsed.items() if not match]
    if unknown:
        raise CorpusError(
            f"{name}: the tag {unknown[0][:40]!r} belongs to no scheme, though others such as"
            f" {next(tag for tag, match in parsed.items() if match)!r} mark spans. Expected O and BIO, BMES or BIOES."
        )
    for scheme, known in _LETTERS.items():
        if letters <= set(known):
            return scheme
    raise CorpusError(
        f"{name}: tags begin with {', '.join(sorted(letters))}, which is no scheme. Expected BIO, BMES or BIOES."
    )


def spans_of(tags: Sequence[str]) -> tuple[list[Span], int]:
    """Return the spans that tags of any scheme mark, and how many of the tags do not fit the one before.

    >>> spans_of(["B-PER", "I-PER", "O", "I-LOC"])
    ([(0, 2, 'PER'), (3, 4, 'LOC')], 1)
    """
    spans: list[Span] = []
    num_wrong = 0
    start, kind, open_span = 0, "", False
    for place, tag in enumerate([*tags, OUTSIDE]):
        match = _TAG.fullmatch(tag)
        letter, tag_kind = (match[1], match[2] or "") if match else (OUTSIDE, "")
        continues = open_span and letter in "IME" and tag_kind == kind
        if not continues:
            if open_span:
                spans.append((start, place, kind))
            num_wrong += letter in "IME"
            start, kind, open_span = place, tag_kind, letter != OUTSIDE
        if open_span and letter in "ES":
            spans.append((start, place + 1, kind))
            open_span = False
    return spans, num_wrong


def tags_of(spans: Iterable[Span], num_units: int, scheme: str = "BIOES") -> list[str]:
    """Return the tags that mark spans.

    >>> tags_of([(0, 3, "PER"), (4, 5, "LOC")], 5, "BMES")
    ['B-PER', 'M-PER', 'E-PER', 'O', 'S-LOC']
    """
    first, inside, last, only = _LETTERS[scheme]
    tags = [OUTSIDE] * num_units
    for start, end, kind in spans:
        suffix = f"-{kind}" if kind else ""
        for place in range(start, end):
            tags[place] = inside + suffix
        tags[end - 1] = last + suffix
        tags[start] = (only if end == start + 1 else first) + suffix
    return tags


def may_follow(tag: str, following: str) -> bool:
    """Return whether a BIOES tag may follow another; "" stands before the first and after the last one."""
    before, after = _TAG.fullmatch(tag), _TAG.fullmatch(following)
    if before and before[1] in "BI":
        return bool(after and after[1] in "IE" and after[2] == before[2])
    return not (after and after[1] in "IE")
