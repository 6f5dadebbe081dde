"""Counts of words: frequencies, dispersion, collocates and keywords, by published formulas; candidates for new words.

Log-likelihood is G2 of the 2x2 table (Dunning 1993, "Accurate Methods for the Statistics of Surprise and Coincidence");
windows are counted as in Evert 2008, "Corpora and collocations"; logDice follows Rychlý 2008; DP follows Gries 2008,
"Dispersions and adjusted frequencies in corpora", normalised as in Lijffijt and Gries 2012; log ratio follows Hardie
2014, with 0.5 in place of a count of zero.

New words are strings that stick together, by the pointwise mutual information of their two parts (Church and Hanks
1990), and occur in varied contexts, by branching entropy (Jin and Tanaka-Ishii 2006), where each end of a run of Han
characters is a distinct neighbour (Feng et al. 2004).
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.concordance import NewWordOptions
from elmo_zh.concordance.kwic import Concordance
from elmo_zh.concordance.query import TokenTable
from elmo_zh.config import TextConfig
from elmo_zh.contexts.index_files import Column
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.errors import ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.text.normalise import build_normaliser, split_segmented
from elmo_zh.text.script import HAN_RUN
from elmo_zh.text.segmenters import build_segmenter
from elmo_zh.vocabulary.vocabulary import BoundedCounts, is_word

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
LENGTHS = (2, 3, 4)
# Maximum number of distinct strings to count; beyond it, the rarest are dropped.
MOST_STRINGS = 3_000_000
# Neighbours are counted for this many of the most frequent candidates.
MOST_CANDIDATES = 50_000


@dataclass(frozen=True)
class Frequency:
    """The frequency of a word or phrase in one part of the texts, or in all of them."""

    name: str
    part: str  # the value of the column that divides the texts; `all` for all parts together
    count: int
    per_million: float  # occurrences per million tokens of the part
    # DP from 0 (spread over the parts like the tokens) to 1 (all in the smallest part); None for a part, or if there is
    # only one part
    dispersion: float | None = None


def frequencies(
    name: str, table: TokenTable, wanted: NDArray[np.bool_], lines: Counts, column: Column, *, by_part: bool
) -> list[Frequency]:
    """Return the frequency of a word in all wanted lines and then, if `by_part`, for each value of the column.

    `lines` has the line number of each occurrence. Values whose wanted lines have no tokens are left out.
    """
    tokens = np.diff(table.ends, prepend=0) * wanted
    sizes = np.bincount(column.codes, tokens, minlength=len(column.values)).astype(np.int64)
    counts = np.bincount(column.codes[lines], minlength=len(sizes))
    total, number = _per_million(len(lines), int(sizes.sum())), len(lines)
    rows = [Frequency(name, "all", number, total, dispersion(counts, sizes))]
    for part in np.argsort(column.ranks(), kind="stable").tolist() if by_part else ():
        if sizes[part]:
            count = int(counts[part])
            rows.append(Frequency(name, column.values[part], count, _per_million(count, int(sizes[part]))))
    return rows


def most_frequent(table: TokenTable, wanted: NDArray[np.bool_], column: Column) -> list[Frequency]:
    """Return the frequency of each word in the selected lines, most frequent first, without punctuation."""
    is_inside = np.repeat(wanted, np.diff(table.ends, prepend=0))
    words = table.words[is_inside]
    parts = np.repeat(column.codes, np.diff(table.ends, prepend=0))[is_inside]
    sizes = np.bincount(parts, minlength=len(column.values))
    counts = np.bincount(words, minlength=len(table.spellings))
    by_word = np.argsort(words, kind="stable")
    ends = np.cumsum(counts)
    found = []
    for number in np.lexsort((np.arange(len(counts)), -counts)).tolist():
        if counts[number] and is_word(table.spellings[number]):
            parts_of_word = parts[by_word[ends[number] - counts[number] : ends[number]]]
            spread = dispersion(np.bincount(parts_of_word, minlength=len(sizes)), sizes)
            count = int(counts[number])
            found.append(Frequency(table.spellings[number], "all", count, _per_million(count, len(words)), spread))
    return found


def _per_million(count: int, size: int) -> float:
    return count / size * 1e6 if size else 0.0


def dispersion(counts: Counts, sizes: Counts) -> float | None:
    """Return Gries' normalised DP of a word over parts; None if it does not occur, or if only one part has tokens.

    >>> round(dispersion(np.array([1, 2, 3, 0]), np.array([10, 20, 30, 40])), 6)
    0.444444
    """
    kept = sizes > 0
    counts, sizes = counts[kept], sizes[kept]
    if len(sizes) < 2 or counts.sum() == 0:
        return None
    expected = sizes / sizes.sum()
    deviation = np.abs(counts / counts.sum() - expected).sum() / 2
    return float(deviation / (1 - expected.min()))


def log_likelihood(observed: Floats, first: Floats, second: Floats, total: Floats | float) -> Floats:
    """Return the G2 of n 2x2 tables, negative where `observed` is below its expected value, float64, shape (n,).

    `observed` is one cell of each table, `first` and `second` are the sums of its row and its column, and `total` is
    the sum of all cells.
    """
    from scipy.special import rel_entr

    rows = np.stack([first, total - first])[:, None]
    columns = np.stack([second, total - second])[None]
    expected = rows * columns / total
    rest = first - observed, second - observed, total - first - second + observed
    found = np.stack([np.stack([observed, rest[0]]), np.stack([rest[1], rest[2]])])
    likelihood = 2 * rel_entr(found, expected).sum(axis=(0, 1)).clip(0)
    return np.asarray(np.copysign(likelihood, observed - expected[0, 0]))


@dataclass(frozen=True)
class Collocate:
    """A word near the matches of a query, with measures of association."""

    word: str
    together: int  # number of its tokens within the window of a match; a token in two windows counts once
    count: int  # its number of tokens in total
    expected: float  # the value of `together` expected by chance
    log_likelihood: float  # G2; negative if the word and the matches avoid each other
    log_dice: float  # 14 plus the binary logarithm of Dice's coefficient; at most 14


def collocates(found: Concordance, window: tuple[int, int], *, least: int = 1) -> list[Collocate]:
    """Return the words that occur at least `least` times in the windows around the matches, by descending G2.

    A window is a number of tokens to the left and to the right, on the same line. Punctuation is left out.
    """
    table = found.table
    inside = window_tokens(found, window)
    nodes = np.unique(np.concatenate([np.empty(0, np.int64), *map(np.arange, found.first, found.end)]))
    size = len(table.spellings)
    together = np.bincount(table.words[inside], minlength=size)
    counts = np.bincount(table.words, minlength=size)
    # Tokens of a match cannot be its collocates.
    possible = counts - np.bincount(table.words[nodes], minlength=size)
    kept = np.flatnonzero(together >= max(1, least))
    kept = kept[[is_word(table.spellings[number]) for number in kept.tolist()]]
    total = float(len(table.words) - len(nodes))
    observed, second = together[kept].astype(float), possible[kept].astype(float)
    first = np.full(len(kept), float(len(inside)))
    likelihood = log_likelihood(observed, first, second, total)
    dice = np.minimum(14 + np.log2(2 * observed / (len(found) + counts[kept])), 14)
    words = [table.spellings[number] for number in kept.tolist()]
    columns = (words, together[kept], counts[kept], first * second / total, likelihood, dice)
    return [Collocate(*row) for row in _rows(columns, np.lexsort((kept, -likelihood)))]


def _rows(columns: Iterable[Sequence[Any] | NDArray[Any]], order: Counts) -> list[tuple[Any, ...]]:
    """Turn columns into rows in the given order, with Python numbers instead of NumPy numbers."""
    return [*zip(*(np.array(column, object)[order].tolist() for column in columns), strict=True)]


def window_tokens(found: Concordance, window: tuple[int, int]) -> Counts:
    """Return the distinct token numbers in the windows of matches, excluding the matches, ascending, int64."""
    lines = found.lines
    starts = np.maximum(found.first - window[0], found.table.first_tokens(lines))
    ends = np.minimum(found.end + window[1], found.table.ends[lines])
    around = [np.empty(0, np.int64), *map(np.arange, starts, ends)]
    own = [np.empty(0, np.int64), *map(np.arange, found.first, found.end)]
    return np.setdiff1d(np.concatenate(around), np.concatenate(own))


@dataclass(frozen=True)
class Keyword:
    """A word's frequencies in two sets of lines, with measures of how much they differ."""

    word: str
    count: int  # how often it occurs in the first set
    other_count: int  # how often it occurs in the other set
    per_million: float  # `count` per million tokens
    other_per_million: float  # `other_count` per million tokens
    log_ratio: float  # binary logarithm of the ratio of the two frequencies; 1 means twice as frequent
    log_likelihood: float  # G2; negative if the word is rarer in the first set
    p: float  # its p-value, chi-squared with one degree of freedom
    q: float  # false discovery rate among all compared words (Benjamini and Hochberg)


