"""Colourings: ways to colour the points of a page, by usage, by source, and by labels that the user gives."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from elmo_zh.contexts.explore.chosen_points import WordPoints, unit_vectors
from elmo_zh.contexts.explore.point_labels import PointLabels
from elmo_zh.contexts.index import ContextIndex, IndexedLine
from elmo_zh.contexts.telling_words import telling_words
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
    def of(cls, labels: Sequence[str | None]) -> "Colouring":
        """Return the colouring of points by their labels: the most frequent labels of the page have a colour."""
        counts = Counter(label for label in labels if label is not None)
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        numbers = {label: number for number, label in enumerate(ranked)}
        colours = tuple(number if number < NUM_COLOURS else None for number in range(len(ranked)))
        points = tuple(None if label is None else numbers[label] for label in labels)
        return cls(labels=tuple(ranked), colours=colours, points=points)

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
    found = {
        "usage": _by_usage(index, words, reporter),
        "source": Colouring.of([names[line.source] for line in lines]),
    }
    if labels is not None:
        spelled = [word.word for word in words for _ in word.occurrences]
        found |= _by_labels(labels, spelled, lines, reporter)
    return {name: colouring.described() for name, colouring in found.items()}


def _by_usage(index: ContextIndex, words: Sequence[WordPoints], reporter: Reporter) -> Colouring:
    """Return the colouring by usage: each has the number of its usage as colour, and words used alike as label."""
    labels: list[str] = []
    colours: list[int | None] = []
    points: list[int | None] = []
    layer = index.layers[-1]
    with reporter.progress("words used alike", total=len(words), unit="words") as progress:
        for word in words:
            points += (len(labels) + word.usages).tolist()
            told: list[list[str]] = [[]]
            if word.num_usages > 1:
                units = unit_vectors(index, layer, word.numbers).astype(np.float64)
                centres = [units[word.usages == usage].mean(axis=0) for usage in range(word.num_usages)]
                told = telling_words(index, word.word, layer, np.stack(centres), _NUM_TELLING)
            labels += ["、".join(each) for each in told]
            colours += range(word.num_usages)
            progress.update(1)
    return Colouring(labels=tuple(labels), colours=tuple(colours), points=tuple(points))


def _by_labels(
    labels: PointLabels, words: Sequence[str], lines: Sequence[IndexedLine], reporter: Reporter
) -> dict[str, Colouring]:
    found = {}
    for name in labels.names:
        own = [labels.label(name, line, word) for word, line in zip(words, lines, strict=True)]
        if all(label is None for label in own):
            reporter.warn(f"{labels.path}: no occurrence on the page has a label of the column {name}.")
        found[f"label:{name}"] = Colouring.of(own)
    return found
