"""Map tokens to characters of the raw line, even where normalisation has changed the text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.text.sentences import iter_pieces


class Edit(NamedTuple):
    """A non-empty range of characters that become `length` new ones."""

    start: int
    end: int
    length: int


@dataclass(frozen=True)
class Step:
    """One step of normalisation, with the edits that it makes."""

    name: str  # Setting of `TextConfig` that turns it on
    apply: Callable[[str], str]
    # Function from the text to its edits, in order and without overlap; all other characters stay
    find_edits: Callable[[str], Iterable[Edit]]
    # Quick test; True means that the step changes neither the text nor any substring of it
    leaves: Callable[[str], bool]


def identity_spans(num_characters: int) -> NDArray[np.int32]:
    """Return the spans of an unchanged text: (0, 1), (1, 2), ..., int32, shape (m, 2)."""
    starts = np.arange(num_characters, dtype=np.int32)
    return np.stack([starts, starts + 1], axis=1)


def follow_edits(spans: NDArray[np.int32], edits: Iterable[Edit]) -> NDArray[np.int32]:
    """Apply edits to the spans of characters, int32, shape (m, 2); a new character gets the span of all it replaces."""
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
    """The non-empty tokens of a line, with their start and end in the raw line, in characters, int32, shape (n, 2)."""

    tokens: list[str]
    offsets: NDArray[np.int32]

    @classmethod
    def of_tokens(cls, tokens: Sequence[str]) -> "TokenisedLine":
        """Return the line in which the tokens are separated by single spaces."""
        lengths = np.array([len(token) for token in tokens], np.int32)
        ends = np.cumsum(lengths + 1, dtype=np.int32) - 1
        return cls(list(tokens), np.stack([ends - lengths, ends], axis=1))


def align_sentences(
    text: str, prepare: Callable[[str], TokenisedLine], *, split: bool, longest: int = 0, segmented: bool = False
) -> Iterator[TokenisedLine]:
    """Yield each sentence's tokens, in pieces of at most `longest` characters, with offsets in the text."""
    for start, sentence, _ in iter_pieces(text, split=split, longest=longest, segmented=segmented):
        line = prepare(sentence)
        yield TokenisedLine(line.tokens, line.offsets + np.int32(start))


def find_tokens(text: str, tokens: Sequence[str]) -> NDArray[np.int32]:
    """Return each token's start and end in a text that has only tokens and white space, int32, shape (n, 2)."""
    offsets = np.zeros((len(tokens), 2), np.int32)
    end = 0
    for row, token in enumerate(tokens):
        # No token begins with white space, so the first place is the right one.
        start = text.index(token, end)
        end = start + len(token)
        offsets[row] = start, end
    return offsets