def compare_words(
    first: tuple[TokenTable, NDArray[np.bool_]], second: tuple[TokenTable, NDArray[np.bool_]], *, least: int = 5
) -> list[Keyword]:
    """Compare the words in two sets of lines, each a table and a mask of its lines; return them by descending G2.

    Punctuation and words that occur fewer than `least` times in both sets together are left out.
    Raise ElmoZhError if a set has no tokens.
    """
    from scipy.stats import chi2, false_discovery_control

    (one, one_size), (other, other_size) = _counts_by_word(*first), _counts_by_word(*second)
    if not (one_size and other_size):
        raise ElmoZhError(
            _("One of the two sets of lines contains no tokens to compare. Change the files or conditions.")
        )
    words = sorted(word for word in one.keys() | other.keys() if is_word(word) and one[word] + other[word] >= least)
    counts, others = (np.array([of_word[word] for word in words], np.int64) for of_word in (one, other))
    total, sizes = float(one_size + other_size), np.full(len(words), float(one_size))
    likelihood = log_likelihood(counts.astype(float), sizes, (counts + others).astype(float), total)
    p = chi2.sf(np.abs(likelihood), 1)
    q = false_discovery_control(p) if len(p) else p
    ratio = np.log2(np.maximum(counts, 0.5) / one_size) - np.log2(np.maximum(others, 0.5) / other_size)
    # In a small set, half an occurrence may be more frequent than the word is in the other set.
    ratio = np.where(counts == 0, np.minimum(ratio, 0), np.where(others == 0, np.maximum(ratio, 0), ratio))
    rates = counts / one_size * 1e6, others / other_size * 1e6
    columns = (words, counts, others, *rates, ratio, likelihood, p, q)
    return [Keyword(*row) for row in _rows(columns, np.argsort(-likelihood, kind="stable"))]


