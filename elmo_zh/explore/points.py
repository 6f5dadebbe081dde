"""The points on a page: the words of an index, the occurrences to show, their maps, neighbours and colours."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts import PageChoice
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Occurrence
from elmo_zh.contexts.index_text import sample_places
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.occurrences import distinct
from elmo_zh.contexts.senses import find_clusters, telling_words, usage_layer, usage_vectors
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.segmenters.jieba import jieba_function_words

# A map of fewer points shows nothing, so rarer words are shown only if they are named or labelled.
LEAST_OCCURRENCES = 20
# Words are chosen from this many of the most frequent ones, or more if more are shown; finding the usages of a word
# takes about a tenth of a second.
MOST_CANDIDATES = 40
# Repeated lines are skipped, so this many occurrences are read for each point wanted.
_LOOKED_AT_PER_POINT = 2
# Number of words used alike that name a usage.
_NUM_NAMES = 4
# The largest coordinate of a map. Whole numbers keep the page small.
SCALE = 1000
# With fewer points, t-SNE has no neighbourhood to keep.
_LEAST_FOR_TSNE = 5
# The number of neighbours whose distances t-SNE tries to keep (van der Maaten and Hinton 2008: 5 to 50).
_PERPLEXITY = 20.0
# Steps of gradient descent, half of them with early exaggeration; then maps of some hundred points hardly change.
_STEPS = 500
# Smaller distances between unit vectors come from rounding: half precision keeps 11 bits.
_SAME = 2.0**-10
_BLOCK = 512
# Cosines are rounded to multiples of 1 / COSINE_PARTS, which keeps the page small.
COSINE_PARTS = 1000


@dataclass(frozen=True)
class WordPoints:
    """A word on the page, with the occurrences shown, in text order, and their usages, clustered as in `senses`."""

    word: str
    occurrences: tuple[Occurrence, ...]
    usages: NDArray[np.int64]  # the usage of each occurrence, shape (n,)
    clearness: float  # the silhouette of the usages; 0 for a single one
    names: Sequence[Sequence[str]] = ((),)  # for each usage, words used alike

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The occurrences' numbers in the index, int64, shape (n,)."""
        return np.array([occurrence.number for occurrence in self.occurrences], np.int64)


def choose_points(
    index: ContextIndex, choice: PageChoice, reporter: Reporter, labelled: Collection[str] = ()
) -> list[WordPoints]:
    """Choose the words on the page, with their occurrences and usages.

    If `choice` names no words, those with the clearest usages are taken from the most frequent labelled words or, if no
    word in the index is labelled, from the most frequent content words.
    """
    words = tuple(dict.fromkeys(choice.words))
    number = max(MOST_CANDIDATES, choice.num_words)
    candidates = words or by_count(index, labelled)[:number] or _candidates(index)[:number]
    shown = []
    with reporter.progress("senses", total=len(candidates), unit="words") as progress:
        for word in candidates:
            shown.append(_word_points(index, word, choice))
            progress.update(1)
    if not words:
        shown = sorted(shown, key=lambda points: -points.clearness)[: choice.num_words]
    return _named(index, shown, reporter)


def _word_points(index: ContextIndex, word: str, choice: PageChoice) -> WordPoints:
    occurrences = tuple(_points_of(index, word, choice))
    points = WordPoints(word, occurrences, np.zeros(len(occurrences), np.int64), 0.0)
    if len(occurrences) < 2:
        return points
    clusters = find_clusters(usage_vectors(index, usage_layer(index), points.numbers), seed=choice.seed)
    is_divided = clusters.choice is not None and clusters.choice.number > 1
    clearness = clusters.choice.silhouette if clusters.choice is not None and is_divided else 0.0
    return replace(points, usages=clusters.labels, clearness=clearness)


def _named(index: ContextIndex, words: Sequence[WordPoints], reporter: Reporter) -> list[WordPoints]:
    layer = usage_layer(index)
    centres = [(word.word, _centres(index, word, layer)) for word in words if word.usages.any()]
    with reporter.progress("neighbours", total=len(index), unit="occurrences") as progress:
        names = iter(telling_words(index, centres, layer, _NUM_NAMES, progress.update))
    return [replace(word, names=next(names)) if word.usages.any() else word for word in words]


