"""Normalisation of text, each step a named setting of `TextConfig`."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from elmo_zh.config import TextConfig

Normaliser = Callable[[str], str]

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
    return {
        code: None
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cf") and not chr(code).isspace()
    }


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
    form = config.unicode_form
    collapse = config.collapse_whitespace

    def normalise(text: str) -> str:
        # Removing an invisible character can bring together what the Unicode form composes, so it goes first too.
        text = text.translate(table)
        if form != "none":
            text = unicodedata.normalize(form, text).translate(table)  # type: ignore[arg-type]
        if collapse:
            return _WHITESPACE.sub(" ", text).strip(" ")
        return _LINE_ENDS.sub(" ", text)

    return normalise
