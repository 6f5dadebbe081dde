"""Colourings: ways to colour the points of a page, by usage, by source, and by labels that the user gives."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.explore.chosen_points import WordPoints
from elmo_zh.contexts.explore.point_labels import PointLabels
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_entries import IndexedLine
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.usages import telling_words, usage_layer
from elmo_zh.run.reporter import Reporter

# Colours that people can tell apart; rarer labels share the grey of the others.
NUM_COLOURS = 15
# Words used alike that name a usage.
_NUM_TELLING = 4


@dataclass(frozen=True, kw_only=True)
class Colouring:
    """A way to colour the points of a page.

    Attributes:
        labels: The labels.
        colours: The number of each label's colour; None for the grey of the others.
        points: The number of each point's label; None for a point without one.
    """

    labels: tuple[str, ...]
    colours: tuple[int | None, ...]
    points: tuple[int | None, ...]

    @classmethod
    def of(cls, labels: Sequence[str | None], words: Sequence[str]) -> "Colouring":
        """Return the colouring of points by their labels.

        Labels of one word have different colours; labels that no word shares may have the same one. The most frequent
        ones choose first; those that come too late share the grey of the others.

        Args:
            labels: The label of each point; None if it has none.
            words: The word of each point.
        """
        counts = Counter(label for label in labels if label is not None)
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        numbers = {label: number for number, label in enumerate(ranked)}
        seen_with: dict[str, set[str]] = {}
        for label, word in zip(labels, words, strict=True):
            if label is not None:
                seen_with.setdefault(word, set()).add(label)
        colours: list[int | None] = []
        for label in ranked:
            beside = set[str]().union(*(others for others in seen_with.values() if label in others))
            taken = {colours[numbers[other]] for other in beside if numbers[other] < len(colours)}
            colours.append(next((colour for colour in range(NUM_COLOURS) if colour not in taken), None))
        points = tuple(None if label is None else numbers[label] for label in labels)
        return cls(labels=tuple(ranked), colours=tuple(colours), points=points)

    def described(self) -> dict[str, Any]:
        """Return the colouring as JSON values."""
        return {"labels": self.labels, "colours": self.colours, "points": self.points}


def colour_points(
    index: ContextIndex,
    words: Sequence[WordPoints],
    names: Mapping[str, str],
    labels: PointLabels | None,
    reporter: Reporter,
) -> dict[str, dict[str, Any]]:
    """Return ways to colour points, by name: usage, source, and label:COLUMN for each column of the user's labels.

    Args:
        index: The index.
        words: The words of the page.
        names: The short name of each text.
        labels: Labels that the user gives.
        reporter: Receives the progress, and a warning of labels that no point has.
    """
    lines = [index.line(point.line) for word in words for point in word.occurrences]
    spelled = [word.word for word in words for _ in word.occurrences]
    found = {
        "usage": _by_usage(index, words, reporter),
        "source": Colouring.of([names[line.source] for line in lines], spelled),
    }
    if labels is not None:
        found |= _by_labels(labels, spelled, lines, reporter)
    return {name: colouring.described() for name, colouring in found.items()}


def _by_usage(index: ContextIndex, words: Sequence[WordPoints], reporter: Reporter) -> Colouring:
    """Return the colouring by usage: each has the number of its usage as colour, and words used alike as label."""
    labels: list[str] = []
    colours: list[int | None] = []
    points: list[int | None] = []
    layer = usage_layer(index)
    centres = [(word.word, _centres(index, word, layer)) for word in words if word.num_usages > 1]
    found: list[list[list[str]]] = []
    if centres:
        with reporter.progress("words used alike", total=len(index), unit="occurrences") as progress:
            found = telling_words(index, centres, layer, _NUM_TELLING, progress.update)
    told = iter(found)
    for word in words:
        points += (len(labels) + word.usages).tolist()
        labels += ["、".join(each) for each in next(told)] if word.num_usages > 1 else [""]
        colours += range(word.num_usages)
    return Colouring(labels=tuple(labels), colours=tuple(colours), points=tuple(points))


def _centres(index: ContextIndex, word: WordPoints, layer: int) -> NDArray[np.float64]:
    """Return the centre of each usage of a word, float64, shape (K, 2P)."""
    units = unit_rows(index.vectors_of(word.numbers, layer))
    return np.stack([units[word.usages == usage].mean(axis=0) for usage in range(word.num_usages)])


def _by_labels(
    labels: PointLabels, words: Sequence[str], lines: Sequence[IndexedLine], reporter: Reporter
) -> dict[str, Colouring]:
    found = {}
    for name in labels.names:
        own = [labels.label(name, line, word) for word, line in zip(words, lines, strict=True)]
        if all(label is None for label in own):
            reporter.warn(f"{labels.path}: no occurrence on the page has a label of the column {name}.")
        found[f"label:{name}"] = Colouring.of(own, words)
    return found
