"""Find words that two texts use differently: two indexes made with one model, compared word by word."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_choice, check_instance, check_strings, check_whole_number
from elmo_zh.contexts.drift_statistics import (
    MEASURES,
    Vectors,
    compare_groups,
    distinct_unit_rows,
    permutation_p,
)
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Neighbour
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.occurrences import NeighbourLine, keyword_lines
from elmo_zh.errors import ElmoZhError
from elmo_zh.run.files import atomic_path
from elmo_zh.run.reporter import Reporter, SilentReporter, aligned, counted

# Words that `repr` shows.
_SHOWN_WORDS = 5
# The name of each measure in the header of the table.
_TITLES = {"excess": "excess", "apd": "APD", "prt": "PRT"}


@dataclass(frozen=True, kw_only=True)
class WordDrift:
    """The distance between the uses of a word in two texts.

    Attributes:
        word: The word.
        old_count: How often it occurs in the old text.
        new_count: How often it occurs in the new text.
        old_compared: Its different sentences in the old index, which are compared.
        new_compared: Those in the new index.
        apd: Average pairwise cosine distance between old and new occurrences.
        old_spread: Average pairwise cosine distance among the old ones: how varied its uses are.
        new_spread: The same among the new ones.
        excess: apd minus the mean of the spreads; 0 on average if nothing has changed.
        prt: Cosine distance of the mean old and the mean new unit vector.
        p: Share of random divisions of its occurrences into groups at least as far apart, by the chosen measure.
        q: False discovery rate among the words that have no larger p (Benjamini and Hochberg).
        procrustes: Distance of its vectors in two aligned word2vec models, if given and both have it.
    """

    word: str
    old_count: int
    new_count: int
    old_compared: int
    new_compared: int
    apd: float
    old_spread: float
    new_spread: float
    excess: float
    prt: float
    p: float
    q: float = 1.0
    procrustes: float | None = None


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The words of two indexes, compared.

    Attributes:
        words: The compared words, those that changed most first.
        layer: The layer whose vectors were compared.
        by: The measure that is tested and by which they are sorted: excess, apd or prt.
        num_shared: Number of words that both indexes have.
    """

    words: tuple[WordDrift, ...]
    layer: int
    by: str
    num_shared: int

    def __repr__(self) -> str:
        """Show the number of words, and those that changed most."""
        first = ", ".join(f"{each.word} {getattr(each, self.by):.3f}" for each in self.words[:_SHOWN_WORDS])
        dots = ", ..." if len(self.words) > _SHOWN_WORDS else ""
        return f"<Drift of {counted(len(self.words), 'word')} in layer {self.layer} by {self.by}: {first}{dots}>"

    def with_procrustes(self, distances: Mapping[str, float]) -> "Drift":
        """Return the same with the distances of aligned word2vec vectors."""
        return replace(self, words=tuple(replace(each, procrustes=distances.get(each.word)) for each in self.words))


def measure_drift(
    old: ContextIndex,
    new: ContextIndex,
    *,
    layer: int | None = None,
    min_count: int = 10,
    words: Collection[str] | None = None,
    by: str = "excess",
    permutations: int = 10_000,
    seed: int = 1,
    reporter: Reporter | None = None,
) -> Drift:
    """Compare the uses of each word in two indexes.

        drift = measure_drift(ContextIndex.load("old.index"), ContextIndex.load("new.index"))
        for word in drift.words[:10]:
            print(word.word, word.excess, word.q)

    Args:
        old: Index of the old text.
        new: Index of the new text, made with the same model.
        layer: The layer to compare. Default: the highest that both have.
        min_count: Least number of different sentences with the word in each index, at least 2.
        words: Compare only these. Default: all words of both.
        by: Measure that is tested and by which words are sorted: excess, apd or prt.
        permutations: Permutations of each word at most.
        seed: Seed of the permutations; a word's permutations do not depend on other words.
        reporter: Where progress goes.

    Raises:
        ElmoZhError: If the indexes were made in different ways, a layer is missing, or no word can be compared.
        TypeError: If `old` or `new` is not a ContextIndex, or `words` is not a collection of words.
        ValueError: If by or a number is out of range.
    """
    for name, index in (("old", old), ("new", new)):
        check_instance(index, ContextIndex, "measure_drift", name, "a ContextIndex; ContextIndex.load opens one")
    check_choice(by, MEASURES, "measure_drift", "by")
    for name, value, least in (("min_count", min_count, 2), ("permutations", permutations, 1), ("seed", seed, 0)):
        check_whole_number(value, "measure_drift", name, least)
    if words is not None:
        words = check_strings(words, "measure_drift", "words")
    chosen = require_comparable(old, new, layer)
    shared = sorted(set(old.words) & set(new.words))
    asked = shared if words is None else sorted(set(words).intersection(shared))
    found = []
    with (reporter or SilentReporter()).progress("drift", unit="words", total=len(asked)) as progress:
        for word in asked:
            groups = _group(old, word, chosen, min_count), _group(new, word, chosen, min_count)
            if min(map(len, groups)) >= min_count:
                generator = np.random.default_rng([seed, *word.encode()])
                p = permutation_p(*groups, by, permutations, generator)
                found.append(_compare(word, (old.count(word), new.count(word)), groups, p))
            progress.update(1)
    if not found:
        raise ElmoZhError(_why_none(old, new, asked, min_count))
    return Drift(words=_ranked(found, by), layer=chosen, by=by, num_shared=len(shared))


