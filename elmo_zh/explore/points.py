"""The points on a page: the words of an index, the occurrences to show, their maps, neighbours and colours."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts import PageChoice
from elmo_zh.contexts.build_index import sample_places
from elmo_zh.contexts.index import ContextIndex, IndexedLine, Occurrence
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
# Number of words used alike that name a usage; usages that share half of their names are merged.
_NUM_NAMES = 8
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
    """A word on the page, with the occurrences shown, in text order, and their usages, int64, shape (n,).

    Usages are found as by `senses`, but merged if they share half of their names, which are words used alike.
    """

    word: str
    occurrences: tuple[Occurrence, ...]
    usages: NDArray[np.int64]
    names: tuple[tuple[str, ...], ...] = ((),)

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The occurrences' numbers in the index, int64, shape (n,)."""
        return np.array([occurrence.number for occurrence in self.occurrences], np.int64)

    @property
    def num_usages(self) -> int:
        """The number of usages, at least 1."""
        return int(self.usages.max()) + 1


def choose_points(
    index: ContextIndex, choice: PageChoice, reporter: Reporter, labelled: Collection[str] = ()
) -> list[WordPoints]:
    """Choose the words on the page, with their occurrences and usages.

    Unless `choice` names words, it takes the words whose usages have the least similar names, among the frequent
    labelled words if there are any, otherwise among the frequent content words.
    """
    words = tuple(dict.fromkeys(choice.words))
    shown = []
    number = max(MOST_CANDIDATES, choice.num_words)
    candidates = words or by_count(index, labelled)[:number] or _candidates(index)[:number]
    with reporter.progress("usages", total=len(candidates), unit="words") as progress:
        for word in candidates:
            occurrences = tuple(_points_of(index, word, choice))
            shown.append(WordPoints(word, occurrences, _usages(index, occurrences, choice.seed)))
            progress.update(1)
    shown = _named(index, shown, reporter)
    if words:
        return shown
    similarities = dict(zip((points.word for points in shown), _similarities(index, shown), strict=True))
    shown.sort(key=lambda points: (similarities[points.word], -index.count(points.word), points.word))
    return shown[: choice.num_words]


def _usages(index: ContextIndex, occurrences: Sequence[Occurrence], seed: int) -> NDArray[np.int64]:
    if len(occurrences) < 2:
        return np.zeros(len(occurrences), np.int64)
    numbers = np.array([occurrence.number for occurrence in occurrences], np.int64)
    return find_clusters(usage_vectors(index, usage_layer(index), numbers), seed=seed).labels


def _named(index: ContextIndex, words: Sequence[WordPoints], reporter: Reporter) -> list[WordPoints]:
    layer = usage_layer(index)
    centres = [(word.word, _centres(index, word, layer)) for word in words if word.num_usages > 1]
    if not centres:
        return list(words)
    with reporter.progress("words used alike", total=len(index), unit="occurrences") as progress:
        names = iter(telling_words(index, centres, layer, _NUM_NAMES, progress.update))
    return [word if word.num_usages == 1 else _merged(word, next(names)) for word in words]


def _centres(index: ContextIndex, word: WordPoints, layer: int) -> NDArray[np.float64]:
    units = unit_rows(index.vectors(layer)[word.numbers])
    return np.stack([units[word.usages == usage].mean(axis=0) for usage in range(word.num_usages)])


def _merged(word: WordPoints, names: Sequence[Sequence[str]]) -> WordPoints:
    """Name a word's usages; one that shares half its names with a more frequent one is merged into it."""
    kept: list[Sequence[str]] = []
    places = []
    for usage_names in names:
        is_alike = [2 * len(set(usage_names).intersection(other)) >= _NUM_NAMES for other in kept]
        places.append(is_alike.index(True) if any(is_alike) else len(kept))
        if not any(is_alike):
            kept.append(usage_names)
    if len(kept) == 1:
        return replace(word, usages=np.zeros_like(word.usages))
    usages = np.array(places)[word.usages]
    order = np.argsort(-np.bincount(usages), kind="stable")
    return replace(word, usages=np.argsort(order)[usages], names=tuple(tuple(kept[place]) for place in order))


