"""Normalise text in the steps that `TextConfig` selects."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, islice, pairwise
from typing import NamedTuple
from unicodedata import category, combining, is_normalized, normalize

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.text.script import script_converter

# Code points of full-width digits and letters are 0xFEE0 above their ASCII equivalents.
_FULLWIDTH_OFFSET = 0xFEE0
_FULLWIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
# Python's \s is Unicode white space (U+3000, U+00A0, U+2028, U+0085, ...) and the four separators U+001C to U+001F.
_WHITESPACE = re.compile(r"\s+")
# White space that joins what is on both sides of it.
_NO_BREAK = "\u00a0\u2007\u202f"
_NOT_SPACE = re.compile("[^ ]+")
_TOKEN = re.compile(rf"[\S{_NO_BREAK}]+")
_LINE_ENDS = re.compile(r"[\r\n]+")
# What is not seen, except white space: the general categories Cc, Cf and Me (⃣ around a digit), and the characters with
# the property Default_Ignorable_Code_Point (variation selectors, Hangul fillers, tags). Segmenters would make a word of
# each. They are listed so that the result does not depend on Python's version of Unicode.
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u0488\u0489\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1abe\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20dd-\u20e0\u20e2-\u20e4\u3164"
    "\ua670-\ua672\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)
# Most lines consist of these characters only, and no step changes them, alone or next to each other, except for spaces.
# NFKC and NFKD turn the second group into ASCII; converting the script may change any Han character.
_STABLE = " -~\u4e00-\u9fff\u00b7\u2014\u2018\u2019\u201c\u201d\u3001\u3002\u3008-\u3011"
_STABLE_SIGNS = "\u2026\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_NOTHING = re.compile("")


class Edit(NamedTuple):
    """A non-empty range of characters that become `length` new ones."""

    start: int
    end: int
    length: int


@dataclass(frozen=True)
class Step:
    """One step of normalisation, with the edits that it makes."""

    name: str  # Setting of `TextConfig` that turns it on
    apply: Callable[[str], str]
    # Function from the text to its edits, in order and without overlap; all other characters stay
    find_edits: Callable[[str], Iterable[Edit]]
    # Quick test; True means that the step changes neither the text nor any substring of it
    leaves: Callable[[str], bool]


def identity_spans(num_characters: int) -> NDArray[np.int32]:
    """Return the spans of an unchanged text: (0, 1), (1, 2), ..., int32, shape (m, 2)."""
    starts = np.arange(num_characters, dtype=np.int32)
    return np.stack([starts, starts + 1], axis=1)


def follow_edits(spans: NDArray[np.int32], edits: Iterable[Edit]) -> NDArray[np.int32]:
    """Apply edits to the spans of characters, int32, shape (m, 2); a new character gets the span of all it replaces."""
    starts, ends, lengths = np.array([*edits], np.int32).reshape(-1, 3).T
    num_opened = np.zeros(len(spans) + 1, np.int32)
    num_opened[starts + 1] += 1
    num_opened[ends] -= 1
    is_inside = num_opened[:-1].cumsum() > 0
    lasts = np.arange(len(spans))
    lasts[starts] = ends - 1
    num_new = np.where(is_inside, 0, 1)
    num_new[starts] = lengths
    return np.stack([spans[:, 0], spans[lasts, 1]], axis=1).repeat(num_new, axis=0)


@dataclass(frozen=True)
class Normaliser:
    """A function from raw to normalised text, in steps; a text that matches `stable` needs at most the last step."""

    steps: tuple[Step, ...]
    stable: re.Pattern[str] = _NOTHING

    def __call__(self, text: str) -> str:
        """Return the normalised text."""
        return self._normalised(text, self._steps_for(text))

    def sentence_texts(self, line: str, sentences: Iterable[str]) -> list[str]:
        """Normalise each sentence of a line separately, after a quick check of the whole line."""
        steps = self._steps_for(line)
        return [self._normalised(sentence, steps) for sentence in sentences]

    def _steps_for(self, text: str) -> tuple[Step, ...]:
        """Return the steps, starting from the first one that may change the text or a substring of it."""
        if self.stable.fullmatch(text):
            return self.steps[-1:] if " " in text else ()
        for number, step in enumerate(self.steps):
            if not step.leaves(text):
                return self.steps[number:]
        return ()

    @staticmethod
    def _normalised(text: str, steps: Iterable[Step]) -> str:
        for step in steps:
            text = step.apply(text)
        return text

    def with_spans(self, text: str) -> tuple[str, NDArray[np.int32]]:
        """Return the normalised text, and the range of raw characters that each of its characters comes from.

        An unchanged character comes from itself. Where several characters together became others, as in composition,
        each new one comes from all the old ones. A removed character belongs to a new one only if it was between the
        characters that became the new one. The spans are start and end of raw characters, int32, shape (m, 2).

        >>> normalise = build_normaliser(TextConfig(unicode_form="NFKC"))
        >>> text, spans = normalise.with_spans("重５㎏")
        >>> text, spans.tolist()
        ('重5kg', [[0, 1], [1, 2], [2, 3], [2, 3]])
        """
        spans = identity_spans(len(text))
        for step in self.steps:
            changed = step.apply(text)
            if changed != text:
                spans = follow_edits(spans, step.find_edits(text))
                assert len(spans) == len(changed), "the edits have to describe what the step did"
            text = changed
        return text, spans


def keeps_tokens(config: TextConfig) -> bool:
    """Return whether text comes segmented, so that no step may cut a token or join two."""
    return config.segmenter == "whitespace"


def build_normaliser(config: TextConfig) -> Normaliser:
    """Build the function from raw to normalised text that the settings describe.

    Full-width folding comes first, then removal of invisible characters, Unicode form, script and white space, so that
    normalising twice changes nothing (except for the script, see `script_converter`). A line end inside the text always
    becomes a space. Text that its user has segmented keeps its tokens: no step makes a space inside one.
    """
    steps = []
    if config.fold_fullwidth:
        steps.append(_replacing("fold_fullwidth", _FULLWIDTH, _fold))
    # Removing an invisible character can bring characters together that the Unicode form composes, so it comes first.
    # No form produces a full-width letter or an invisible character.
    if config.remove_control:
        steps.append(_replacing("remove_control", _INVISIBLE, lambda _: ""))
    if config.unicode_form != "none":
        steps.append(unicode_form_step(config.unicode_form, _token(config) if keeps_tokens(config) else None))
    if config.script != "none":
        convert = script_converter(config.script)
        steps.append(Step("script", convert, partial(_iter_converted, convert), str.isascii))
    if config.collapse_whitespace and keeps_tokens(config):
        steps.append(_SEPARATING)
    elif config.collapse_whitespace:
        steps.append(_replacing("collapse_whitespace", _WHITESPACE, _collapse, lambda text: " ".join(text.split())))
    else:
        steps.append(_replacing("collapse_whitespace", _LINE_ENDS, lambda _: " "))
    return Normaliser(tuple(steps), _stable(config))


def _stable(config: TextConfig) -> re.Pattern[str]:
    if config.script != "none":
        return _NOTHING
    signs = "" if config.unicode_form in ("NFKC", "NFKD") else _STABLE_SIGNS
    return re.compile(f"[{_STABLE}{signs}]*+")


Replacement = Callable[[re.Match[str]], str]


def _replacing(
    name: str, pattern: re.Pattern[str], new: Replacement, apply: Callable[[str], str] | None = None
) -> Step:
    """Return the step that replaces each match of a pattern; `apply` does the same in less time."""
    return Step(
        name,
        apply or partial(pattern.sub, new),
        lambda text: _iter_replaced(pattern, new, text),
        lambda text: pattern.search(text) is None,
    )


def _iter_replaced(pattern: re.Pattern[str], new: Replacement, text: str) -> Iterator[Edit]:
    for match in pattern.finditer(text):
        replaced = new(match)
        if replaced != match[0]:
            yield Edit(match.start(), match.end(), len(replaced))


def _iter_converted(convert: Callable[[str], str], text: str) -> Iterator[Edit]:
    """Yield an edit for each changed character or, if the length changed, one for the whole text."""
    changed = convert(text)
    if len(changed) == len(text):
        yield from (Edit(i, i + 1, 1) for i, (old, new) in enumerate(zip(text, changed, strict=True)) if old != new)
    else:
        yield Edit(0, len(text), len(changed))


def _fold(letter: re.Match[str]) -> str:
    return chr(ord(letter[0]) - _FULLWIDTH_OFFSET)


def _is_inside(run: re.Match[str]) -> bool:
    return run.start() > 0 and run.end() < len(run.string)


def _collapse(run: re.Match[str]) -> str:
    return " " if _is_inside(run) else ""


def _separating(text: str) -> Replacement:
    """Return the replacement for white space: a space between tokens, nothing at the ends, no change inside a token."""
    if " " in text.strip():
        return lambda run: run[0] if _is_inside(run) and set(run[0]).isdisjoint(" \r\n") else _collapse(run)
    return lambda run: run[0] if _is_inside(run) and not run[0].strip(_NO_BREAK) else _collapse(run)


_SEPARATING = Step(
    "collapse_whitespace",
    lambda text: _WHITESPACE.sub(_separating(text), text),
    lambda text: _iter_replaced(_WHITESPACE, _separating(text), text),
    lambda text: _WHITESPACE.search(text) is None,
)


def split_segmented(line: str, config: TextConfig | None = None) -> list[str]:
    r"""Return the tokens of a line that its user has segmented, as the `whitespace` segmenter divides it in training.

    Tokens are separated by U+0020 or, in a line without it, by any white space except no-break spaces. If the settings
    keep white space, only U+0020 separates tokens.

    >>> split_segmented("全\u3000角 很 大")
    ['全\u3000角', '很', '大']
    >>> split_segmented("New\u00a0York\t很\u3000大")
    ['New\xa0York', '很', '大']
    """
    separated = _SEPARATING.apply(line) if config is None or config.collapse_whitespace else line
    return [token for token in separated.split(" ") if token]


def _token(config: TextConfig) -> re.Pattern[str]:
    return _TOKEN if config.collapse_whitespace else _NOT_SPACE


# The time of normalisation grows with the square of a run of combining marks. In the stream-safe text format (Unicode
# Standard Annex #15, section 13), a run has at most 30; no language needs more, so the rest is removed.
_MOST_MARKS = 30
_DECOMPOSED = {"NFC": "NFD", "NFD": "NFD", "NFKC": "NFKD", "NFKD": "NFKD"}


def unicode_form_step(form: str, token: re.Pattern[str] | None = None) -> Step:
    """Return the step that normalises a text to NFC, NFD, NFKC or NFKD.

    With `token`, the pattern of a token, spaces that the form puts into a token (as NFKC does) become no-break spaces.
    """

    def leaves(text: str) -> bool:
        # Every substring of a normalised text is normalised too (Unicode Standard Annex #15, "Stability").
        return not _may_have_long_run(text) and is_normalized(form, text)  # type: ignore[arg-type]

    def apply_to_tokens(text: str) -> str:
        assert token is not None
        return token.sub(lambda match: to_form(form, match[0]).replace(" ", _NO_BREAK[0]), text)

    apply = apply_to_tokens if token else partial(to_form, form)
    return Step("unicode_form", apply, partial(iter_form_edits, form), leaves)


def to_form(form: str, text: str) -> str:
    """Return a text in NFC, NFD, NFKC or NFKD, with at most 30 combining marks in a row."""
    # Decomposition can make a run longer.
    return _shorten_runs(normalize(form, _shorten_runs(text)))  # type: ignore[arg-type]


def _shorten_runs(text: str) -> str:
    if not _may_have_long_run(text):
        return text
    runs = groupby(text, _is_mark)
    return "".join(character for is_mark, run in runs for character in islice(run, _MOST_MARKS if is_mark else None))


def _may_have_long_run(text: str) -> bool:
    """Return whether a run of more than 30 marks is possible; it would cover one of the positions 30, 61, 92, ..."""
    return any(map(_is_mark, text[_MOST_MARKS :: _MOST_MARKS + 1]))


@lru_cache(2**12)
def _is_mark(character: str) -> bool:
    return combining(normalize("NFD", character)[0]) != 0


def iter_form_edits(form: str, text: str) -> Iterator[Edit]:
    """Yield an edit for each cluster (a character and those after it that may join it) that a Unicode form changes."""
    decomposed = _DECOMPOSED[form]
    starts = [index for index, character in enumerate(text) if index == 0 or not _may_join(decomposed, character)]
    for start, end in pairwise([*starts, len(text)]):
        cluster = text[start:end]
        new = to_form(form, cluster)
        if new != cluster:
            yield Edit(start, end, len(new))


@lru_cache(2**12)
def _may_join(decomposed: str, character: str) -> bool:
    """Return whether a Unicode form may combine a character with those before it, or reorder them."""
    first = normalize(decomposed, character)[0]  # type: ignore[arg-type]
    # Accents and vowel signs are marks; the vowels and finals of Hangul are letters.
    return category(first).startswith("M") or "\u1160" <= first <= "\u11ff"
