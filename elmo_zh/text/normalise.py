"""Normalisation of text, each step a named setting of `TextConfig`."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from elmo_zh.config import TextConfig
from elmo_zh.text.alignment import Edit, Step, follow_edits, identity_spans
from elmo_zh.text.unicode_form import unicode_form_step

# Full-width digits, capitals and small letters stand 0xFEE0 above their ASCII twins.
_FULLWIDTH_OFFSET = 0xFEE0
_FOLD_FULLWIDTH = {
    code + _FULLWIDTH_OFFSET: code for code in range(0x21, 0x7F) if chr(code).isascii() and chr(code).isalnum()
}
# Python's \s is Unicode white space (U+3000, U+00A0, U+2028, U+0085, ...) and the four separators U+001C to U+001F.
_WHITESPACE = re.compile(r"\s+")
_LINE_ENDS = re.compile(r"[\r\n]+")


@cache
def _invisible_characters() -> dict[int, None]:
    """Return every control and format character that is not white space, mapped to nothing for `str.translate`."""
    # Planes 2 and 3 are ideographs, 4 to 13 are empty and the last two private; leaving them out saves start-up time.
    planes = (range(0x20000), range(0xE0000, 0xF0000))
    return {
        code: None
        for code in chain(*planes)
        if unicodedata.category(chr(code)) in ("Cc", "Cf") and not chr(code).isspace()
    }


@dataclass(frozen=True)
class Normaliser:
    """From raw to normalised text, step by step, each given what the one before it made."""

    steps: tuple[Step, ...]

    def __call__(self, text: str) -> str:
        """Return the normalised text."""
        for step in self.steps:
            text = step.apply(text)
        return text

    def with_spans(self, text: str) -> tuple[str, NDArray[np.int32]]:
        """Return the normalised text, and which characters of the raw one each of its characters stands for.

        A character that did not change stands for itself alone. Where several together became others, as in
        composition, each of the new ones stands for all the old ones. What was removed belongs to a character only
        where it stood amidst what became that character.

        >>> normalise = build_normaliser(TextConfig(unicode_form="NFKC"))
        >>> text, spans = normalise.with_spans("重５㎏")
        >>> text, spans.tolist()
        ('重5kg', [[0, 1], [1, 2], [2, 3], [2, 3]])

        Returns:
            The same text as without spans, of m characters; and for each its first raw character and the one after
            its last, int32, shape (m, 2).
        """
        spans = identity_spans(len(text))
        for step in self.steps:
            changed = step.apply(text)
            if changed != text:
                spans = follow_edits(spans, step.find_edits(text))
                assert len(spans) == len(changed), "the edits are what the step does"
            text = changed
        return text, spans


def build_normaliser(config: TextConfig) -> Normaliser:
    """Return the function from raw to normalised text that the settings describe.

    Unicode form first, then full-width folding, then removal of invisible characters, then white space, so that
    normalising twice changes nothing more. A line end inside the text becomes a space in any case.
    """
    table: dict[int, int | None] = {}
    if config.fold_fullwidth:
        table.update(_FOLD_FULLWIDTH)
    if config.remove_control:
        table.update(_invisible_characters())
    translation = Step(lambda text: text.translate(table), partial(_iter_translated, table))
    white_space = Step(_collapse, _iter_collapsed) if config.collapse_whitespace else Step(_join_lines, _iter_line_ends)
    if config.unicode_form == "none":
        return Normaliser((translation, white_space))
    # Removing an invisible character can bring together what the Unicode form composes, so it goes first too.
    return Normaliser((translation, unicode_form_step(config.unicode_form), translation, white_space))


def _iter_translated(table: Mapping[int, int | None], text: str) -> Iterator[Edit]:
    for index, code in enumerate(map(ord, text)):
        if code in table:
            yield Edit(index, index + 1, 0 if table[code] is None else 1)


def _collapse(text: str) -> str:
    return _WHITESPACE.sub(" ", text).strip(" ")


def _iter_collapsed(text: str) -> Iterator[Edit]:
    for run in _WHITESPACE.finditer(text):
        is_at_an_end = run.start() == 0 or run.end() == len(text)
        yield Edit(run.start(), run.end(), 0 if is_at_an_end else 1)


def _join_lines(text: str) -> str:
    return _LINE_ENDS.sub(" ", text)


def _iter_line_ends(text: str) -> Iterator[Edit]:
    for run in _LINE_ENDS.finditer(text):
        yield Edit(run.start(), run.end(), 1)