def _similarities(index: ContextIndex, words: Sequence[WordPoints]) -> list[float]:
    """Return the cosine between each word's two most similar usages, by their names; infinite for a single usage."""
    names = list(dict.fromkeys(name for word in words for usage in word.names for name in usage))
    if not names:
        return [math.inf] * len(words)
    rows = np.array([index.occurrences(name)[0] for name in names])
    units = unit_rows(index.vectors(index.layers[0])[rows])
    meanings = dict(zip(names, units - units.mean(axis=0), strict=True))
    similarities = []
    for word in words:
        if word.num_usages == 1:
            similarities.append(math.inf)
        else:
            usages = unit_rows(np.stack([np.mean([meanings[name] for name in usage], axis=0) for usage in word.names]))
            similarities.append(float((usages @ usages.T - 2 * np.eye(len(usages))).max()))
    return similarities


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
    """Return content words of at least two characters that are frequent enough, by descending count."""
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
                "{path}: no content word of two or more characters occurs at least {LEAST_OCCURRENCES}"
                " times. Choose words with --word, or index more text."
            ).format(path=index.path, LEAST_OCCURRENCES=LEAST_OCCURRENCES)
        )
    return by_count(index, words)


def compute_maps(vectors: NDArray[np.float64], seed: int) -> dict[str, NDArray[np.int64]]:
    """Return `pca`, two principal components, and `tsne`, a t-SNE map started from them; int64, (n, 2), within SCALE.

    They are always the same on one machine; if all vectors are equal, all points are at the origin.
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


_NUM_SHOWN = 4
# Columns that select occurrences; a row applies to every occurrence that agrees with it.
_KEYS = ("file", "line", "start", "word")
# Columns of the project's own tables that neither select occurrences nor label them.
_PASSED_OVER = ("end", "text_start", "text")
# A column NAME_zh has the Chinese of the labels in the column NAME.
_CHINESE = "_zh"
_SHOWN_NAMES = 3


@dataclass(frozen=True)
class PointLabels:
    """A table with labels for occurrences, in one or more columns.

    `rows` maps the values of the columns `keys` to the labels in the columns `names`; a label is empty where rows
    disagree.
    """

    path: Path
    keys: tuple[str, ...]
    names: tuple[str, ...]
    rows: Mapping[tuple[str, ...], Mapping[str, str]]

    @classmethod
    def load(
        cls, path: Path, texts: Sequence[str], *, archives: Collection[str] = (), skips_others: bool = False
    ) -> "PointLabels":
        """Read a table for these texts; raise CorpusError for a bad row or, unless `skips_others`, other texts."""
        lines = enumerate(iter_lines(path), start=1)
        columns = next(lines, (0, ""))[1].split("\t")
        names = tuple(name for name in columns if name and name not in (*_KEYS, *_PASSED_OVER))
        # Without its line, the place of a character says nothing.
        keys = tuple(name for name in _KEYS if name in columns and (name != "start" or "line" in columns))
        if not keys or not names or len(set(columns)) < len(columns):
            raise CorpusError.unexpected(f"{path}: line 1: {', '.join(columns)}", "file, line, word, LABEL")
        # The members of an archive have line numbers of their own.
        files = _names_of_texts([*texts, *(() if "line" in columns else archives)])
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for number, line in lines:
            fields = line.split("\t")
            if not line or (skips_others and dict(zip(columns, fields, strict=False)).get("file") not in files):
                continue
            where = f"{path}: line {number}"
            if len(fields) != len(columns):
                raise CorpusError.unexpected(f"{where}: {', '.join(fields)}", ", ".join(columns))
            row = dict(zip(columns, fields, strict=True))
            key = _key({name: row[name] for name in keys}, files, where)
            other = rows.get(key, row)
            rows[key] = {name: row[name] if row[name] == other[name] else "" for name in names}
        return cls(path, keys, names, rows)

    @property
    def words(self) -> frozenset[str]:
        """The words in the table; empty if it has no column for them."""
        return frozenset(key[-1] for key in self.rows) if "word" in self.keys else frozenset()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The columns that points can be coloured by: all except Chinese versions of other columns."""
        return tuple(name for name in self.names if name.removesuffix(_CHINESE) not in {*self.names} - {name})

    def chinese(self, name: str, labels: Iterable[str]) -> tuple[str, ...]:
        """Return labels in Chinese, unchanged where there is no Chinese name; empty if the column has none at all."""
        if (other := f"{name}{_CHINESE}") not in self.names:
            return ()
        translated = {labels[name]: labels[other] for labels in self.rows.values() if labels[other]}
        return tuple(translated.get(label, label) for label in labels)

    def label(self, name: str, line: IndexedLine, start: int, word: str) -> str | None:
        """Return an occurrence's label in a column, or None; `start` is its offset in the raw line."""
        for source in (line.source, line.archive):
            if (labels := self.rows.get(self._key_of(line, source, start, word))) is not None:
                return labels[name] or None
        return None

    def report_missing(self, index: ContextIndex, words: Sequence[str], reporter: Reporter) -> None:
        """Warn about rows for words on the page whose place is not an occurrence in the index."""
        if not {"start", "word"} <= set(self.keys):
            return
        missing = {key for key in self.rows if key[-1] in words}
        number = len(missing)
        for word in {key[-1] for key in missing}:
            for occurrence in map(index.occurrence, index.occurrences(word).tolist()):
                line = index.line(occurrence.line)
                for source in (line.source, line.archive):
                    missing.discard(self._key_of(line, source, line.start + occurrence.start, word))
        if missing:
            example = dict(zip(self.keys, min(missing), strict=True))
            place = ", ".join(f"{name} {value}" for name, value in example.items())
            message = _(
                "{path}: {missing} of {number} labelled places are not occurrences in the index, such as {place}. The"
                " word may be part of a longer word there, or on a repeated line."
            )
            reporter.warn(message.format(path=self.path, missing=len(missing), number=number, place=place))

    def _key_of(self, line: IndexedLine, source: str | None, start: int, word: str) -> tuple[str, ...]:
        place = {"file": source or "", "line": str(line.number), "start": str(start), "word": word}
        return tuple(place[key] for key in self.keys)


