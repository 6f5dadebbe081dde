"""Mojibake, text decoded with the wrong encoding: detected cheaply, and repaired with ftfy."""

import re
from collections.abc import Callable

from elmo_zh.corpus.content import import_extra

# Windows-1252 of the bytes 0x80 to 0x9F, and Latin-1 of 0xA0 to 0xBF without the middle dot of Chinese names.
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
# UTF-8 read as GB18030: full-width punctuation begins with the first one; 、 and 。 and brackets with the second.
_OF_GB18030 = ("\u951b", "\u9286")
_LOST = "锟斤拷"
# Everything that looks garbled contains one of these; for a character class of a regular expression.
SIGNS = f"\xa1-\xb6\xb8-\xff{_LOST[0]}{''.join(_OF_GB18030)}"


def looks_garbled(line: str) -> bool:
    """Return whether a line looks as if it was decoded with the wrong encoding.

    This is fast but no proof: a line about mojibake looks the same.
    """
    return bool(_GARBLED.search(line)) or _LOST in line or _was_read_as_gb18030(line)


def _was_read_as_gb18030(line: str) -> bool:
    return sum(map(line.count, _OF_GB18030)) >= 2


def build_repair() -> Callable[[str], str]:
    """Return the function that repairs a line, or returns it unchanged if the repair is uncertain.

    GB18030 read as Latin-1 and UTF-8 read as GB18030 are repaired here, whole lines only; ftfy, which knows neither,
    repairs the rest. Only ftfy's decoding is used, not its other repairs (quotes, widths).
    """
    fix_encoding = import_extra("ftfy", "text.repair_mojibake = true").fix_encoding

    def repair(line: str) -> str:
        return _from_gb18030(line) or _from_latin(line) or str(fix_encoding(line))

    return repair


def _from_gb18030(line: str) -> str:
    """Return the repaired line of UTF-8 that was read as GB18030; empty if its bytes are not all UTF-8.

    The bytes of other Chinese text are never valid UTF-8, except for a character or two.
    """
    if not _was_read_as_gb18030(line):
        return ""
    try:
        return line.encode("gb18030").decode("utf-8")
    except UnicodeError:
        return ""


def _from_latin(line: str) -> str:
    """Return the repaired line of GB18030 that was read as Latin-1; empty if it is UTF-8 or does not become Chinese."""
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