def require_comparable(old: ContextIndex, new: ContextIndex, layer: int | None) -> int:
    """Return the layer to compare."""
    if old.model_digest != new.model_digest:
        raise ElmoZhError(
            f"{old.path} was made with the model {old.model['path']}, {new.path} with another one, {new.model['path']};"
            " their vectors cannot be compared. Make one of them again with the other's model: index --model"
        )
    for name in ("precision", "unknown"):
        if old.model[name] != new.model[name]:
            raise ElmoZhError(
                f"{old.path} was made with --{name} {old.model[name]}, {new.path} with --{name} {new.model[name]}."
                " Make one of them again as the other, with: index"
            )
    both = sorted(set(old.layers) & set(new.layers))
    if layer is None and not both:
        raise ElmoZhError(f"{old.path} and {new.path} have no layer in common. Make one again with: index --layers")
    chosen = both[-1] if layer is None else layer
    for index in (old, new):
        index.vectors(chosen)
    if chosen == 0:
        raise ElmoZhError(
            "Layer 0 gives a word the same vector in every sentence, so it shows no change. Choose --layer 1 or higher."
        )
    return chosen


def moved_lines(
    old: ContextIndex, new: ContextIndex, word: str, layer: int, top: int
) -> tuple[list[NeighbourLine], list[NeighbourLine]]:
    """Return the old and the new lines that show the change of a word best, at most `top` different ones of each.

    They are the occurrences that are most typical of their own text and least of the other: the cosine to the mean of
    their own text exceeds most that to the mean of the other, which is the one shown.
    """
    numbers = old.occurrences(word), new.occurrences(word)
    units = [unit_rows(index.vectors_of(own, layer)) for index, own in zip((old, new), numbers, strict=True)]
    directions = unit_rows(np.stack([each.mean(axis=0) for each in units]))
    first = _distinct(old, numbers[0], units[0] @ directions[1], units[0] @ directions[0], top)
    return first, _distinct(new, numbers[1], units[1] @ directions[0], units[1] @ directions[1], top)


def _group(index: ContextIndex, word: str, layer: int, min_count: int) -> Vectors:
    """Return the unit vectors of a word's different sentences; none if it occurs too rarely anyway."""
    numbers = index.occurrences(word)
    return distinct_unit_rows(index.vectors_of(numbers[: len(numbers) if len(numbers) >= min_count else 0], layer))


def _compare(word: str, counts: tuple[int, int], groups: tuple[Vectors, Vectors], p: float) -> WordDrift:
    distances = compare_groups(*groups)
    return WordDrift(
        word=word,
        old_count=counts[0],
        new_count=counts[1],
        old_compared=len(groups[0]),
        new_compared=len(groups[1]),
        **asdict(distances),
        excess=distances.excess,
        p=p,
    )


def _ranked(found: Sequence[WordDrift], by: str) -> tuple[WordDrift, ...]:
    from scipy.stats import false_discovery_control

    corrected = false_discovery_control([each.p for each in found])
    complete = (replace(each, q=float(q)) for each, q in zip(found, corrected, strict=True))
    return tuple(sorted(complete, key=lambda each: (-getattr(each, by), each.word)))


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


def _why_none(old: ContextIndex, new: ContextIndex, asked: Sequence[str], min_count: int) -> str:
    if not asked:
        return f"{old.path} and {new.path} have none of the words in common. Index more text, or give other words."
    return (
        f"No word is in {min_count} different sentences of both {old.path} and {new.path}. Lower --min-count, or index"
        " more text."
    )


def save_drift(path: Path, drift: Drift) -> None:
    """Write all compared words as TSV: a header with the attributes of `WordDrift`, then a row for each word."""
    with atomic_path(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(field.name for field in fields(WordDrift)) + "\n")
        for word in drift.words:
            file.write("\t".join(map(_cell, asdict(word).values())) + "\n")


def table_lines(words: Sequence[WordDrift]) -> list[str]:
    """Return the lines of a table: word, counts, measures, spreads, p, q, and word2vec's distance if it is known."""
    with_vectors = any(each.procrustes is not None for each in words)
    header = ["word", "old", "new", *_TITLES.values(), "old spread", "new spread", "p", "q"]
    rows = [header + ["word2vec"] * with_vectors]
    for each in words:
        row = [each.word, f"{each.old_count:,}", f"{each.new_count:,}"]
        row += [f"{getattr(each, name):.4f}" for name in (*_TITLES, "old_spread", "new_spread")]
        row += [f"{each.p:.2g}", f"{each.q:.2g}"]
        if with_vectors:
            row.append("-" if each.procrustes is None else f"{each.procrustes:.4f}")
        rows.append(row)
    return list(aligned(rows))


def moved_line_rows(old: Sequence[NeighbourLine], new: Sequence[NeighbourLine]) -> list[str]:
    """Return old and new lines below one another, aligned at the word."""
    names = ["old"] * len(old) + ["new"] * len(new)
    return [f"  {name}  {line}" for name, line in zip(names, keyword_lines([*old, *new]), strict=True)]


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
