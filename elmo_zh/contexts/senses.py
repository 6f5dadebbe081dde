"""Usages of a word: clusters of its occurrences' vectors in an index, and the words that tell them apart.

The vectors are scaled to length 1 and reduced to their first eight principal components, because distances in hundreds
of dimensions hardly differ. With more than 60 vectors, a random sample of them is tested. k-means is run for two to six
clusters of at least five vectors on average, and the number with the largest mean silhouette (Rousseeuw 1987) is a
candidate. k-means splits any cloud, so this silhouette is compared with the silhouettes of k-means on 20 samples from a
normal distribution with the same variances.

Unless the silhouette is more than two standard deviations above the mean silhouette of these samples, there is one
cluster. If it is, and is also above 0.5, "a reasonable structure" (Kaufman and Rousseeuw 1990, "Finding Groups in
Data"), the candidate is taken. Otherwise there are two clusters, since blurred clouds nearly always have their largest
silhouette at five or six (benchmarks/usages.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_arguments
from elmo_zh.contexts import SenseOptions
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Column, IndexedLine, Neighbour, Occurrence, free_name, require_column
from elmo_zh.contexts.nearest import iter_cosines, unit_rows
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _

Floats = NDArray[np.float64]

NUM_COMPONENTS = 8
MOST_CLUSTERS = 6
# A number of clusters is tried only if the clusters would have at least this many vectors on average.
LEAST_PER_CLUSTER = 5
# k-means sees a random sample of this many vectors; the others join the nearest centre.
MOST_FITTED = 1000
# The tests see at most this many: with very many vectors, the slightest bend of a cloud would pass for two usages.
MOST_TESTED = 60
# Standard deviations above the mean silhouette of drawn normal distributions.
LEAST_SCORE = 2.0
# Above this silhouette there may be more than two clusters.
CLEAR_SILHOUETTE = 0.5
_STARTS, _DRAWS = 10, 20
# The context-free vectors of this many tokens on either side count, with weights that fall off at this rate.
_WINDOW, _FADING = 8, 0.15
_NUM_NEAREST = 200
_COLUMNS = ("occurrence", "usage", "cosine", "repeated", "source", "line", "start", "end", "text_start", "text")


def usage_layer(index: ContextIndex) -> int:
    """Return the default layer for distinguishing usages: the lowest contextual one, or 0 if the index has no other."""
    return next((layer for layer in index.layers if layer), index.layers[-1])


def usage_vectors(index: ContextIndex, layer: int, numbers: NDArray[np.int64]) -> Floats:
    """Return vectors for clustering a word's n occurrences, float64, shape (n, 6P).

    The last third is zero if the index lacks layer 0.
    """
    own, tokens = unit_rows(index.vectors(layer)[numbers]), index.token_numbers()
    around, near = np.zeros_like(own), np.zeros_like(own)
    for row, number in enumerate(numbers.tolist()):
        others = index.occurrences_beside(number)
        if len(others):
            around[row] = unit_rows(index.vectors(layer)[others]).mean(axis=0)
        if len(others) and 0 in index.layers:
            near[row] = near_vector(index.vectors(0)[others], tokens[others] - tokens[number])
    return join_directions(own, around, near)


def near_vector(vectors: NDArray[np.floating[Any]], distances: NDArray[np.int64]) -> Floats:
    """Return the direction (D,) of the weighted sum of nearby words' context-free vectors (n, D); zero if none."""
    distances = np.abs(distances)
    weights = np.where(distances <= _WINDOW, 1 / (1 + _FADING * distances), 0.0)
    [direction] = unit_rows(weights[None] @ unit_rows(vectors))
    return np.asarray(direction)


def join_directions(*parts: Floats) -> Floats:
    """Return the directions of each occurrence's vector and its context vectors, each (n, D), concatenated.

    Directions are relative to the mean over the occurrences, so that common components do not count; all have equal
    weight. The mean vector of the surrounding words is the context vector of Schuetze 1998, "Automatic Word Sense
    Discrimination"; it is computed twice, from contextual and from context-free vectors (`near_vector`).
    """
    return np.hstack([_directions(part) for part in parts])


