"""Recognise Chinese characters, and convert between traditional and simplified ones with OpenCC."""

import importlib
import importlib.metadata
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from elmo_zh.errors import ConfigError
from elmo_zh.invocation import needs

# The ideographs of all Unicode blocks, and the zero of written years, U+3007.
_RANGES = ((0x3007, 0x3007), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
HAN = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _RANGES)}]")

HAN_RUN = re.compile(f"{HAN.pattern}+")
_NO_LETTERS = re.compile(r"[\W_]+")


def count_han(lines: Iterable[str]) -> int:
    """Return the total number of Han characters in some lines."""
    codes = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), "<u4")
    return sum(int(np.count_nonzero((codes >= first) & (codes <= last))) for first, last in _RANGES)


def han_share(line: str) -> float:
    """Return the fraction of Han characters among a line's letters and digits, or 0 for a line without any."""
    others = HAN_RUN.sub("", line)
    num_han = len(line) - len(others)
    num_letters = num_han + len(_NO_LETTERS.sub("", others))
    return num_han / num_letters if num_letters else 0.0


_CONVERSIONS = {"simplified": "t2s", "traditional": "s2t"}
# Lone surrogates, which UTF-8 and therefore OpenCC cannot represent; only Python strings hold them, never files.
_HALVES = re.compile("([\ud800-\udfff]+)")


def script_converter(script: str) -> Callable[[str], str]:
    """Return the function that converts text to simplified or traditional characters; raise ConfigError without OpenCC.

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

    return convert


def fold_script() -> Callable[[str], str]:
    """Return a function that maps simplified and traditional spellings to one form of the same length.

    Words are converted first (看著 becomes 看着), then the characters that words leave traditional (乾 of 乾隆), so
    that the form of a character does not depend on where the text around it is cut.
    """
    convert = script_converter("simplified")
    characters = _FoldedCharacters(convert)

    def fold(text: str) -> str:
        if text.isascii():
            return text
        folded = convert(text)
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
    return ConfigError(needs(f"text.script = {script}", "opencc", "opencc"))
