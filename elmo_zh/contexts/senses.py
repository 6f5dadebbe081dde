"""The usages of a word: its occurrences in an index, clustered by their vectors."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_arguments, check_instance
from elmo_zh.contexts import SenseOptions
from elmo_zh.contexts.columns import Column, free_name
from elmo_zh.contexts.index import ContextIndex, IndexedLine, Neighbour, Occurrence
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.occurrences import NeighbourLine
from elmo_zh.contexts.usages import Clusters, find_clusters, telling_words, usage_layer, usage_vectors
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.embed.embedder import ElmoEmbedder

# Substitutes are found for this many occurrences nearest to a usage's centre, and this many for each of them.
_NUM_OCCURRENCES, _NUM_EACH = 20, 20
_COLUMNS = ("occurrence", "usage", "cosine", "repeated", "source", "line", "start", "end", "text_start", "text")


@dataclass(frozen=True, eq=False)
class Usage:
    """One usage of a word.

    Attributes:
        number: Its number, from 0; the most frequent usage is the first.
        share: Its fraction of the word's occurrences.
        centre: Mean of the vectors of its occurrences, each scaled to length 1, float64, shape (2P,).
        nearest: Its occurrences with their lines, most similar to the centre first.
        words: Other words that occur near this usage and not near the others, most characteristic first.
    """

    number: int
    share: float
    centre: NDArray[np.float64] = field(repr=False)
    nearest: tuple[NeighbourLine, ...] = field(repr=False)
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Senses:
    """The usages of a word in an index.

    Attributes:
        word: The word.
        layer: The layer whose vectors were compared.
        usages: The usages, most frequent first.
        occurrences: Numbers of the word's occurrences, ascending, int64, shape (n,).
        labels: The usage of each occurrence, int64, shape (n,).
        cosines: Cosine of each occurrence with the centre of its usage, float64, shape (n,).
        is_repeated: Whether each occurrence's line repeats an earlier one and is not counted, bool, shape (n,).
        clusters: Clusters of the occurrences that are not repeated: places on the map, and the reason for their number.
    """

    word: str
    layer: int
    usages: tuple[Usage, ...]
    occurrences: NDArray[np.int64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    cosines: NDArray[np.float64] = field(repr=False)
    is_repeated: NDArray[np.bool_] = field(repr=False)
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
        layer: The layer to compare. Default: the lowest contextual layer in the index.
        num_usages: The number of usages. Default: chosen by `elmo_zh.contexts.usages`, possibly one.
        seed: Seed of k-means.
        top: Maximum number of characteristic words for each usage.

    Raises:
        ElmoZhError: If the index does not have the word or the layer, or the word has too few occurrences in
            different lines.
        TypeError: If `index` is not a ContextIndex, or the word is not a string.
        ValueError: If a number is not a whole number, or out of range.
    """
    check_instance(index, ContextIndex, "find_senses", "index", "a ContextIndex, as returned by ContextIndex.load")
    check_arguments("find_senses", SenseOptions, num_usages=num_usages, seed=seed)
    chosen = usage_layer(index) if layer is None else layer
    index.vectors(chosen)  # raises if the index does not have the layer
    numbers = index.occurrences(word)
    found = [index.occurrence(number) for number in numbers.tolist()]
    lines, originals = _read_lines(index, found)
    is_repeated = originals != np.arange(len(numbers))
    distinct = np.flatnonzero(~is_repeated)
    _check_count(index, word, len(distinct), num_usages)
    units = unit_rows(index.vectors(chosen)[numbers])
    _check_differences(index, units[distinct], chosen, num_usages)
    clusters = find_clusters(usage_vectors(index, chosen, numbers[distinct]), num_usages, seed)
    labels = np.empty(len(numbers), np.int64)
    labels[distinct] = clusters.labels
    labels = labels[originals]
    own = [distinct[clusters.labels == label] for label in range(len(clusters.centres))]
    centres = np.stack([units[each].mean(axis=0) for each in own])
    cosines = (units * unit_rows(centres)[labels]).sum(axis=1)
    [words] = telling_words(index, [(word, centres)], chosen, top)
    usages = []
    for label, rows in enumerate(own):
        ranked = rows[np.lexsort((rows, -cosines[rows]))]
        nearest = tuple(NeighbourLine(Neighbour(found[row], float(cosines[row])), lines[row]) for row in ranked)
        usages.append(Usage(label, len(rows) / len(distinct), centres[label], nearest, tuple(words[label])))
    return Senses(word, chosen, tuple(usages), numbers, labels, cosines, is_repeated, clusters)


def _read_lines(index: ContextIndex, found: Sequence[Occurrence]) -> tuple[list[IndexedLine], NDArray[np.int64]]:
    """Return the line of each occurrence, and the row of the first occurrence at the same position of an equal line."""
    lines = [index.line(occurrence.line) for occurrence in found]
    first: dict[tuple[str, int], int] = {}
    places = zip(lines, found, strict=True)
    originals = [first.setdefault((line.text, each.start), row) for row, (line, each) in enumerate(places)]
    return lines, np.array(originals, np.int64)