def _directions(rows: Floats) -> Floats:
    """Return the direction of each row relative to their mean; rows of zeros stay zero and are not counted."""
    is_given = rows.any(axis=1, keepdims=True)
    mean = rows.sum(axis=0) / max(int(is_given.sum()), 1)
    return unit_rows(np.where(is_given, rows - mean, 0.0))


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of vectors, largest first, with the reason for their number unless it was given."""

    labels: NDArray[np.int64]  # the cluster of each vector, shape (n,)
    places: Floats  # the principal components of each vector, in descending order of variance, shape (n, d)
    centres: Floats  # the mean place of each cluster, shape (K, d)
    choice: "ClusterChoice | None"


@dataclass(frozen=True)
class ClusterChoice:
    """Why a number of clusters was chosen; the candidate has the largest silhouette, or is 1 for very few vectors."""

    candidate: int = 1
    silhouette: float = 0.0
    score: float = 0.0  # standard deviations above the mean silhouette of normal distributions

    @property
    def number(self) -> int:
        """The chosen number of clusters."""
        if self.score <= LEAST_SCORE:
            return 1
        return self.candidate if self.silhouette > CLEAR_SILHOUETTE else 2


def find_clusters(vectors: NDArray[np.floating[Any]], number: int | None = None, seed: int = 1) -> Clusters:
    """Cluster at least two vectors, shape (n, D), deterministically; if `number` is None, choose it."""
    from threadpoolctl import threadpool_limits

    fitted = np.arange(len(vectors))
    if len(vectors) > MOST_FITTED:
        fitted = np.sort(np.random.default_rng(seed).choice(len(vectors), MOST_FITTED, replace=False))
    # Sums of several threads differ in their last bits from run to run.
    with threadpool_limits(1):
        places = _principal_components(unit_rows(vectors), fitted)
        choice = choose_number(places[fitted], seed) if number is None else None
        _, centres = _means(places[fitted], choice.number if choice else number or 1, seed)
        labels = np.square(places[:, None] - centres).sum(axis=2).argmin(axis=1)
    order = np.argsort(-np.bincount(labels, minlength=len(centres)), kind="stable")
    return Clusters(np.argsort(order)[labels], places, centres[order], choice)


def choose_number(places: Floats, seed: int) -> ClusterChoice:
    """Choose the number of clusters for points, shape (n, d)."""
    from sklearn.metrics import silhouette_score

    generator = np.random.default_rng(seed)
    if len(places) > MOST_TESTED:
        places = places[generator.choice(len(places), MOST_TESTED, replace=False)]
    most = min(MOST_CLUSTERS, len(places) // LEAST_PER_CLUSTER, len(np.unique(places, axis=0)) - 1)
    silhouettes = {
        number: float(silhouette_score(places, _means(places, number, seed)[0])) for number in range(2, most + 1)
    }
    if not silhouettes:
        return ClusterChoice()
    best = max(silhouettes, key=lambda number: silhouettes[number])
    spread = places.std(axis=0)
    drawn = []
    for _draw in range(_DRAWS):
        cloud = generator.standard_normal(places.shape) * spread
        drawn.append(silhouette_score(cloud, _means(cloud, best, seed, starts=1)[0]))
    score = float((silhouettes[best] - np.mean(drawn)) / np.std(drawn))
    return ClusterChoice(candidate=best, silhouette=silhouettes[best], score=score)


def _principal_components(vectors: Floats, fitted: NDArray[np.int64]) -> Floats:
    """Return the coordinates of all vectors on the principal axes of the fitted vectors, shape (n, d)."""
    from sklearn.decomposition import PCA

    most = min(NUM_COMPONENTS, len(fitted), vectors.shape[1])
    with np.errstate(invalid="ignore"):  # PCA divides by the variance, which is zero if all vectors are equal
        return np.asarray(PCA(most, svd_solver="full").fit(vectors[fitted]).transform(vectors))


def _means(places: Floats, number: int, seed: int, starts: int = _STARTS) -> tuple[NDArray[np.int64], Floats]:
    if number == 1:
        return np.zeros(len(places), np.int64), places.mean(axis=0, keepdims=True)
    from sklearn.cluster import KMeans

    fit = KMeans(number, n_init=starts, random_state=seed % 2**32, algorithm="lloyd").fit(places)
    return fit.labels_.astype(np.int64), fit.cluster_centers_


def telling_words(
    index: ContextIndex,
    words: Sequence[tuple[str, NDArray[np.float64]]],
    layer: int,
    top: int,
    advance: Callable[[int], None] = lambda _: None,
) -> list[list[list[str]]]:
    """Return the most characteristic words for each usage of the given words, reading the index once.

    Each word comes with the centres of its K usages, float64, shape (K, 2P). The candidates are the 200 occurrences of
    other words nearest to a centre, among those nearer to it than to the word's other centres. A candidate's score is
    its cosine plus its lead over the cosine with the next centre. `advance` is called with the number of occurrences
    of the index that have just been read.
    """
    if not words:
        return []
    ends = np.cumsum([len(own) for _, own in words]).tolist()
    occurrences = [index.occurrences(word) for word, _ in words]
    nearest = [[np.empty((3, 0)) for _ in own] for _, own in words]
    centres = np.concatenate([own for _, own in words])
    for start, cosines in iter_cosines(index.vectors(layer), index.norms(layer), centres):
        for own, usages, end in zip(occurrences, nearest, ends, strict=True):
            is_other = np.full(len(cosines), True)
            first, last = np.searchsorted(own, [start, start + len(cosines)])
            is_other[own[first:last] - start] = False
            mine = cosines[:, end - len(usages) : end]
            usages[:] = [_with_block(usage, start, mine, number, is_other) for number, usage in enumerate(usages)]
        advance(len(cosines))
    return [[_ranked_words(index, usage)[:top] for usage in usages] for usages in nearest]


def _with_block(
    nearest: Floats, start: int, cosines: NDArray[np.float32], usage: int, is_other: NDArray[np.bool_]
) -> Floats:
    """Return the occurrences of other words nearest to a usage, nearest first, after one more block of the index.

    Each column has the number, the cosine, and the lead over other usages, shape (3, n). Ties go to the first.
    """
    mine, others = cosines[:, usage], np.delete(cosines, usage, axis=1)
    leads = mine - others.max(axis=1) if others.shape[1] else np.zeros_like(mine)
    least = nearest[1, -1] if nearest.shape[1] == _NUM_NEAREST else -np.inf
    rows = np.flatnonzero((leads >= 0) & (mine > least) & is_other)
    both = np.hstack([nearest, [rows + start, mine[rows], leads[rows]]])
    return both[:, np.argsort(-both[1], kind="stable")[:_NUM_NEAREST]]


def _ranked_words(index: ContextIndex, nearest: Floats) -> list[str]:
    numbers, cosines, leads = nearest
    ranked = numbers[np.lexsort((numbers, -(cosines + leads).round(6)))].astype(np.int64)
    return list(dict.fromkeys(index.occurrence(number).word for number in ranked.tolist()))


@dataclass(frozen=True, eq=False)
class Usage:
    """One usage of a word; occurrences in repeated lines count once."""

    number: int  # its number, from 0; the most frequent usage is the first
    share: float  # its fraction of the word's occurrences
    # Mean of the vectors of its occurrences, each scaled to length 1, float64, shape (2P,)
    centre: NDArray[np.float64] = field(repr=False)
    nearest: tuple[Neighbour, ...] = field(repr=False)  # its occurrences, most similar to the centre first
    words: tuple[str, ...]  # words whose vectors are near this usage and not near the others, most characteristic first


@dataclass(frozen=True, eq=False)
class Senses:
    """The usages of a word in an index; arrays have an entry for each of its n occurrences."""

    word: str
    layer: int  # the layer whose vectors were compared
    usages: tuple[Usage, ...]  # most frequent first
    occurrences: NDArray[np.int64] = field(repr=False)  # their numbers, ascending
    labels: NDArray[np.int64] = field(repr=False)  # the usage of each
    cosines: NDArray[np.float64] = field(repr=False)  # cosine of each with the centre of its usage
    is_repeated: NDArray[np.bool_] = field(repr=False)  # whether its line repeats an earlier one and is not counted
    # Those not repeated, as clusters: places on the map, and the reason for their number
    clusters: Clusters = field(repr=False)


def find_senses(
    index: ContextIndex,
    word: str,
    *,
    layer: int | None = None,
    num_usages: int | None = None,
    seed: int = 1,
    top: int = 10,
) -> Senses:
    """Find the usages of a word by clustering its occurrences in an index.

        senses = find_senses(ContextIndex.load("news.index"), "苹果")
        for usage in senses.usages:
            usage.share, usage.words, usage.nearest[0].line.text

    Occurrences in repeated lines count once. For frequent words, the index has only a sample of the occurrences.

    Args:
        index: The index.
        word: A word in the index.
        layer: The layer to compare. Default: the lowest contextual layer in the index, or 0 if it has none.
        num_usages: The number of usages. Default: chosen from the data, possibly one.
        seed: Seed of k-means.
        top: Maximum number of characteristic words for each usage.

    Raises:
        ElmoZhError: If the index does not have the word or the layer, or the word has too few occurrences in
            different lines.
        TypeError: If the word is not a string.
        ValueError: If `num_usages` or `seed` is not a whole number, or is out of range.
    """
    check_arguments("find_senses", SenseOptions, num_usages=num_usages, seed=seed)
    layer = usage_layer(index) if layer is None else layer
    index.vectors(layer)  # raises if the index does not have the layer
    numbers = index.occurrences(word)
    occurrences = [index.occurrence(number) for number in numbers.tolist()]
    lines, originals = _read_lines(index, occurrences)
    is_repeated = originals != np.arange(len(numbers))
    distinct = np.flatnonzero(~is_repeated)
    units = unit_rows(index.vectors(layer)[numbers])
    _require_different(index, word, layer, units[distinct], num_usages)
    clusters = find_clusters(usage_vectors(index, layer, numbers[distinct]), num_usages, seed)
    labels = np.empty(len(numbers), np.int64)
    labels[distinct] = clusters.labels
    labels = labels[originals]
    rows_of_usages = [distinct[clusters.labels == label] for label in range(len(clusters.centres))]
    centres = np.stack([units[rows].mean(axis=0) for rows in rows_of_usages])
    cosines = (units * unit_rows(centres)[labels]).sum(axis=1)
    [words] = telling_words(index, [(word, centres)], layer, top)

    def nearest_lines(rows: NDArray[np.int64]) -> tuple[Neighbour, ...]:
        ranked = rows[np.lexsort((rows, -cosines[rows]))]
        return tuple(Neighbour(occurrences[row], float(cosines[row]), lines[row]) for row in ranked)

    usages = tuple(
        Usage(label, len(rows) / len(distinct), centres[label], nearest_lines(rows), tuple(words[label]))
        for label, rows in enumerate(rows_of_usages)
    )
    return Senses(word, layer, usages, numbers, labels, cosines, is_repeated, clusters)


def _require_different(
    index: ContextIndex, word: str, layer: int, units: NDArray[np.float64], num_usages: int | None
) -> None:
    """Raise ElmoZhError if `units`, a word's distinct occurrences, are too few for `num_usages` (None: at least 2)."""
    # Every occurrence has the same vector in the token layer.
    count = len(units) if num_usages is None else len(np.unique(units, axis=0))
    if len(units) < 2 or count < (num_usages or 2):
        text = _(
            "{word} has too few different occurrences in layer {layer} of {path} for {num_usages} usages: {count}"
            " (repeated lines count once). Index more text or, if you set --usages, lower it or choose another --layer."
        )
        gaps = {"word": word, "count": count, "layer": layer, "path": index.path, "num_usages": max(2, num_usages or 0)}
        raise ElmoZhError(text.format(**gaps))


