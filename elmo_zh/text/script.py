"""Traditional to simplified characters and back, by OpenCC."""

import importlib
import importlib.metadata
import re
from collections.abc import Callable, Iterator
from typing import Any

from elmo_zh.errors import ConfigError
from elmo_zh.extras import install_line
from elmo_zh.text.alignment import Edit, Step

_CONVERSIONS = {"simplified": "t2s", "traditional": "s2t"}
# Halves of surrogate pairs, which UTF-8 and so OpenCC cannot hold; they come from Python only, not from files.
_HALVES = re.compile("([\ud800-\udfff]+)")


def script_step(script: str) -> Step:
    """Return the step that brings a text into simplified or traditional characters.

    It looks at words (头发, 发展), so a piece of a text alone may come out otherwise than within it, and what is
    converted already may change again: traditional text is not to be made traditional once more.

    Raises:
        ConfigError: If OpenCC is not installed.
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


def describe_script(script: str) -> dict[str, str]:
    """Return OpenCC's version, which names its dictionaries too; nothing where nothing is converted.

    Raises:
        ConfigError: If OpenCC is not installed.
    """
    if script == "none":
        return {}
    try:
        return {"opencc": importlib.metadata.version("opencc")}
    except importlib.metadata.PackageNotFoundError:
        raise _missing(script) from None


def _missing(script: str) -> ConfigError:
    return ConfigError(f"text.script = {script} needs the package opencc. Install it with: {install_line('opencc')}")


def _iter_edits(text: str, convert: Callable[[str], str]) -> Iterator[Edit]:
    """Yield the characters that change.

    OpenCC's words keep their length in both directions. Were there one that does not, nobody could say what became of
    what: then all is one piece, too large and never wrong.
    """
    changed = convert(text)
    if len(changed) == len(text):
        yield from (Edit(i, i + 1, 1) for i, (old, new) in enumerate(zip(text, changed, strict=True)) if old != new)
    else:
        yield Edit(0, len(text), len(changed))
