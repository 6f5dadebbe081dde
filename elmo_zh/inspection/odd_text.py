"""Text that looks like an accident: signs of wrong decoding, very long tokens and sentences."""

import re
from collections import Counter
from dataclasses import dataclass, field

from elmo_zh.corpus.cleaning.examples import LONGEST_EXAMPLE, shortened

LONG_TOKEN_CHARACTERS = 24
LONG_SENTENCE_TOKENS = 300
# UTF-8 read as Latin-1 or Windows-1252 makes accented letters in a row, read as GBK it makes 锟斤拷 out of U+FFFD.
# Memory that was never written reads 烫烫烫 or 屯屯屯 in GBK. Private characters have no meaning of their own.
_SIGNS = {
    "sentences with U+FFFD": re.compile("\ufffd"),
    "sentences that look wrongly decoded": re.compile(
        "(?:[\u00c3\u00c2\u00e2-\u00e9\u00ef] ?(?:[\u0080-\u00bf\u0152-\u0178\u2013-\u203a\u20ac\u2122] ?){1,3}){2,}"
        "|(?:[\u00c0-\u00ff] ?){4,}|锟 ?斤 ?拷|(?:烫 ?){3,}|(?:屯 ?){3,}|锘 ?[挎縷]"
    ),
    "sentences with private characters": re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]"),
}
# How to correct what is odd in text, by kind.
ADVICE = {
    "sentences with U+FFFD": (
        "Bytes did not decode, here or before you got the text. Name the encoding (--encoding), or leave such lines"
        " out: --bad-bytes skip-line"
    ),
    "sentences that look wrongly decoded": (
        "The file was decoded wrongly before you got it: fetch the original, or clean it."
    ),
    "sentences with private characters": "They come from fonts of one program; replace or remove them.",
    "long sentences": (
        f"Longer than {LONG_SENTENCE_TOKENS} tokens: lists, tables or text without sentence ends. Split the lines."
    ),
    "long tokens": (
        f"Longer than {LONG_TOKEN_CHARACTERS} characters: addresses, codes or formulas. Remove them before segmenting."
    ),
}


@dataclass
class OddCounts:
    """Number of times each kind of oddity was seen, and its first example."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, example: str) -> None:
        """Count one."""
        self.counts[kind] += 1
        self.examples.setdefault(kind, shortened(example))

    def check_decoding(self, line: str) -> None:
        """Count the signs of wrong decoding in a segmented sentence."""
        if line.isascii():
            return
        for kind, sign in _SIGNS.items():
            if match := sign.search(line):
                self.add(kind, line[max(0, match.start() - LONGEST_EXAMPLE // 4) :])