def _centres(index: ContextIndex, word: WordPoints, layer: int) -> NDArray[np.float64]:
    units = unit_rows(index.vectors(layer)[word.numbers])
    return np.stack([units[word.usages == usage].mean(axis=0) for usage in range(word.usages.max() + 1)])


def _points_of(index: ContextIndex, word: str, choice: PageChoice) -> Sequence[Occurrence]:
    """Return a sample of a word's occurrences, in text order, with at most one from the same place in equal lines."""
    numbers = index.occurrences(word)
    sample = numbers[sample_places(word, choice.seed, len(numbers), _LOOKED_AT_PER_POINT * choice.max_per_word)]
    kept = distinct(index.neighbours_of(sample, np.ones(len(sample))), choice.max_per_word)
    return sorted((neighbour.occurrence for neighbour in kept), key=lambda occurrence: occurrence.number)


def by_count(index: ContextIndex, words: Iterable[str]) -> tuple[str, ...]:
    """Return the words among `words` that are in an index, by descending count."""
    return tuple(sorted((word for word in words if word in index), key=lambda word: (-index.count(word), word)))


def _candidates(index: ContextIndex) -> tuple[str, ...]:
    """Return frequent non-ASCII content words of two or more characters by descending count; raise an error if none."""
    function_words = jieba_function_words()
    words = [
        word
        for word in index.words
        if len(word) > 1
        and word not in function_words
        and not word.isascii()
        and len(index.occurrences(word)) >= LEAST_OCCURRENCES
    ]
    if not words:
        raise ElmoZhError(
            _(
                "{path}: no Chinese content word of two or more characters has {LEAST_OCCURRENCES} or more"
                " occurrences in the index. Choose words with --word, or index more text."
            ).format(path=index.path, LEAST_OCCURRENCES=LEAST_OCCURRENCES)
        )
    return by_count(index, words)


