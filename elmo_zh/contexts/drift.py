"""Find words that are used differently in different periods: parts of one index, or indexes made with one model."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_arguments, check_strings
from elmo_zh.contexts import DriftOptions
from elmo_zh.contexts.drift_statistics import (
    DocumentSums,
    Vectors,
    bootstrap_interval,
    compare_groups,
    distinct_rows,
    permutation_test,
)
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Neighbour, require_column
from elmo_zh.contexts.nearest import unit_rows
from elmo_zh.contexts.occurrences import distinct
from elmo_zh.contexts.senses import find_clusters
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.reporter import Reporter, SilentReporter, first_ten
from elmo_zh.vocabulary.vocabulary import is_word

Numbers = NDArray[np.int64]

# In a period with fewer documents, raw lines count as documents: so few documents can be divided in too few ways.
LEAST_DOCUMENTS = 5
# A word is a fragment if the same token stands directly beside at least this share of its occurrences.
_FRAGMENT_SHARE = 0.8
# A particle beside a word does not make it a fragment: 时候 belongs to no name, though 的 is nearly always before it.
_PARTICLES = frozenset("的地得了着著过過")
LEVEL = 0.05
# What the models of indexes must share.
_SAME = ("model_digest", "precision", "unknown")
# Number of clusters of a word's occurrences; the Jensen-Shannon divergence compares their shares.
_NUM_USAGES = 5


@dataclass(frozen=True, eq=False)
class Period:
    """A period of time or a group of texts: a subset of the lines in an index."""

    name: str  # a value of a column, or the name of the index
    index: ContextIndex  # the index with these lines
    lines: NDArray[np.bool_]  # which lines belong to the period, bool, shape (L,)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of occurrences, sampled or not, of each indexed word that occurs in the period."""
        tokens, ends = self.index.tokens()
        spellings = self.index.distinct_tokens
        own = tokens["word"][np.repeat(self.lines, np.diff(ends, prepend=0))]
        counts = np.bincount(own, minlength=len(spellings)).tolist()
        return {word: count for word in self.index.words if (count := counts[bisect_left(spellings, word)])}

    @cached_property
    def by_lines(self) -> bool:
        """Whether raw lines count as documents because the period has fewer than five documents."""
        return len(np.unique(_documents(self.index)[self.lines])) < LEAST_DOCUMENTS

    @cached_property
    def documents(self) -> Numbers:
        """The document number of each line in the index, int64, shape (L,)."""
        return _documents(self.index, by_lines=self.by_lines)

    @cached_property
    def _token_numbers(self) -> Numbers:
        return self.index.token_numbers()

    def occurrences(self, word: str) -> Numbers:
        """Return the numbers of a word's occurrences in the period, ascending, int64, shape (n,)."""
        if word not in self.counts:
            return np.empty(0, np.int64)
        numbers = self.index.occurrences(word)
        return numbers[self.lines[self._lines_of(numbers)]]

    def documents_of(self, numbers: Numbers) -> Numbers:
        """Return the document number of each occurrence, int64, shape (n,)."""
        return self.documents[self._lines_of(numbers)]

    def _lines_of(self, numbers: Numbers) -> Numbers:
        return np.searchsorted(self.index.tokens()[1], self._token_numbers[numbers], side="right")

    def whole_of(self, word: str, numbers: Numbers) -> str | None:
        """Return the longer string that a word is a fragment of, such as 卢 拉 for 拉; None if it is not a fragment.

        A fragment has the same word directly before, or directly after, at least 80% of its occurrences. Particles and
        punctuation do not count.
        """
        for place, beside in enumerate(self._words_beside(numbers)):
            found = Counter(beside.tolist()).most_common(1)
            if found and found[0][1] >= _FRAGMENT_SHARE * len(numbers):
                other = self.index.distinct_tokens[found[0][0]]
                if is_word(other) and other not in _PARTICLES:
                    return f"{word} {other}" if place else f"{other} {word}"
        return None

    def _words_beside(self, numbers: Numbers) -> Iterator[NDArray[np.int32]]:
        """Yield the word numbers of the tokens directly before the occurrences in their lines, then of those after."""
        tokens, ends = self.index.tokens()
        places, lines = self._token_numbers[numbers], self._lines_of(numbers)
        starts = np.where(lines > 0, ends[lines - 1], 0)
        yield tokens["word"][places[places > starts] - 1]
        yield tokens["word"][places[places + 1 < ends[lines]] + 1]


