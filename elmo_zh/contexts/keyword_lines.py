"""Occurrences shown as keyword in context: one below the other, aligned at the word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_entries import IndexedLine, Neighbour
from elmo_zh.run.reporter import aligned, display_width

# Columns of a terminal on either side of the word.
_COLUMNS = 30
# Repeated lines are passed over; at most so many times the occurrences asked for are looked at.
_MOST_PER_SHOWN = 64


@dataclass(frozen=True)
class NeighbourLine:
    """A neighbour with its line.

    Attributes:
        neighbour: The neighbour.
        line: Its line.
    """

    neighbour: Neighbour
    line: IndexedLine

    def described(self) -> dict[str, str | int | float]:
        """Return the text and the place of the occurrence in its raw line as JSON values; numbers count from 0."""
        occurrence = self.neighbour.occurrence
        return {
            "cosine": round(self.neighbour.cosine, 6),
            "text": self.line.text,
            "text_start": self.line.start,
            "start": self.line.start + occurrence.start,
            "end": self.line.start + occurrence.end,
            "source": self.line.source,
            "line": self.line.number,
            "occurrence": occurrence.number,
        }


def distinct_neighbours(
    index: ContextIndex, vector: NDArray[np.float32], layer: int, top: int, word: str | None = None
) -> list[NeighbourLine]:
    """Return neighbours as `ContextIndex.neighbours` does, one for each place in equal lines."""
    wanted = 2 * top
    while True:
        found = index.neighbours(vector, layer, wanted, word)
        distinct: dict[tuple[str, int], NeighbourLine] = {}
        for neighbour in found:
            line = index.line(neighbour.occurrence.line)
            distinct.setdefault((line.text, neighbour.occurrence.start), NeighbourLine(neighbour, line))
        if len(distinct) >= top or len(found) < wanted or wanted >= _MOST_PER_SHOWN * top:
            return list(distinct.values())[:top]
        wanted *= 4


def keyword_lines(neighbours: Sequence[NeighbourLine]) -> list[str]:
    """Return a line for each neighbour: cosine, text before the word, the word, text after it, source and line."""
    rows = []
    for each in neighbours:
        occurrence, line = each.neighbour.occurrence, each.line
        rows.append(
            (
                f"{each.neighbour.cosine:.4f}",
                _clip(reversed(line.text[: occurrence.start]))[::-1],
                _printable(line.text[occurrence.start : occurrence.end]),
                _clip(line.text[occurrence.end :]),
                f"{line.source}:{line.number + 1}",
            )
        )
    return list(aligned(rows, left=(2, 3, 4))) if rows else []


def _clip(characters: Iterable[str]) -> str:
    """Return the first characters, as many as fit, then … if there are more."""
    kept, width = "", 0
    for character in characters:
        shown = _printable(character)
        width += display_width(shown)
        if width > _COLUMNS - 1:
            return kept + "…"
        kept += shown
    return kept


def _printable(text: str) -> str:
    """Return a text with a space instead of each character that a terminal would act on."""
    return "".join(character if character.isprintable() else " " for character in text)