def compute_maps(vectors: NDArray[np.float64], seed: int) -> dict[str, NDArray[np.int64]]:
    """Return `pca`, two principal components, and `tsne`, a t-SNE map started from them; int64, (n, 2), within SCALE.

    With equal vectors, all points are at the origin. With fewer than five vectors, `tsne` is the same as `pca`.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if np.abs(vectors - vectors.mean(axis=0)).max() < _SAME:
        return dict.fromkeys(("pca", "tsne"), np.zeros((len(vectors), 2), np.int64))
    components = map_of_neighbours = PCA(2, svd_solver="full").fit_transform(vectors)
    if len(vectors) >= _LEAST_FOR_TSNE:
        # t-SNE needs a small start; scikit-learn scales its own start from PCA in the same way.
        start = (components / components[:, 0].std() * 1e-4).astype(np.float32)
        perplexity = min(_PERPLEXITY, (len(vectors) - 1) / 3)
        tsne = TSNE(perplexity=perplexity, init=start, random_state=seed, max_iter=_STEPS)
        map_of_neighbours = tsne.fit_transform(vectors)
    return {"pca": _scaled(components), "tsne": _scaled(map_of_neighbours)}


def _scaled(places: NDArray[np.floating]) -> NDArray[np.int64]:
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    largest = np.abs(places - middle).max() or 1.0
    return np.asarray(np.rint((places - middle) / largest * SCALE), np.int64)


def point_neighbours(vectors: NDArray[np.float64], texts: Sequence[int], top: int) -> list[list[tuple[int, int]]]:
    """Return, for each point, the `top` most similar points: their numbers, and cosines times COSINE_PARTS, rounded.

    Points with the same text as the point or as a nearer neighbour are left out; ties go to the earlier point.
    """
    neighbours: list[list[tuple[int, int]]] = []
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rounded = np.rint(cosines * COSINE_PARTS).astype(np.int64)
        for row, order in enumerate(np.argsort(-rounded, axis=1, kind="stable")):
            seen = {texts[start + row]}
            nearest: list[tuple[int, int]] = []
            for other in order.tolist():
                if len(nearest) == top:
                    break
                if texts[other] not in seen:
                    seen.add(texts[other])
                    nearest.append((other, int(rounded[row, other])))
            neighbours.append(nearest)
    return neighbours


# Columns that say which occurrence a row is about.
_PLACE = ("file", "line", "start", "word")
# Columns of the project's own tables that neither select occurrences nor label them.
_PASSED_OVER = ("end", "text_start", "text")
# A column NAME_zh has the Chinese of the labels in the column NAME.
_CHINESE = "_zh"

LabelledPlace = tuple[str, str, str, str]


@dataclass(frozen=True)
class PointLabels:
    """A table of labels: `rows` maps the file, line, start and word of an occurrence to its label in each column."""

    path: Path
    names: tuple[str, ...]
    rows: Mapping[LabelledPlace, Mapping[str, str]]
    words: frozenset[str]  # the words of the rows that are about one of the texts

    @classmethod
    def load(cls, path: Path, texts: Sequence[str]) -> "PointLabels":
        """Read a table; the column `file` has the name of a text, or the end of a name that no other text shares."""
        lines = enumerate(iter_lines(path), start=1)
        columns = next(lines, (0, ""))[1].split("\t")
        names = tuple(name for name in columns if name and name not in (*_PLACE, *_PASSED_OVER))
        at_line = _("line {number}")
        if not set(_PLACE) <= set(columns) or not names or len(set(columns)) < len(columns):
            place_and_cells = f"{path}: {at_line.format(number=1)}: {', '.join(columns)}"
            raise CorpusError.unexpected(place_and_cells, f"{', '.join(_PLACE)}, LABEL")
        full_name = cache(partial(_full_name, texts))
        rows: dict[LabelledPlace, dict[str, str]] = {}
        for number, line in lines:
            fields = line.split("\t")
            if line and len(fields) != len(columns):
                place_and_cells = f"{path}: {at_line.format(number=number)}: {', '.join(fields)}"
                raise CorpusError.unexpected(place_and_cells, ", ".join(columns))
            if line:
                row = dict(zip(columns, fields, strict=True))
                place = (full_name(row["file"]), row["line"], row["start"], row["word"])
                labels = {name: row[name] for name in names}
                if rows.setdefault(place, labels) != labels:
                    message = _(
                        "{path}: line {number} labels the same place as an earlier line, but differently. Keep one of"
                        " them."
                    )
                    raise CorpusError(message.format(path=path, number=number))
        return cls(path, names, rows, frozenset(word for source, *_place, word in rows if source in texts))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The columns that points can be coloured by: all except Chinese versions of other columns."""
        return tuple(name for name in self.names if name.removesuffix(_CHINESE) not in {*self.names} - {name})

    def chinese(self, name: str) -> dict[str, str]:
        """Return the Chinese names of the labels in a column; empty if it has none."""
        other = f"{name}{_CHINESE}"
        return {labels[name]: labels[other] for labels in self.rows.values() if labels.get(other)}

    def colourings(
        self, index: ContextIndex, points: Iterable[Occurrence], reporter: Reporter
    ) -> "dict[str, Colouring]":
        """Return the colouring of points by each kind of label; warn about a kind that no point has."""
        places, colourings = [_place_of(index, point) for point in points], {}
        for name in self.kinds:
            labels = [self.rows.get(place, {}).get(name) or None for place in places]
            if not any(labels):
                message = _("{path}: no occurrence on the page has a label in column {name}.")
                reporter.warn(message.format(path=self.path, name=name))
            colourings[f"label:{name}"] = colouring_of(labels, self.chinese(name))
        return colourings

    def report_missing(self, index: ContextIndex, words: Collection[str], reporter: Reporter) -> None:
        """Warn about rows for words on the page whose place is not an occurrence in the index."""
        labelled = {place for place in self.rows if place[-1] in words}
        known = {place[-1] for place in labelled if place[-1] in index}
        occurrences = (map(index.occurrence, index.occurrences(word).tolist()) for word in known)
        missing = labelled - {_place_of(index, occurrence) for occurrence in chain.from_iterable(occurrences)}
        if missing:
            place = ", ".join(f"{name} {value}" for name, value in zip(_PLACE, min(missing), strict=True))
            message = _(
                "{path}: {missing} of {number} labelled places are not occurrences in the index, such as {place}. The"
                " place may be wrong, the word may be part of a longer word there, or the index may have only a sample"
                " of its occurrences."
            )
            reporter.warn(message.format(path=self.path, missing=len(missing), number=len(labelled), place=place))