def periods_of(indexes: Sequence[ContextIndex], column: str | None) -> tuple[Period, ...]:
    """Return the two or more periods to compare: one for each value of a column in one index, or one for each index.

    Values are sorted by `Column.ranks`; lines without a value are left out.
    """
    if column is None:
        names = [index.path.name.removesuffix(".index") for index in indexes]
        if len({*names}) < len(names):
            names = [str(index.path) for index in indexes]
        pairs = zip(names, indexes, strict=True)
        periods = [Period(name, index, np.ones(len(index.line_numbers()), np.bool_)) for name, index in pairs]
    else:
        [index] = indexes
        values = require_column(index.columns, column, "--periods")
        codes = [code for code in np.argsort(values.ranks(), kind="stable").tolist() if values.values[code]]
        periods = [Period(values.values[code], index, values.codes == code) for code in codes]
        periods = [period for period in periods if period.lines.any()]
    if len(periods) < 2:
        raise ElmoZhError(
            _(
                "At least two periods are needed. Use several indexes, or --periods with a column that has several"
                " values. Columns of {path}: {columns}"
            ).format(path=indexes[0].path, columns=first_ten([*indexes[0].columns]))
        )
    return tuple(periods)


def _documents(index: ContextIndex, *, by_lines: bool = False) -> Numbers:
    """Return the document number of each line, int64, shape (L,).

    A document is a file. With `by_lines`, and for lines with columns that are not from file names, it is a raw line.
    """
    numbers = index.line_numbers()
    is_own = np.full(len(numbers), by_lines)
    named = {name for text in index.info["texts"] for name in re.findall(r"{(\w+)}", text.get("from_name", ""))}
    for name, column in index.columns.items():
        if name != "source" and name not in named:
            is_own |= np.array([*map(bool, column.values)], np.bool_)[column.codes]
    keys = index.columns["source"].codes.astype(np.int64) * (numbers.max() + 2) + np.where(is_own, numbers + 1, 0)
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The distances between a word's uses in two periods by several measures, and the test of the selected one."""

    old: str  # name of the earlier period
    new: str  # name of the later one
    old_count: int  # how often the word occurs in the earlier period
    new_count: int  # how often it occurs in the later one
    old_compared: int  # number of distinct sentences compared in the earlier period
    new_compared: int  # number of distinct sentences compared in the later one
    old_documents: int  # number of documents with these sentences in the earlier period
    new_documents: int  # number of documents with these sentences in the later one
    apd: float  # average pairwise cosine distance between old and new occurrences
    old_spread: float  # average pairwise cosine distance among the old occurrences: how varied the uses are
    new_spread: float  # the same among the new occurrences
    excess: float  # apd minus the mean of the spreads; 0 on average if nothing has changed
    prt: float  # cosine distance between the mean old and the mean new unit vector
    jsd: float | None  # Jensen-Shannon divergence of the shares of its usages, in bits; None unless chosen
    by: str  # the measure that the following figures describe
    low: float  # lower end of its 95% interval
    high: float  # upper end
    baseline: float  # its mean over random divisions of the documents: the distance to expect without change
    p: float  # share of random divisions of the documents whose groups are at least as far apart
    q: float = 1.0  # false discovery rate among the words whose p is not larger (Benjamini and Hochberg)

    @property
    def distance(self) -> float:
        """The distance by the selected measure."""
        return float(getattr(self, self.by))

    @property
    def boundary(self) -> str:
        """The names of both periods, such as 2015 → 2020."""
        return f"{self.old} → {self.new}"


@dataclass(frozen=True, kw_only=True)
class WordDrift(Comparison):
    """A word's change over two or more periods: the first is compared with the last, and each with the next."""

    word: str
    steps: tuple[Comparison, ...]  # the comparisons of consecutive periods; a single one for two periods
    # The word with the token that nearly always stands beside it, such as 卢 拉 for 拉; else None
    fragment: str | None = None

    @property
    def change(self) -> str | None:
        """The boundary with the largest distance, or None if there are only two periods or its q is not below 0.05."""
        largest = max(self.steps, key=lambda step: step.distance)
        return largest.boundary if len(self.steps) > 1 and largest.q < LEVEL else None

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons of consecutive periods and, with three or more periods, of the first with the last."""
        return (*self.steps, self) if len(self.steps) > 1 else (self,)


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The words compared between two or more periods, most changed first."""

    # The compared words; those that changed most from the first to the last period come first
    words: tuple[WordDrift, ...] = field(repr=False)
    layer: int  # the layer whose vectors were compared
    by: str  # the measure used for testing and sorting: excess, apd, prt or jsd
    num_shared: int  # number of words that all periods have
    periods: tuple[Period, ...] = field(default=(), compare=False, repr=False)
    # The words left out as fragments, each with the longer string
    fragments: Mapping[str, str] = field(default_factory=dict, repr=False)