def _key(place: Mapping[str, str], files: Mapping[str, str | None], where: str) -> tuple[str, ...]:
    """Return a row's values in the columns that select occurrences, with the full name of its file."""
    key = dict(place)
    if (file := place.get("file")) is not None:
        source = files.get(file)
        if source is None:
            raise CorpusError(
                _("{where}: {file} does not name one text of the index. Examples of its texts: {shown}").format(
                    where=where, file=file, shown=", ".join(list(files)[:_SHOWN_NAMES])
                )
            )
        key["file"] = source
    for name in key.keys() & {"line", "start"}:
        if not (key[name].isascii() and key[name].isdecimal()):
            raise CorpusError.unexpected(f"{where}: {name} = {key[name]}", f"{_('a whole number')} (x>=0)")
        key[name] = str(int(key[name]))
    return tuple(key.values())


def _names_of_texts(texts: Sequence[str]) -> dict[str, str | None]:
    """Map names to texts; a name is a path or the end of one, mapped to None if several texts share it."""
    names: dict[str, str | None] = {text: text for text in texts}
    for text in texts:
        parts = text.split("/")
        for start in range(1, len(parts)):
            end = "/".join(parts[start:])
            if names.setdefault(end, text) != text and end not in texts:
                names[end] = None
    return names


Colouring = dict[str, Any]


def colouring_of(
    labels: Sequence[str | None], chinese: Callable[[list[str]], Sequence[str]] = lambda _: ()
) -> Colouring:
    """Return the distinct labels of points, most frequent first, and the number of each point's label, as JSON values.

    `chinese` returns the Chinese names of labels, or none.
    """
    counts = Counter(label for label in labels if label is not None)
    ranked = sorted(counts, key=lambda label: (-counts[label], label))
    numbers = {label: number for number, label in enumerate(ranked)}
    points = [None if label is None else numbers[label] for label in labels]
    return {"labels": ranked, "labels_zh": chinese(ranked), "points": points}


def colour_points(
    index: ContextIndex,
    words: Sequence[WordPoints],
    names: Mapping[str, str],
    labels: PointLabels | None,
    reporter: Reporter,
) -> dict[str, Colouring]:
    """Return the colourings by name: usage, source, label:NAME for the user's labels, column:NAME for other columns."""
    points = [point for word in words for point in word.occurrences]
    lines = [index.line(point.line) for point in points]
    colourings = {"usage": _by_usage(words), "source": colouring_of([names[line.source] for line in lines])}
    if labels is not None:
        places = [(line, line.start + point.start, point.word) for line, point in zip(lines, points, strict=True)]
        labels.report_missing(index, [word.word for word in words], reporter)
        colourings |= _by_labels(labels, places, reporter)
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
        labels += ["、".join(name[:_NUM_SHOWN]) for name in word.names]
    return {"labels": labels, "labels_zh": (), "points": points}


def _by_labels(
    labels: PointLabels, places: Sequence[tuple[IndexedLine, int, str]], reporter: Reporter
) -> dict[str, Colouring]:
    colourings = {}
    for name in labels.kinds:
        of_points = [labels.label(name, *place) for place in places]
        if all(label is None for label in of_points):
            reporter.warn(
                _("{path}: no occurrence on the page has a label in column {name}.").format(path=labels.path, name=name)
            )
        colourings[f"label:{name}"] = colouring_of(of_points, partial(labels.chinese, name))
    return colourings
