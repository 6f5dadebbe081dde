"""Which characters are Chinese."""

import re
from collections.abc import Iterable

import numpy as np

_HAN_RUN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_NO_LETTERS = re.compile(r"[\W_]+")


def count_han(lines: Iterable[str]) -> int:
    """Return the number of Han characters in all lines together."""
    codes = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), "<u4")
    is_han = (codes >= 0x3400) & (codes <= 0x9FFF) | (codes >= 0xF900) & (codes <= 0xFAFF)
    return int(np.count_nonzero(is_han | (codes >= 0x20000) & (codes <= 0x3FFFF)))


def han_share(line: str) -> float:
    """Return the share of Han characters among the letters and digits of a line; 0 where there are none.

    Signs do not count, so that “嗯。” is all Chinese.
    """
    others = _HAN_RUN.sub("", line)
    num_han = len(line) - len(others)
    num_letters = num_han + len(_NO_LETTERS.sub("", others))
    return num_han / num_letters if num_letters else 0.0