def _counts_by_word(table: TokenTable, wanted: NDArray[np.bool_]) -> tuple[Counter[str], int]:
    is_inside = np.repeat(wanted, np.diff(table.ends, prepend=0))
    counts = np.bincount(table.words[is_inside], minlength=len(table.spellings)).tolist()
    return Counter({word: count for word, count in zip(table.spellings, counts, strict=True) if count}), int(
        is_inside.sum()
    )


@dataclass(frozen=True)
class NewWord:
    """A string that may be a new word, with the measures that suggest it."""

    word: str
    count: int
    pmi: float  # pointwise mutual information of its two parts in bits, split where this is lowest
    entropy: float  # entropy of the neighbouring characters in bits, on the side where this is lower


def iter_runs(texts: Iterable[InputText], config: TextConfig | None, reporter: Reporter) -> Iterator[str]:
    """Yield the runs of Han characters in texts, which are normalised by `config`.

    Without a `config`, the texts must be segmented already, and only their spaces are removed.
    """
    normalise = build_normaliser(config) if config else (lambda line: "".join(line.split()))
    with reporter.progress("lines", unit="lines") as progress:
        for text in texts:
            for line in text.lines_if_text(reporter):
                yield from HAN_RUN.findall(normalise(line))
                progress.update(1)


def word_finder(config: TextConfig, user_dictionary: Path | None) -> Callable[[str], bool]:
    """Return a function that tests whether the segmenter, without a hidden Markov model, keeps a word whole."""
    # With its hidden Markov model, jieba would also accept strings that are in no dictionary.
    segment = build_segmenter(replace(config, jieba_hmm=False), user_dictionary)
    return lambda word: segment(word) == [word]


