"""The content of a page as plain values for JSON: words, points, maps, neighbours and lines."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.contexts.explore.chosen_points import PageChoice, WordPoints, choose_points
from elmo_zh.contexts.explore.colourings import colour_points
from elmo_zh.contexts.explore.maps import METHODS, compute_maps
from elmo_zh.contexts.explore.page_sentences import (
    PageLine,
    has_probabilities,
    page_lines,
    point_substitutes,
    token_records,
)
from elmo_zh.contexts.explore.point_labels import PointLabels
from elmo_zh.contexts.explore.point_neighbours import point_neighbours
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_entries import Occurrence
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.run.layout import RunDir
from elmo_zh.run.reporter import Reporter

# Neighbours that are kept for each point and layer.
NUM_NEIGHBOURS = 8


def build_page_data(
    index: ContextIndex,
    embedder: ElmoEmbedder,
    choice: PageChoice,
    device: str,
    reporter: Reporter,
    labels: PointLabels | None = None,
) -> dict[str, Any]:
    """Return the content of a page. Points are numbered from 0, word by word, and so are lines.

    Args:
        index: The index.
        embedder: The model that made it.
        choice: Which words and occurrences to show.
        device: auto, cpu or cuda.
        reporter: Shows progress.
        labels: Labels of the user, which become more colours.

    Returns:
        A dictionary with
        `index`, `model`: their names;
        `segmented`: whether the lines have a space between tokens;
        `layers`: numbers of the layers;
        `words`: [word, number of its occurrences in the texts, its first point, the point after its last one] each;
        `points`: [line, start, end] each, in characters of the line;
        `colourings`: by name `labels`, `colours`, the number of each label's colour or null for grey, and `points`, the
            number of each point's label or null; the names are those of `colour_points`;
        `maps`: by layer and method [x, y] for each point;
        `neighbours`: by layer, for each point [point, cosine in thousandths] each, descending;
        `lines`: [text, short name of its source, number in its text from 0, tokens] each, tokens as
            `token_records` returns;
        `substitutes`: for each point [word, probability] each, descending; null if the model has no softmax.

    Raises:
        ElmoZhError: If a word is not in the index, or no word can be chosen.
    """
    words = choose_points(index, choice, reporter)
    points = [point for word in words for point in word.occurrences]
    numbers = list(dict.fromkeys(point.line for point in points))
    names = short_names(index.sources)
    maps = _maps(index, words, choice.seed, reporter)
    lines = page_lines(index, embedder, numbers, device, reporter)
    places = {number: place for place, number in enumerate(numbers)}
    return {
        "index": _name_of_index(index.path),
        "model": _short_name(Path(index.model["path"])),
        "segmented": index.is_segmented,
        "layers": list(index.layers),
        "words": _word_records(index, words),
        "points": [[places[point.line], point.start, point.end] for point in points],
        "colourings": colour_points(index, words, names, labels, reporter),
        "maps": maps,
        "neighbours": _neighbours(index, points, lines),
        "lines": [
            [line.line.text, names[line.line.source], line.line.number, token_records(line.tokens)]
            for line in lines.values()
        ],
        "substitutes": point_substitutes(lines, embedder, points, reporter) if has_probabilities(embedder) else None,
    }


def _word_records(index: ContextIndex, words: Sequence[WordPoints]) -> list[list[Any]]:
    """Return for each word itself, its count in the texts, its first point and the point after its last one."""
    ends = np.cumsum([len(word.occurrences) for word in words]).tolist()
    return [
        [word.word, index.count(word.word), end - len(word.occurrences), end]
        for word, end in zip(words, ends, strict=True)
    ]


def _name_of_index(path: Path) -> str:
    """Return the name of an index; of one that is in a run, with the run's name."""
    return _short_name(path) if path.name == RunDir(path.parent).index.name else path.name


def _short_name(path: Path) -> str:
    """Return the last two parts of a path, without a link such as `latest`."""
    return "/".join(path.resolve().parts[-2:])


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of texts without the folders that all of them share, which say much about this machine."""
    folders = [name.split("/")[:-1] for name in names]
    num_shared = len(list(takewhile(lambda level: len(set(level)) == 1, zip(*folders, strict=False))))
    return {name: "/".join(name.split("/")[num_shared:]) for name in names}


def _maps(
    index: ContextIndex, words: Sequence[WordPoints], seed: int, reporter: Reporter
) -> dict[str, dict[str, list[list[int]]]]:
    maps: dict[str, dict[str, list[list[int]]]] = {
        str(layer): {method: [] for method in METHODS} for layer in index.layers
    }
    with reporter.progress("maps", total=len(words) * len(index.layers), unit="maps") as progress:
        for word in words:
            for layer in index.layers:
                computed = compute_maps(unit_rows(index.vectors_of(word.numbers, layer)), seed)
                for method in METHODS:
                    maps[str(layer)][method] += getattr(computed, method).tolist()
                progress.update(1)
    return maps


def _neighbours(
    index: ContextIndex, points: Sequence[Occurrence], lines: dict[int, PageLine]
) -> dict[str, list[list[tuple[int, int]]]]:
    numbers = np.array([point.number for point in points], np.int64)
    distinct: dict[str, int] = {}
    texts = [distinct.setdefault(lines[point.line].line.text, len(distinct)) for point in points]
    return {
        str(layer): point_neighbours(unit_rows(index.vectors_of(numbers, layer)), texts, NUM_NEIGHBOURS)
        for layer in index.layers
    }
