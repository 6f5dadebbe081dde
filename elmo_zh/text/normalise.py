"""Normalise text; each step is a setting in `TextConfig`."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, pairwise
from unicodedata import combining, is_normalized, normalize

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.text.alignment import Edit, Step, follow_edits, identity_spans
from elmo_zh.text.script import script_step

# Code points of full-width digits and letters are 0xFEE0 above their ASCII equivalents.
_FULLWIDTH_OFFSET = 0xFEE0
_FOLD_FULLWIDTH = {
    code + _FULLWIDTH_OFFSET: code for code in range(0x21, 0x7F) if chr(code).isascii() and chr(code).isalnum()
}
_FULLWIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
# Python's \s is Unicode white space (U+3000, U+00A0, U+2028, U+0085, ...) and the four separators U+001C to U+001F.
_WHITESPACE = re.compile(r"\s+")
_LINE_ENDS = re.compile(r"[\r\n]+")
# Most lines consist of these characters only, and no step changes them, alone or next to each other, except for spaces.
# NFKC and NFKD turn the second group into ASCII; converting the script may change any Han character.
_STABLE = " -~\u4e00-\u9fff\u00b7\u2014\u2018\u2019\u201c\u201d\u3001\u3002\u3008-\u3011"
_STABLE_SIGNS = "\u2026\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_NOTHING = re.compile("")
# Called with the name of a step and the text before and after it, for each change.
OnChange = Callable[[str, str, str], None]


@cache
def _invisible_characters() -> dict[int, None]:
    """Return a map from every control and format character except white space to nothing, for `str.translate`."""
    # Planes 2 and 3 are ideographs, 4 to 13 are empty and the last two private use; skipping them saves start-up time.
    planes = (range(0x20000), range(0xE0000, 0xF0000))
    return {
        code: None
        for code in chain(*planes)
        if unicodedata.category(chr(code)) in ("Cc", "Cf") and not chr(code).isspace()
    }


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(map(chr, _invisible_characters())))}]")


@dataclass(frozen=True)
class Normaliser:
    """A function from raw to normalised text, in steps; a text that matches `stable` needs at most the last step."""

    steps: tuple[Step, ...]
    stable: re.Pattern[str] = _NOTHING

    def __call__(self, text: str) -> str:
        """Return the normalised text."""
        return self._normalised(text, self._steps_for(text), None)

    def sentence_texts(self, line: str, sentences: Iterable[str], on_change: OnChange | None = None) -> list[str]:
        """Normalise each sentence of a line separately, after a quick check of the whole line."""
        steps = self._steps_for(line)
        if not steps:
            return list(sentences)
        return [self._normalised(sentence, steps, on_change) for sentence in sentences]

    def _steps_for(self, text: str) -> tuple[Step, ...]:
        """Return the steps, starting from the first one that may change the text or a substring of it."""
        if self.stable.fullmatch(text):
            return self.steps[-1:] if " " in text else ()
        for number, step in enumerate(self.steps):
            if not step.leaves(text):
                return self.steps[number:]
        return ()

    @staticmethod
    def _normalised(text: str, steps: Iterable[Step], on_change: OnChange | None) -> str:
        for step in steps:
            changed = step.apply(text)
            if on_change is not None and changed != text:
                on_change(step.name, text, changed)
            text = changed
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


def build_normaliser(config: TextConfig) -> Normaliser:
    """Build the function from raw to normalised text that the settings describe.

    Full-width folding comes first, then removal of invisible characters, Unicode form, script and white space, so that
    normalising twice changes nothing (except for the script, see `script_step`). A line end inside the text always
    becomes a space.
    """
    steps = []
    if config.fold_fullwidth:
        steps.append(_fold_step())
    # Removing an invisible character can bring characters together that the Unicode form composes, so it comes first.
    # No form produces a full-width letter or an invisible character.
    if config.remove_control:
        steps.append(_control_step())
    if config.unicode_form != "none":
        steps.append(unicode_form_step(config.unicode_form))
    if config.script != "none":
        steps.append(script_step(config.script))
    white_space = _white_space_step() if config.collapse_whitespace else _line_end_step()
    return Normaliser((*steps, white_space), _stable(config))


def _stable(config: TextConfig) -> re.Pattern[str]:
    if config.script != "none":
        return _NOTHING
    signs = "" if config.unicode_form in ("NFKC", "NFKD") else _STABLE_SIGNS
    return re.compile(f"[{_STABLE}{signs}]*+")


def _fold_step() -> Step:
    return _translating("fold_fullwidth", _FOLD_FULLWIDTH, lambda text: _FULLWIDTH.search(text) is None)


def _translating(name: str, table: Mapping[int, int | None], leaves: Callable[[str], bool]) -> Step:
    def translate(text: str) -> str:
        return text if leaves(text) else text.translate(table)

    return Step(name, translate, partial(_iter_translated, table), leaves)


def _control_step() -> Step:
    invisible = _invisible()

    def leaves(text: str) -> bool:
        # Several times faster than the search: a printable text has no invisible character and no space but U+0020.
        return text.isprintable() or "".join(text.split()).isprintable() or invisible.search(text) is None

    return _translating("remove_control", _invisible_characters(), leaves)


def _white_space_step() -> Step:
    # A sentence may begin or end at any space, so any space may have to go.
    return Step(
        "collapse_whitespace",
        lambda text: " ".join(text.split()),
        _iter_collapsed,
        lambda text: " " not in text and text.isprintable(),
    )


def _line_end_step() -> Step:
    return Step(
        "collapse_whitespace",
        lambda text: _LINE_ENDS.sub(" ", text),
        _iter_line_ends,
        lambda text: "\n" not in text and "\r" not in text,
    )


def _iter_translated(table: Mapping[int, int | None], text: str) -> Iterator[Edit]:
    for index, code in enumerate(map(ord, text)):
        if code in table:
            yield Edit(index, index + 1, 0 if table[code] is None else 1)


def _iter_collapsed(text: str) -> Iterator[Edit]:
    for run in _WHITESPACE.finditer(text):
        is_at_an_end = run.start() == 0 or run.end() == len(text)
        yield Edit(run.start(), run.end(), 0 if is_at_an_end else 1)


def _iter_line_ends(text: str) -> Iterator[Edit]:
    for run in _LINE_ENDS.finditer(text):
        yield Edit(run.start(), run.end(), 1)


_RANGE = 256
# The time of normalisation grows with the square of a run of combining marks. In the stream-safe text format (Unicode
# Standard Annex #15, section 13), a run has at most 30 marks; U+034F, which composes with nothing, divides longer runs.
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
    """Return a text in NFC, NFD, NFKC or NFKD, with U+034F after every 30 combining marks in longer sequences."""
    # Decomposition can make a run longer.
    return _divide_runs(normalize(form, _divide_runs(text)))  # type: ignore[arg-type]


def _divide_runs(text: str) -> str:
    return _long_run().sub(_divide, text) if _may_have_long_run(text) else text


def _may_have_long_run(text: str) -> bool:
    """Return whether a run of more than 30 marks is possible; it would cover one of every 31 positions."""
    return not _marks().isdisjoint(text[_MOST_MARKS :: _MOST_MARKS + 1])


def _divide(run: re.Match[str]) -> str:
    return _DIVIDER.join(run[0][start : start + _MOST_MARKS] for start in range(0, len(run[0]), _MOST_MARKS))


@cache
def _long_run() -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(sorted(_marks())))}]{{{_MOST_MARKS + 1},}}")


@cache
def _marks() -> frozenset[str]:
    """Return every character whose decomposition starts with a combining mark that may be reordered."""
    # Planes 2 to 13 have none.
    characters = map(chr, chain(range(0x300, 0x20000), range(0xE0000, 0xE1000)))
    return frozenset(character for character in characters if combining(normalize("NFD", character)[0]))


def iter_form_edits(form: str, text: str) -> Iterator[Edit]:
    """Yield an edit for each cluster that a Unicode form changes: a character with those it may be composed with."""
    decomposed = _DECOMPOSED[form]
    starts = [index for index, character in enumerate(text) if index == 0 or not _may_join(decomposed, character)]
    for start, end in pairwise([*starts, len(text)]):
        cluster = text[start:end]
        new = to_form(form, cluster)
        if new != cluster:
            yield Edit(start, end, len(new))


@cache
def _may_join(decomposed: str, character: str) -> bool:
    """Return whether a Unicode form may combine a character with those before it, or reorder them."""
    first = normalize(decomposed, character)[0]  # type: ignore[arg-type]
    return combining(first) != 0 or first in _later_characters()


@cache
def _later_characters() -> frozenset[str]:
    """Return every character that comes after the first in a canonical decomposition: accents, vowels and finals."""
    ranges = ("".join(map(chr, range(code, code + _RANGE))) for code in range(0, 0x110000, _RANGE))
    # Most ranges hold no decomposable character; testing a range at a time takes milliseconds.
    characters = (character for text in ranges if normalize("NFD", text) != text for character in text)
    return frozenset(later for character in characters for later in normalize("NFD", character)[1:])