def token_finder(texts: Iterable[InputText]) -> Callable[[str], bool]:
    """Return a function that tests whether a word is a token of segmented texts."""
    lines = (line for text in texts for line in text.lines_if_text(SilentReporter()))
    return {token for line in lines for token in split_segmented(line)}.__contains__


def find_new_words(
    runs: Callable[[Reporter], Iterable[str]],
    is_known: Callable[[str], bool],
    limits: NewWordOptions,
    reporter: Reporter,
) -> list[NewWord]:
    """Return candidates for new words that `is_known` does not accept, by descending sum of PMI and entropy.

    `runs` returns the runs of Han characters of a corpus; it is called twice, the second time with a silent reporter.
    """
    counts = count_strings(runs(reporter), limits.min_count)
    frequent = (text for text, count in counts.most_common() if len(text) > 1 and count >= limits.min_count)
    total = sum(count for text, count in counts.items() if len(text) == 1)
    scores = {text: score for text in frequent if (score := split_information(text, counts, total)) >= limits.min_pmi}
    chosen = dict([(text, score) for text, score in scores.items() if not is_known(text)][:MOST_CANDIDATES])
    entropies = branching_entropies(runs(SilentReporter()), chosen)
    words = [NewWord(text, counts[text], score, entropies[text]) for text, score in chosen.items()]
    kept = (word for word in words if word.entropy >= limits.min_entropy)
    return sorted(kept, key=lambda word: (-word.pmi - word.entropy, word.word))


def count_strings(runs: Iterable[str], least: int) -> Counter[str]:
    """Count all characters, and the strings of the lengths in LENGTHS that occur at least `least` times.

    If there are more than MOST_STRINGS distinct strings, rare ones are dropped.
    """
    characters, strings = Counter[str](), BoundedCounts[str](MOST_STRINGS)
    for run in runs:
        characters.update(run)
        for length in LENGTHS:
            strings.add(_strings(run, length))
    return characters + Counter({text: count for text, count in strings.counts.items() if count >= least})


def _strings(run: str, length: int) -> list[str]:
    return [run[start : start + length] for start in range(len(run) - length + 1)]


def split_information(text: str, counts: Mapping[str, int], total: int) -> float:
    """Return the pointwise mutual information of a string's two parts, in bits, at the split where it is lowest.

    >>> split_information("ab", {"a": 4, "b": 2, "ab": 2}, total=8)
    1.0
    """
    parts = ((text[:place], text[place:]) for place in range(1, len(text)))
    # A part may have been dropped; it occurs at least as often as the whole.
    products = (
        max(counts.get(left, 0), counts[text]) * max(counts.get(right, 0), counts[text]) for left, right in parts
    )
    return log2(counts[text] * total / max(products))


def branching_entropies(runs: Iterable[str], chosen: Container[str]) -> dict[str, float]:
    """Return the entropy of each selected string's neighbours, in bits, on the side where it is lower."""
    beside: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for run in runs:
        strings = ((start, text) for length in LENGTHS for start, text in enumerate(_strings(run, length)))
        for start, text in (each for each in strings if each[1] in chosen):
            before, after = beside.setdefault(text, (Counter(), Counter()))
            end = start + len(text)
            before[run[start - 1] if start else ""] += 1
            after[run[end] if end < len(run) else ""] += 1
    return {text: min(map(_entropy, sides)) for text, sides in beside.items()}


def _entropy(neighbours: Mapping[str, int]) -> float:
    """Return the entropy of neighbours in bits; each end of a run, given as "", counts as a distinct neighbour."""
    total = sum(neighbours.values())
    counts = [*[1] * neighbours.get("", 0), *(count for text, count in neighbours.items() if text)]
    return -sum(count / total * log2(count / total) for count in counts)
