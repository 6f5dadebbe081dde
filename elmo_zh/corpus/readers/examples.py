"""Labelled examples, and the tag schemes that mark spans in them: BIO, BMES and BIOES.

A span is (first unit, unit after the last, type). Once read, spans are marked by BIOES tags, also called BILOU (Ratinov
and Roth 2009). As in conlleval, a tag other than O that does not continue a span begins one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config.task_settings import SCHEMES
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import joined

Span = tuple[int, int, str]
OUTSIDE = "O"
NO_EXAMPLES = N_("{name} has no labelled examples. Use a table of texts and labels, JSON lines, or CoNLL.")
_TAG = re.compile(r"([BIMESLU])(?:[-_](.+))?")


class UnlabelledError(CorpusError):
    """A file has texts but no labels, as is common for published test sets."""


@dataclass(frozen=True, eq=False)
class Example:
    """One labelled example: a text or a pair of texts with a label, or a text with a tag for each unit."""

    texts: tuple[str, ...]  # the raw text; two of them in a pair
    labels: tuple[str, ...]  # the label of the text or pair; in tagging, one label per unit
    # In tagging, where each labelled unit, a character or a word, starts and ends in the text, int32, shape (n, 2).
    units: NDArray[np.int32] | None = None
    # If the units are words, the words as in the file, which are not segmented again.
    words: tuple[str, ...] | None = None
    part: str = ""  # the part that the file names for the example, train, dev or test; "" if it names none

    @property
    def key(self) -> str:
        """The texts without labels, joined; equal for copies of an example."""
        return "\t".join(self.texts)


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """The examples of one file, and how they were read."""

    name: str
    examples: Sequence[Example]
    scheme: str = ""  # in tagging, how the file marks spans: BIO, BMES or BIOES; "" if each unit has its own label
    by_words: bool = False  # in tagging, whether the units are words
    # The columns of the texts and the label, as names or numbers; empty if no option names them
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # notes for users on how the file was read and what is unusual in it


def require_same_units(labelled: Labelled, scheme: str, other: str, *, by_words: bool) -> None:
    """Raise CorpusError if a file differs from `other` in whether its tags mark spans or its units are words."""
    if bool(labelled.scheme) != bool(scheme) or labelled.by_words != by_words:
        raise CorpusError(
            _(
                "{name} ({tags}) and {other} ({other_tags}) are tagged in different ways. Use data tagged in the same"
                " way."
            ).format(
                name=labelled.name,
                tags=describe_tags(labelled.scheme, by_words=labelled.by_words),
                other=other,
                other_tags=describe_tags(scheme, by_words=by_words),
            )
        )


def describe_tags(scheme: str, *, by_words: bool) -> str:
    """Return a tag scheme and the unit of its tags as text for messages."""
    units = _("one tag per word") if by_words else _("one tag per character")
    return joined([scheme, units])


def marks_span(tag: str) -> bool:
    """Return whether a tag has a scheme's prefix and a span type, as in B-PER."""
    match = _TAG.fullmatch(tag)
    return bool(match and match[2])


def detect_scheme(labels: Iterable[str], name: str) -> str:
    """Return the scheme of a file's tags, or "" if they mark no spans; raise CorpusError if no scheme fits."""
    distinct = dict.fromkeys(labels)
    parsed = {tag: _TAG.fullmatch(tag) for tag in distinct if tag != OUTSIDE}
    letters = {_letter(match) for match in parsed.values() if match}
    typed = [bool(match and match[2]) for match in parsed.values()]
    marks = "B" in letters and (any(typed) or all(parsed.values()))
    if not marks and not (typed and all(typed)):
        return ""
    known = next((scheme for scheme, signs in SCHEMES.items() if letters <= set(signs)), "")
    unknown = [tag for tag, match in parsed.items() if not match]
    if unknown or not known:
        tags = ", ".join(list(dict.fromkeys([*unknown, *parsed]))[:5])
        raise CorpusError.unexpected(f"{name}: {tags}", ", ".join(SCHEMES))
    return known


def _letter(match: re.Match[str] | None) -> str:
    """Return the letter of a matched tag, with L as E and U as S; O if there is no match."""
    return {"L": "E", "U": "S"}.get(match[1], match[1]) if match else OUTSIDE


def spans_of(tags: Sequence[str]) -> tuple[list[Span], int]:
    """Return the spans marked by tags of any scheme, and how many I, M or E tags continue no span.

    >>> spans_of(["B-PER", "I-PER", "O", "I-LOC"])
    ([(0, 2, 'PER'), (3, 4, 'LOC')], 1)
    """
    spans: list[Span] = []
    num_wrong = 0
    start, kind, open_span = 0, "", False
    for place, tag in enumerate([*tags, OUTSIDE]):
        match = _TAG.fullmatch(tag)
        letter, tag_kind = _letter(match), (match[2] or "") if match else ""
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


def in_bioes(examples: Sequence[Example]) -> tuple[list[Example], int]:
    """Return the examples with their tags converted to BIOES, and how many I, M or E tags continued no span."""
    converted, num_wrong = [], 0
    for example in examples:
        spans, wrong = spans_of(example.labels)
        num_wrong += wrong
        converted.append(replace(example, labels=tuple(tags_of(spans, len(example.labels)))))
    return converted, num_wrong


def tags_of(spans: Iterable[Span], num_units: int, scheme: str = "BIOES") -> list[str]:
    """Return one tag per unit, marking spans in the given scheme.

    >>> tags_of([(0, 3, "PER"), (4, 5, "LOC")], 5, "BMES")
    ['B-PER', 'M-PER', 'E-PER', 'O', 'S-LOC']
    """
    first, inside, last, only = tuple(SCHEMES[scheme])
    tags = [OUTSIDE] * num_units
    for start, end, kind in spans:
        suffix = f"-{kind}" if kind else ""
        for place in range(start, end):
            tags[place] = inside + suffix
        tags[end - 1] = last + suffix
        tags[start] = (only if end == start + 1 else first) + suffix
    return tags


def count_labels(labels: Iterable[Sequence[str]], *, marks_spans: bool) -> Counter[str]:
    """Count the labels of examples or, if these are BIOES tags that mark spans, the spans of each type.

    >>> count_labels([["B-PER", "E-PER", "O", "S-LOC"]], marks_spans=True)
    Counter({'PER': 1, 'LOC': 1})
    """
    each = chain.from_iterable(labels)
    return Counter(tag[2:] for tag in each if tag[0] in "BS") if marks_spans else Counter(each)


def may_follow(tag: str, following: str) -> bool:
    """Return whether `following` may come after `tag` in BIOES; "" stands for the start or the end of a sentence."""
    before, after = _TAG.fullmatch(tag), _TAG.fullmatch(following)
    if before and before[1] in "BI":
        return bool(after and after[1] in "IE" and after[2] == before[2])
    return not (after and after[1] in "IE")