def measure_drift(
    *indexes: ContextIndex, words: Collection[str] | None = None, reporter: Reporter | None = None, **options: Any
) -> Drift:
    """Measure how differently each word is used in two or more periods.

        drift = measure_drift(ContextIndex.load("old.index"), ContextIndex.load("new.index"))
        for word in drift.words[:10]:
            print(word.word, word.excess, word.q)

    Args:
        indexes: One index per period, in order, all made with one model; or a single index, if `periods` is given.
        words: The words to compare. Default: all that occur in every period. The choice affects only q and `change`.
        reporter: Receives progress.
        options: The options of the command `drift`: periods, layer, by, min_count, permutations, with_fragments, seed.
            by="jsd" needs scikit-learn.

    Raises:
        ElmoZhError: If the indexes were made in different ways, a layer or column is missing, there is only one
            period, or no word can be compared.
        TypeError: If `words` is not a collection of words, or an option is unknown.
        ValueError: If `by` is not a measure, a number is out of range, there is no index, or `periods` is given with
            several indexes.
    """
    chosen = DriftOptions(**options)
    check_arguments("measure_drift", DriftOptions, **options)
    if not indexes or (chosen.periods is not None and len(indexes) > 1):
        raise ValueError(f"measure_drift: {len(indexes)} indexes; expected several, or one with the column of periods")
    if words is not None:
        words = check_strings(words, "measure_drift", "words")
    layer = require_comparable(indexes, chosen.layer)
    comparing = _Comparing(periods_of(indexes, chosen.periods), layer, chosen)
    shared = sorted(set.intersection(*(set(period.counts) for period in comparing.periods)))
    asked = shared if words is None else sorted(set(words).intersection(shared))
    compared, fragments = [], {}
    with (reporter or SilentReporter()).progress("drift", unit="words", total=len(asked)) as progress:
        for word in asked:
            uses = comparing.uses(word)
            pairs = zip(comparing.periods, uses, strict=False)  # there may be no uses
            wholes = (period.whole_of(word, of_period.numbers) for period, of_period in pairs)
            whole = next(filter(None, wholes), None)
            if whole and not chosen.with_fragments:
                fragments[word] = whole
            elif uses:
                compared.append(replace(comparing.compare(word, uses), fragment=whole))
            progress.update(1)
    if not compared:
        if fragments:
            raise ElmoZhError(describe_fragments(fragments))
        message = _(
            "No word occurs in at least {min_count} different sentences, from at least two documents, in every one of"
            " the periods {names}. Lower --min-count, index more text, or compare longer periods, as with --periods"
            " date:year."
        )
        names = first_ten([period.name for period in comparing.periods])
        raise ElmoZhError(message.format(min_count=chosen.min_count, names=names))
    return Drift(
        words=_ranked(compared), layer=layer, by=chosen.by, num_shared=len(shared), periods=comparing.periods,
        fragments=fragments,
    )  # fmt: skip


def describe_fragments(fragments: Mapping[str, str]) -> str:
    """Return a message that lists the first ten words left out as fragments, and says how to compare them."""
    pairs = first_ten([f"{word} ({whole})" for word, whole in fragments.items()])
    message = _("Left out fragments of longer words: {pairs}. To compare them too, add --with-fragments.")
    return message.format(pairs=pairs)


def require_comparable(indexes: Sequence[ContextIndex], layer: int | None) -> int:
    """Check that indexes are comparable, and return the layer to compare; raise ElmoZhError otherwise."""
    old = indexes[0]
    for new in indexes[1:]:
        if [old.model[name] for name in _SAME] != [new.model[name] for name in _SAME]:
            raise ElmoZhError(
                _(
                    "{path} and {path2} were built with different models, or with a different --precision or"
                    " --unknown, so their vectors cannot be compared. Rebuild one of them with index, using the"
                    " other's --model, --precision and --unknown."
                ).format(path=old.path, path2=new.path)
            )
    shared = sorted(set.intersection(*(set(index.layers) for index in indexes)) - {0})
    best = max(shared, default=max(*old.layers, 1)) if layer is None else layer
    for index in indexes:
        index.vectors(best)  # an error if the index lacks it
    return best


class _Uses(NamedTuple):
    """A word's distinct occurrences in a period: their numbers, unit vectors and documents."""

    numbers: NDArray[np.int64]
    units: Vectors
    documents: NDArray[np.int64]