def _read_lines(index: ContextIndex, occurrences: Sequence[Occurrence]) -> tuple[list[IndexedLine], NDArray[np.int64]]:
    """Return the line of each occurrence, and the row of the first occurrence at the same place in an equal line."""
    lines = [index.line(occurrence.line) for occurrence in occurrences]
    first: dict[tuple[str, int], int] = {}
    places = ((line.text, occurrence.start) for line, occurrence in zip(lines, occurrences, strict=True))
    originals = [first.setdefault(place, row) for row, place in enumerate(places)]
    return lines, np.array(originals, np.int64)


def usage_counts(index: ContextIndex, senses: Senses, column: Column) -> dict[str, list[int]]:
    """Count each usage's occurrences for each value of a column; values without occurrences are left out.

    Occurrences in repeated lines count once.
    """
    distinct = ~senses.is_repeated
    lines = [index.occurrence(number).line for number in senses.occurrences[distinct].tolist()]
    counts = np.zeros((len(column.values), len(senses.usages)), np.int64)
    np.add.at(counts, (column.codes[lines], senses.labels[distinct]), 1)
    order = np.argsort(column.ranks(), kind="stable").tolist()
    return {column.values[code]: counts[code].tolist() for code in order if counts[code].any()}


def usage_rows(index: ContextIndex, senses: Senses, by: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row for each occurrence, in text order, with the columns in docs/contexts.md and the column `by`."""
    others = (
        {(by if by == "source" else free_name(by, _COLUMNS)): require_column(index.columns, by, "--by")} if by else {}
    )
    neighbours = index.neighbours_of(senses.occurrences, senses.cosines)
    for each, label, is_repeated in zip(neighbours, senses.labels.tolist(), senses.is_repeated.tolist(), strict=True):
        values = {**each.described(), "usage": label, "cosine": f"{each.cosine:.4f}", "repeated": int(is_repeated)}
        own = {name: other.values[other.codes[each.occurrence.line]] for name, other in others.items()}
        yield {name: values[name] for name in _COLUMNS} | own
