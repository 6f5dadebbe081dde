"""Clean one line of a corpus: repair it if it was decoded with the wrong encoding, remove markup, or drop it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.line_counts import LineCounts
from elmo_zh.corpus.cleaning.markup import SIGNS as MARKUP_SIGNS
from elmo_zh.corpus.cleaning.markup import without_markup
from elmo_zh.corpus.content import import_extra
from elmo_zh.language import N_
from elmo_zh.text.han import han_share

# Reasons why a line is dropped, as they appear in records and reports.
EMPTY = N_("lines without a word")
TOO_LONG = N_("lines too long")
ONLY_MARKUP = N_("lines of markup only")
LITTLE_CHINESE = N_("lines with too little Chinese")
# Why a kept line may deserve a look.
GARBLED = N_("lines that look wrongly decoded")
# In order of application; normalisation follows.
CLEANING_STEPS = ("repair_mojibake", "remove_markup")
# The Windows-1252 characters for bytes 0x80 to 0x9F; the Latin-1 ones for 0x80 to 0xBF, without the middle dot of
# Chinese names.
_OTHER = "\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018\u2019\u201c\u201d"
_OTHER += "\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178"
_LATIN = "\x80-\xb6\xb8-\xbf"
# GB18030 read as Latin-1: a run that occurs in no language, without the signs for degrees and multiplication.
_RUN = "[\xa1-\xaf\xb1-\xb6\xb8-\xd6\xd8-\xf6\xf8-\xfe]{6}"
# UTF-8 read as Latin-1: the three bytes of a Chinese character, at least one of which is foreign to Chinese text; the
# two of an accented letter; the three of a quote.
_GARBLED = re.compile(
    f"[\xe0-\xef](?:[{_LATIN}][{_LATIN}{_OTHER}]|[{_OTHER}][{_LATIN}])|\xc3[\xa0-\xb6\xb8-\xbf]|\xe2\u20ac|{_RUN}"
)
_CHINESE = re.compile(r"[\x00-\x7f\u2014\u2018-\u201d\u2026\u3000-\u3011\u4e00-\u9fa5\uff01-\uff5e]*")
# UTF-8 read as GB18030: full-width punctuation begins with the first of these; 、, 。 and brackets with the second.
_OF_GB18030 = ("\u951b", "\u9286")
_LOST = "锟斤拷"
# Everything that looks garbled contains one of these.
MOJIBAKE_SIGNS = f"\xa1-\xb6\xb8-\xff{_LOST[0]}{''.join(_OF_GB18030)}"
# Few lines contain one of these characters, and one search for all of them is faster than several.
_SUSPECT = re.compile(f"[{MARKUP_SIGNS}{MOJIBAKE_SIGNS}]")


@dataclass(frozen=True)
class LineCleaner:
    """Cleans lines according to the settings. Embedding cleans nothing, so that each line stays a line."""

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
        """Clean a line, counting changes and drops; return None if it is dropped. The caller counts kept lines."""
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


def looks_garbled(line: str) -> bool:
    """Return whether a line looks wrongly decoded; a line about wrong decoding looks the same."""
    return bool(_GARBLED.search(line)) or _LOST in line or _was_read_as_gb18030(line)


def _was_read_as_gb18030(line: str) -> bool:
    return sum(map(line.count, _OF_GB18030)) >= 2


def build_repair() -> Callable[[str], str]:
    """Return a function that repairs a line with ftfy, or with our own code for GB18030, which ftfy does not know."""
    fix_encoding = import_extra("ftfy", "text.repair_mojibake = true").fix_encoding

    def repair(line: str) -> str:
        return _from_gb18030(line) or _from_latin(line) or str(fix_encoding(line))

    return repair


def _from_gb18030(line: str) -> str:
    """Repair a line of UTF-8 that was read as GB18030; return "" if its bytes are not all UTF-8."""
    if not _was_read_as_gb18030(line):
        return ""
    try:
        return line.encode("gb18030").decode("utf-8")
    except UnicodeError:
        return ""


def _from_latin(line: str) -> str:
    """Repair a line of GB18030 that was read as Latin-1; return "" if it is UTF-8 or does not become Chinese."""
    try:
        raw = line.encode("latin-1")
        decoded = raw.decode("gb18030")
    except UnicodeError:
        return ""
    return decoded if _CHINESE.fullmatch(decoded) and not _is_utf8(raw) else ""


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
