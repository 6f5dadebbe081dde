"""Segmenters without a dictionary: tokens between spaces as given, and one token per character."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.text.segmenters.registry import Segmenter, split_tokens


@dataclass(frozen=True)
class _RuleSegmenter:
    """A segmenter that is one function and needs neither a package nor a version."""

    segment: Callable[[str], list[str]]
    TAKES_USER_DICTIONARY = False

    def build(self, _config: TextConfig, _user_dictionary: Path | None) -> Segmenter:
        return self.segment

    def describe(self) -> dict[str, str]:
        return {}


def split_characters(sentence: str) -> list[str]:
    """Return every character but U+0020 as a token."""
    return [character for character in sentence if character != " "]


WHITESPACE, CHARACTER = _RuleSegmenter(split_tokens), _RuleSegmenter(split_characters)