def _full_name(texts: Sequence[str], name: str) -> str:
    """Return the text that a name or the end of a name stands for; the name itself if there is not exactly one."""
    matches = [text for text in texts if f"/{text}".endswith(f"/{name}")]
    return matches[0] if len(matches) == 1 else name


def _place_of(index: ContextIndex, occurrence: Occurrence) -> LabelledPlace:
    line = index.line(occurrence.line)
    return line.source, str(line.number), str(line.start + occurrence.start), occurrence.word


Colouring = dict[str, Any]


def colouring_of(labels: Sequence[str | None], chinese: Mapping[str, str] = MappingProxyType({})) -> Colouring:
    """Return the distinct labels of points, most frequent first, and the number of each point's label, as JSON values.

    `labels_zh` has their names in `chinese`; it is empty without Chinese names.
    """
    counts = Counter(label for label in labels if label is not None)
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    numbers = {label: number for number, label in enumerate(ranked)}
    points = [None if label is None else numbers[label] for label in labels]
    return {"labels": ranked, "labels_zh": [chinese.get(label, label) for label in ranked if chinese], "points": points}


def colour_points(
    index: ContextIndex,
    words: Sequence[WordPoints],
    names: Mapping[str, str],
    labels: PointLabels | None,
    reporter: Reporter,
) -> dict[str, Colouring]:
    """Return the colourings by name: usage, source, label:NAME for kinds of label, column:NAME for other columns."""
    points = [point for word in words for point in word.occurrences]
    sources = [names[index.line(point.line).source] for point in points]
    colourings = {"usage": _by_usage(words), "source": colouring_of(sources)}
    if labels is not None:
        colourings |= labels.colourings(index, points, reporter)
    for name, column in index.columns.items():
        if name != "source":
            values = [column.values[column.codes[point.line]] or None for point in points]
            colourings[f"column:{name}"] = colouring_of(values)
    return colourings


def _by_usage(words: Sequence[WordPoints]) -> Colouring:
    """Return the colouring by usage, whose labels are the words used alike; each word has labels of its own."""
    labels: list[str] = []
    points: list[int] = []
    for word in words:
        points += (len(labels) + word.usages).tolist()
        labels += ["、".join(names) for names in word.names]
    return {"labels": labels, "labels_zh": (), "points": points}


def agreements(colourings: Mapping[str, Colouring], words: Sequence[WordPoints]) -> dict[str, list[Any]]:
    """Return, for each kind of label and each word, how well usages agree with labels; None if these are all equal.

    An agreement is the adjusted Rand index (Hubert and Arabie 1985) and the number of labelled occurrences.
    """
    from sklearn.metrics import adjusted_rand_score

    ends = np.cumsum([0, *(len(word.occurrences) for word in words)]).tolist()
    agreement: dict[str, list[Any]] = {name: [] for name in colourings if name.startswith("label:")}
    for name, of_words in agreement.items():
        for word, start in zip(words, ends, strict=False):
            labels = colourings[name]["points"][start : start + len(word.occurrences)]
            pairs = [pair for pair in zip(word.usages.tolist(), labels, strict=True) if pair[1] is not None]
            has_two = len({label for _usage, label in pairs}) > 1
            value = round(float(adjusted_rand_score(*zip(*pairs, strict=True))), 4) if has_two else None
            of_words.append(value if value is None else [value, len(pairs)])
    return agreement
