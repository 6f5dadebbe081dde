"""Tables of drift results, and the lines that best show how a word changed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.drift import Comparison, WordDrift
from elmo_zh.contexts.drift_statistics import MEASURES
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Neighbour
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.occurrences import NeighbourLine, keyword_lines
from elmo_zh.contexts.periods import Period
from elmo_zh.language import translate
from elmo_zh.run.reporter import aligned


def moved_lines(
    old: Period, new: Period, word: str, layer: int, top: int
) -> tuple[list[NeighbourLine], list[NeighbourLine]]:
    """Return the lines from two periods that best show how a word changed, at most `top` distinct ones from each.

    They are most typical of their own period: by cosine with its mean vector, minus the cosine with the other's, which
    is shown.
    """
    numbers = old.occurrences(word), new.occurrences(word)
    units = [unit_rows(each.index.vectors_of(own, layer)) for each, own in zip((old, new), numbers, strict=True)]
    directions = unit_rows(np.stack([each.mean(axis=0) for each in units]))
    first = _distinct(old.index, numbers[0], units[0] @ directions[1], units[0] @ directions[0], top)
    return first, _distinct(new.index, numbers[1], units[1] @ directions[0], units[1] @ directions[1], top)


def _distinct(
    index: ContextIndex,
    numbers: NDArray[np.int64],
    to_other: NDArray[np.float64],
    to_own: NDArray[np.float64],
    top: int,
) -> list[NeighbourLine]:
    found: dict[str, NeighbourLine] = {}
    for each in np.lexsort((numbers, to_other - to_own)):
        if len(found) >= top:
            break
        occurrence = index.occurrence(int(numbers[each]))
        line = index.line(occurrence.line)
        found.setdefault(line.text, NeighbourLine(Neighbour(occurrence, float(to_other[each])), line))
    return list(found.values())


def rows(words: Iterable[WordDrift]) -> Iterator[dict[str, Any]]:
    """Yield a table row, as a dictionary, for each comparison of each word."""
    names = [each.name for each in fields(Comparison)]
    for word in words:
        for each in word.comparisons():
            figures = ((name, getattr(each, name)) for name in names)
            shown = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in figures}
            yield {"word": word.word, **shown, "change": word.change, "fragment": word.fragment}


def table_lines(words: Sequence[WordDrift]) -> list[str]:
    """Return the lines of a table that compares the first and the last period for each word."""
    optional = {
        translate("change"): [each.change for each in words],
        translate("fragment"): [each.fragment for each in words],
    }
    more = {name: cells for name, cells in optional.items() if any(cells)}
    measures = [name for name in MEASURES if getattr(words[0], name) is not None]
    header = ["word", words[0].old, words[0].new]
    header += ["excess" if name == "excess" else name.upper() for name in measures]
    header += ["interval", "baseline", "old spread", "new spread", "p", "q", *more]
    found = []
    for number, each in enumerate(words):
        row = [each.word, f"{each.old_count:,}", f"{each.new_count:,}"]
        row += [f"{getattr(each, name):.4f}" for name in measures]
        row += [_interval(each), *(f"{value:.4f}" for value in (each.baseline, each.old_spread, each.new_spread))]
        row += [f"{each.p:.2g}", f"{each.q:.2g}", *(cells[number] or "-" for cells in more.values())]
        found.append(row)
    return list(aligned(found, header=header))


def step_lines(word: WordDrift) -> list[str]:
    """Return the distances between consecutive periods, one per line; empty if there are only two periods."""
    if len(word.steps) < 2:
        return []
    cells = [
        [
            step.boundary,
            f"{step.distance:.4f}",
            f"({_interval(step)})",
            f"{translate('baseline')} {step.baseline:.4f}",
            f"p {step.p:.2g}",
            f"q {step.q:.2g}",
        ]
        for step in word.steps
    ]
    return [f"  {line}" for line in aligned(cells)]


def moved_line_rows(periods: Sequence[str], lines: Sequence[Sequence[NeighbourLine]]) -> list[str]:
    """Align lines from two periods at the word, with the name of its period before each line."""
    names = [name for name, own in zip(periods, lines, strict=True) for _ in own]
    shown = keyword_lines([line for own in lines for line in own])
    return [f"  {line}" for line in aligned([*zip(names, shown, strict=True)], left=(0, 1))]


def _interval(compared: Comparison) -> str:
    return translate(f"{compared.low:.4f} to {compared.high:.4f}")