def _check_count(index: ContextIndex, word: str, num_distinct: int, num_usages: int | None) -> None:
    if num_distinct < 2:
        raise ElmoZhError(
            _(
                "{word} has only one occurrence in {path} (repeated lines count once), but at least two"
                " are needed to find usages. Give another word, or index more text."
            ).format(word=word, path=index.path)
        )
    if num_usages is not None and num_distinct < num_usages:
        raise ElmoZhError(
            _(
                "{word} has {num_distinct} occurrences in {path} (repeated lines count once), too few"
                " for {num_usages} usages. Ask for fewer with --usages, or index more text."
            ).format(word=word, num_distinct=num_distinct, path=index.path, num_usages=num_usages)
        )


def _check_differences(index: ContextIndex, units: NDArray[np.float64], layer: int, num_usages: int | None) -> None:
    """Raise ElmoZhError if there are fewer distinct vectors than requested usages, as in the token layer."""
    if num_usages is None:
        return
    different = np.unique(units, axis=0)
    if len(different) < num_usages:
        others = ", ".join(str(each) for each in index.layers if each not in (0, layer)) or "none"
        raise ElmoZhError(
            _(
                "In layer {layer}, the number of distinct vectors ({different}) is too low for"
                " {num_usages} usages. Lower --usages, or choose another layer with --layer. Other layers"
                " above 0 in the index: {others}"
            ).format(layer=layer, different=len(different), num_usages=num_usages, others=others)
        )


def usage_counts(index: ContextIndex, senses: Senses, column: Column) -> dict[str, list[int]]:
    """Count the occurrences of each usage for each value of a column, without repeated lines."""
    distinct = ~senses.is_repeated
    lines = [index.occurrence(number).line for number in senses.occurrences[distinct].tolist()]
    counts = np.zeros((len(column.values), len(senses.usages)), np.int64)
    np.add.at(counts, (column.codes[lines], senses.labels[distinct]), 1)
    order = np.argsort(column.ranks(), kind="stable").tolist()
    return {column.values[code]: counts[code].tolist() for code in order if counts[code].any()}


def usage_rows(index: ContextIndex, senses: Senses, by: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row for each occurrence, in text order, with the columns in docs/contexts.md and the column `by`."""
    others = {(by if by == "source" else free_name(by, _COLUMNS)): index.columns[by]} if by else {}
    columns = (senses.occurrences, senses.labels, senses.cosines, senses.is_repeated)
    for number, label, cosine, is_repeated in zip(*(column.tolist() for column in columns), strict=True):
        occurrence = index.occurrence(number)
        line = index.line(occurrence.line)
        values = (
            number, label, f"{cosine:.4f}", int(is_repeated), line.source, line.number,
            line.start + occurrence.start, line.start + occurrence.end, line.start, line.text,
        )  # fmt: skip
        own = {name: other.values[other.codes[occurrence.line]] for name, other in others.items()}
        yield dict(zip(_COLUMNS, values, strict=True)) | own


def usage_substitutes(
    embedder: "ElmoEmbedder", index: ContextIndex, senses: Senses, *, top: int = 10
) -> list[list[str]]:
    """Return the most characteristic substitutes for each usage of a word.

    Substitutes are found for the 20 occurrences nearest to a usage's centre, 20 for each. The score of a substitute is
    its share of these occurrences, minus its largest share in another usage; ties go to the better mean rank.
    """
    shares, ranks = [], []
    for usage in senses.usages:
        places = [_place(index, each.neighbour.occurrence) for each in usage.nearest[:_NUM_OCCURRENCES]]
        share: Counter[str] = Counter()
        rank: Counter[str] = Counter()
        for found in embedder.substitutes_many(places, _NUM_EACH + 1):
            for number, word in enumerate(found.words[:_NUM_EACH]):
                share[word] += 1
                rank[word] += number - _NUM_EACH
        shares.append({word: count / len(places) for word, count in share.items()})
        ranks.append(rank)
    return [_telling(shares, rank, usage)[:top] for usage, rank in enumerate(ranks)]


def _telling(shares: Sequence[dict[str, float]], rank: Counter[str], usage: int) -> list[str]:
    others = [share for number, share in enumerate(shares) if number != usage]

    def score(word: str) -> tuple[float, int, str]:
        lead = shares[usage][word] - max((share.get(word, 0.0) for share in others), default=0.0)
        return -round(lead, 6), rank[word], word

    return sorted(shares[usage], key=score)


def _place(index: ContextIndex, occurrence: Occurrence) -> tuple[list[str], int]:
    """Return the tokens of an occurrence's line, as stored in the index, and its place among them."""
    tokens, ends = index.tokens()
    first = ends[occurrence.line - 1] if occurrence.line else 0
    words = tokens["word"][first : ends[occurrence.line]].tolist()
    return [index.distinct_tokens[word] for word in words], occurrence.token
