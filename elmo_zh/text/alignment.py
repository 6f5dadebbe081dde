"""Which characters of a line each of its tokens stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TokenisedLine:
    """The tokens of one line.

    Attributes:
        tokens: In order; none is empty.
        offsets: First character of each token in the line as it was given and the one after its last, int32,
            shape (n, 2).
    """

    tokens: list[str]
    offsets: NDArray[np.int32]

    @classmethod
    def of_tokens(cls, tokens: Sequence[str]) -> "TokenisedLine":
        """Return the line in which one space stands between tokens."""
        lengths = np.array([len(token) for token in tokens], np.int32)
        ends = np.cumsum(lengths + 1, dtype=np.int32) - 1
        return cls(list(tokens), np.stack([ends - lengths, ends], axis=1))


def find_tokens(text: str, tokens: Sequence[str]) -> NDArray[np.int32]:
    """Return where tokens stand in a text that holds nothing beside them but spaces (U+0020).

    Args:
        text: What was segmented.
        tokens: All of its tokens in order.

    Returns:
        First character of each and the one after its last, int32, shape (n, 2).
    """
    offsets = np.empty((len(tokens), 2), np.int32)
    end = 0
    for index, token in enumerate(tokens):
        start = end
        while text[start] == " ":
            start += 1
        end = start + len(token)
        assert text[start:end] == token, "segmenters keep every character but spaces"
        offsets[index] = start, end
    return offsets
