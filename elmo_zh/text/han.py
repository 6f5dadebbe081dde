"""Recognise Chinese characters."""

import re
from collections.abc import Iterable

import numpy as np

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
