"""Clean one line of a corpus: repair it, remove markup, or drop it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.counts import LineCounts
from elmo_zh.corpus.cleaning.markup import SIGNS as MARKUP_SIGNS
from elmo_zh.corpus.cleaning.markup import without_markup
from elmo_zh.corpus.cleaning.mojibake import SIGNS as MOJIBAKE_SIGNS
from elmo_zh.corpus.cleaning.mojibake import build_repair, looks_garbled
from elmo_zh.text.han import han_share

# Reasons why a line is dropped, as they appear in records and reports.
EMPTY = "lines without a word"
TOO_LONG = "lines too long"
ONLY_MARKUP = "lines of markup only"
LITTLE_CHINESE = "lines with too little Chinese"
# Why a kept line may deserve a look.
GARBLED = "lines that look wrongly decoded"
# In the order in which they are applied; normalisation follows.
CLEANING_STEPS = ("repair_mojibake", "remove_markup")
# Few lines contain one of these characters, and one search for all of them is faster than several.
_SUSPECT = re.compile(f"[{MARKUP_SIGNS}{MOJIBAKE_SIGNS}]")


@dataclass(frozen=True)
class LineCleaner:
    """Cleaner of lines with the given settings. Embedding cleans nothing, so that each line stays a line."""

    max_characters: int
    repair: Callable[[str], str] | None
    removes_markup: bool
    min_han_share: float

    @classmethod
    def build(cls, config: TextConfig) -> "LineCleaner":
        """Return the cleaner that the settings describe."""
        return cls(
            max_characters=config.max_line_characters,
            repair=build_repair() if config.repair_mojibake else None,
            removes_markup=config.remove_markup,
            min_han_share=config.min_han_share,
        )

    def clean(self, line: str, counts: LineCounts) -> str | None:
        """Return the cleaned line, or None if it is dropped; count changes and drops, but not yet a kept line."""
        if self.max_characters and len(line) > self.max_characters:
            counts.drop(TOO_LONG, line)
            return None
        text = line
        if _SUSPECT.search(line):
            if looks_garbled(line):
                text = self._repaired(line, counts)
            if self.removes_markup:
                text = _without_markup(text, counts)
            if line.strip() and not text.strip():
                counts.drop(ONLY_MARKUP, line)
                return None
        # A line without any word is counted as such later.
        if self.min_han_share and text.strip() and han_share(text) < self.min_han_share:
            counts.drop(LITTLE_CHINESE, line)
            return None
        return text

    def _repaired(self, line: str, counts: LineCounts) -> str:
        repaired = self.repair(line) if self.repair else line
        if repaired != line:
            counts.change("repair_mojibake", line, repaired)
        if looks_garbled(repaired):
            counts.notice(GARBLED)
        return repaired


def _without_markup(text: str, counts: LineCounts) -> str:
    without = without_markup(text)
    if without != text:
        counts.change("remove_markup", text, without)
    return without
