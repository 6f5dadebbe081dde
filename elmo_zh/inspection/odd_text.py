"""Text that looks like an accident: signs of wrong decoding, very long tokens and sentences."""

import re
from collections import Counter
from dataclasses import dataclass, field

from elmo_zh.corpus.cleaning.examples import LONGEST_EXAMPLE, shortened

LONG_TOKEN_CHARACTERS = 24
LONG_SENTENCE_TOKENS = 300
REPLACEMENT = "\ufffd"
# UTF-8 read as Latin-1 or Windows-1252 makes accented letters in a row, read as GBK it makes 锟斤拷 out of U+FFFD.
# Memory that was never written reads 烫烫烫 or 屯屯屯 in GBK. Private characters have no meaning of their own.
_MOJIBAKE = re.compile(
    "(?:[\u00c3\u00c2\u00e2-\u00e9\u00ef] ?(?:[\u0080-\u00bf\u0152-\u0178\u2013-\u203a\u20ac\u2122] ?){1,3}){2,}"
    "|(?:[\u00c0-\u00ff] ?){4,}|锟 ?斤 ?拷|(?:烫 ?){3,}|(?:屯 ?){3,}|锘 ?[挎縷]"
)
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")


@dataclass
class OddCounts:
    """How often each kind of oddity was seen, and the first example of it."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Count one."""
        self.counts[kind] += 1
        self.examples.setdefault(kind, shortened(example))

    def look_at(self, line: str) -> None:
        """Look for signs of wrong decoding in a segmented sentence."""
        if line.isascii():
            return
        if REPLACEMENT in line:
            self.add("sentences with U+FFFD", around(line, line.index(REPLACEMENT)))
        if match := _MOJIBAKE.search(line):
            self.add("sentences that look wrongly decoded", around(line, match.start()))
        if match := _PRIVATE.search(line):
            self.add("sentences with private characters", around(line, match.start()))


def around(text: str, place: int) -> str:
    """Return a text from a little before a place on."""
    return text[max(0, place - LONGEST_EXAMPLE // 4) :]