class _Comparing(NamedTuple):
    periods: tuple[Period, ...]
    layer: int
    options: DriftOptions

    def uses(self, word: str) -> list[_Uses]:
        """Return a word's uses in each period; empty if any period has too few, or has them in only one document."""
        found = []
        for period in self.periods:
            numbers = period.occurrences(word)
            if len(numbers) < self.options.min_count:
                return []
            vectors = period.index.vectors(self.layer)[numbers]
            kept = distinct_rows(vectors)
            uses = _Uses(numbers[kept], unit_rows(vectors[kept]), period.documents_of(numbers[kept]))
            if len(kept) < self.options.min_count or len(np.unique(uses.documents)) < 2:
                return []
            found.append(uses)
        return found

    def compare(self, word: str, uses: Sequence[_Uses]) -> WordDrift:
        """Compare each period with the next, and the first with the last."""
        units = np.concatenate([own.units for own in uses])
        labels = np.zeros(len(units), np.int64)
        if self.options.by == "jsd":
            labels = find_clusters(units, min(_NUM_USAGES, len(units) // 2), self.options.seed).labels
        ends = np.cumsum([len(own.units) for own in uses])[:-1]
        sums = [
            DocumentSums.of(own.units, own.documents, labelled, _NUM_USAGES)
            for own, labelled in zip(uses, np.split(labels, ends), strict=True)
        ]
        generator = np.random.default_rng([self.options.seed, *word.encode()])
        last = len(sums) - 1
        whole = self._compare(word, uses, sums, (0, last), generator)
        pairs = pairwise(range(len(sums))) if last > 1 else ()
        steps = [self._compare(word, uses, sums, pair, generator) for pair in pairs]
        return WordDrift(word=word, steps=tuple(steps or [whole]), **asdict(whole))

    def _compare(
        self,
        word: str,
        uses: Sequence[_Uses],
        sums: Sequence[DocumentSums],
        pair: tuple[int, int],
        generator: np.random.Generator,
    ) -> Comparison:
        groups, by = (sums[pair[0]], sums[pair[1]]), self.options.by
        distances = compare_groups(*groups)
        figures: dict[str, Any] = {name: float(values[0]) for name, values in distances.items()}
        figures["p"], figures["baseline"] = permutation_test(*groups, by, self.options.permutations, generator)
        figures["low"], figures["high"] = bootstrap_interval(*groups, by, generator)
        if by != "jsd":
            figures["jsd"] = None
        for side, number in zip(("old", "new"), pair, strict=True):
            figures[side], figures[f"{side}_count"] = self.periods[number].name, self.periods[number].counts[word]
            figures[f"{side}_compared"] = len(uses[number].units)
            figures[f"{side}_documents"] = len(sums[number])
        return Comparison(**figures, by=by)


def _ranked(words: Sequence[WordDrift]) -> tuple[WordDrift, ...]:
    from scipy.stats import false_discovery_control

    corrected = false_discovery_control([word.p for word in words]).tolist()
    of_steps = iter(false_discovery_control([step.p for word in words for step in word.steps]).tolist())
    complete = [
        replace(word, q=q, steps=tuple(replace(step, q=next(of_steps)) for step in word.steps))
        for word, q in zip(words, corrected, strict=True)
    ]
    return tuple(sorted(complete, key=lambda word: (-word.distance, word.word)))


def moved_lines(old: Period, new: Period, word: str, layer: int, top: int) -> list[list[Neighbour]]:
    """Return the lines from two periods that best show how a word changed, at most `top` distinct ones from each.

    They are the most typical of their own period, by the cosine with its mean vector minus the cosine with the other's.
    The `cosine` of each neighbour is the one with the other period's mean vector.
    """
    numbers = [period.occurrences(word) for period in (old, new)]
    units = [unit_rows(period.index.vectors(layer)[rows]) for period, rows in zip((old, new), numbers, strict=True)]
    directions = unit_rows(np.stack([vectors.mean(axis=0) for vectors in units]))
    lines = []
    for side, period in enumerate((old, new)):
        cosines = units[side] @ directions.T
        order = np.lexsort((numbers[side], cosines[:, 1 - side] - cosines[:, side]))
        best = period.index.neighbours_of(numbers[side][order], cosines[order, 1 - side])
        lines.append(distinct(best, top, by_place=False))
    return lines


def rows(words: Iterable[WordDrift]) -> Iterator[dict[str, Any]]:
    """Yield a table row, as a dictionary, for each comparison of each word."""
    names = [field.name for field in fields(Comparison)]
    for word in words:
        for comparison in word.comparisons():
            figures = ((name, getattr(comparison, name)) for name in names)
            shown = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in figures}
            yield {"word": word.word, **shown, "change": word.change, "fragment": word.fragment}
