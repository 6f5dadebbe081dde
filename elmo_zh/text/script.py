"""Convert between traditional and simplified characters with OpenCC."""

import importlib
import importlib.metadata
import re
from collections.abc import Callable, Iterator
from typing import Any

from elmo_zh.errors import ConfigError
from elmo_zh.invocation import install_line
from elmo_zh.language import _
from elmo_zh.text.alignment import Edit, Step

_CONVERSIONS = {"simplified": "t2s", "traditional": "s2t"}
# Lone surrogates, which UTF-8 and therefore OpenCC cannot represent; only Python strings hold them, never files.
_HALVES = re.compile("([\ud800-\udfff]+)")


def script_step(script: str) -> Step:
    """Return the step that converts a text to simplified or traditional characters.

    OpenCC converts words (头发, 发展), so part of a text may convert differently from the whole text, and converting
    twice may change more: do not convert traditional text to traditional.
    """
    try:
        converter: Any = importlib.import_module("opencc").OpenCC(_CONVERSIONS[script])
    except ImportError:
        raise _missing(script) from None

    def convert(text: str) -> str:
        if text.isascii():
            return text
        try:
            return str(converter.convert(text))
        except UnicodeEncodeError:
            return "".join(
                part if _HALVES.match(part) else str(converter.convert(part)) for part in _HALVES.split(text)
            )

    return Step("script", convert, lambda text: _iter_edits(text, convert), str.isascii)


def fold_script() -> Callable[[str], str]:
    """Return a function that maps simplified and traditional spellings to one form of the same length.

    Words are converted first (看著 becomes 看着), then the characters that words leave traditional (乾 of 乾隆), so
    that the form of a character does not depend on where the text around it is cut.
    """
    step = script_step("simplified")
    characters = _FoldedCharacters(step.apply)

    def fold(text: str) -> str:
        if text.isascii():
            return text
        folded = step.apply(text)
        return (folded if len(folded) == len(text) else text).translate(characters)

    return fold


class _FoldedCharacters(dict[int, str]):
    def __init__(self, convert: Callable[[str], str]) -> None:
        super().__init__({ord("著"): "着"})
        self._convert = convert

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = self._convert(character)
        self[code] = folded if len(folded) == 1 else character
        return self[code]


def describe_script(script: str) -> dict[str, str]:
    """Return OpenCC's version, which also identifies its dictionaries; empty if no script is converted."""
    if script == "none":
        return {}
    try:
        return {"opencc": importlib.metadata.version("opencc")}
    except importlib.metadata.PackageNotFoundError:
        raise _missing(script) from None


def _missing(script: str) -> ConfigError:
    return ConfigError(
        _("text.script = {script} needs the package opencc. Install it with: {value}").format(
            script=script, value=install_line("opencc")
        )
    )


def _iter_edits(text: str, convert: Callable[[str], str]) -> Iterator[Edit]:
    """Yield an edit for each changed character or, if the length changed, one for the whole text."""
    changed = convert(text)
    if len(changed) == len(text):
        yield from (Edit(i, i + 1, 1) for i, (old, new) in enumerate(zip(text, changed, strict=True)) if old != new)
    else:
        yield Edit(0, len(text), len(changed))
