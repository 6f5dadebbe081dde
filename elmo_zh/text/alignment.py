"""Which characters of a line each of its tokens stands for, also where normalisation has changed them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edit(NamedTuple):
    """A piece of a text that becomes something else.

    Attributes:
        start: Its first character.
        end: The character after its last; a piece is never empty.
        length: How many characters it becomes.
    """

    start: int
    end: int
    length: int


@dataclass(frozen=True)
class Step:
    """A change to a text.

    Attributes:
        name: The setting of `TextConfig` that asks for it.
        apply: From the text to the changed text.
        find_edits: From the text to those pieces of it that change, in order and apart; everything else stays.
        leaves: Tells quickly whether it surely changes neither a text nor any piece of it alone.
    """

    name: str
    apply: Callable[[str], str]
    find_edits: Callable[[str], Iterable[Edit]]
    leaves: Callable[[str], bool]


def identity_spans(num_characters: int) -> NDArray[np.int32]:
    """Return the spans of characters that stand for themselves: (0, 1), (1, 2), ..., int32, shape (m, 2)."""
    starts = np.arange(num_characters, dtype=np.int32)
    return np.stack([starts, starts + 1], axis=1)


def follow_edits(spans: NDArray[np.int32], edits: Iterable[Edit]) -> NDArray[np.int32]:
    """Return the spans of an edited text's characters.

    Args:
        spans: For each character of the text before, where it starts and ends in the original, int32, shape (m, 2).
        edits: What changed, in order and apart. Every new character of an edit stands for all the old ones.

    Returns:
        The same of the text after, int32, shape (new m, 2).
    """
    starts, ends, lengths = np.array([*edits], np.int32).reshape(-1, 3).T
    num_opened = np.zeros(len(spans) + 1, np.int32)
    num_opened[starts + 1] += 1
    num_opened[ends] -= 1
    is_inside = num_opened[:-1].cumsum() > 0
    lasts = np.arange(len(spans))
    lasts[starts] = ends - 1
    num_new = np.where(is_inside, 0, 1)
    num_new[starts] = lengths
    return np.stack([spans[:, 0], spans[lasts, 1]], axis=1).repeat(num_new, axis=0)


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
    offsets = []
    end = 0
    for token in tokens:
        start = end
        while text[start] == " ":
            start += 1
        assert text.startswith(token, start), "segmenters keep every character but spaces"
        end = start + len(token)
        offsets.append((start, end))
    return np.array(offsets, np.int32).reshape(-1, 2)
