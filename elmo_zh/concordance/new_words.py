"""Candidates for new words in a corpus: character strings that stick together and occur in varied contexts.

The measures are pointwise mutual information of the two parts (Church and Hanks 1990), and branching entropy (Jin and
Tanaka-Ishii 2006), where each border of a run of Han characters is a distinct neighbour (Feng et al. 2004).
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import log2
from pathlib import Path

from elmo_zh.concordance import NewWordOptions
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import InputText
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.text.han import HAN_RUN
from elmo_zh.text.normalise import build_normaliser, split_segmented
from elmo_zh.text.segmenters.registry import build_segmenter
from elmo_zh.vocabulary.vocabulary import BoundedCounts

LENGTHS = (2, 3, 4)
# Maximum number of distinct strings to count; beyond it, the rarest are dropped.
MOST_STRINGS = 3_000_000
# Neighbours are counted for this many of the most frequent candidates.
MOST_CANDIDATES = 50_000


@dataclass(frozen=True, kw_only=True)
class NewWord:
    """A string that may be a new word, with the measures that suggest it."""

    word: str
    count: int
    pmi: float  # pointwise mutual information of its two parts in bits, split where this is lowest
    entropy: float  # entropy of the neighbouring characters in bits, on the side where this is lower


def iter_runs(texts: Iterable[InputText], config: TextConfig | None, reporter: Reporter) -> Iterator[str]:
    """Yield the runs of Han characters in texts: normalised, or of segmented ones (no config) across tokens."""
    normalise = build_normaliser(config) if config else (lambda line: "".join(line.split()))
    with reporter.progress("lines", unit="lines") as progress:
        for text in texts:
            for line in text.lines_if_text(reporter):
                yield from HAN_RUN.findall(normalise(line))
                progress.update(1)


def word_finder(config: TextConfig, user_dictionary: Path | None) -> Callable[[str], bool]:
    """Return a function that tests whether a word is in the segmenter's dictionary or in the user's."""
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

    `runs` returns the runs of Han characters of a corpus; it is called twice, with the reporter and silently.
    """
    counts = count_strings(runs(reporter), limits.min_count)
    frequent = (text for text, count in counts.most_common() if len(text) > 1 and count >= limits.min_count)
    total = sum(count for text, count in counts.items() if len(text) == 1)
    scores = {text: score for text in frequent if (score := split_information(text, counts, total)) >= limits.min_pmi}
    chosen = dict([(text, score) for text, score in scores.items() if not is_known(text)][:MOST_CANDIDATES])
    entropies = branching_entropies(runs(SilentReporter()), chosen)
    found = [
        NewWord(word=text, count=counts[text], pmi=score, entropy=entropies[text])
        for text, score in chosen.items()
        if entropies[text] >= limits.min_entropy
    ]
    return sorted(found, key=lambda each: (-each.pmi - each.entropy, each.word))


def count_strings(runs: Iterable[str], least: int) -> Counter[str]:
    """Count each character, and each string of a candidate's length; beyond MOST_STRINGS, drop the rarest."""
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
    """Return the entropy of neighbours in bits; each line boundary, given as "", counts as a distinct neighbour."""
    total = sum(neighbours.values())
    counts = [*[1] * neighbours.get("", 0), *(count for text, count in neighbours.items() if text)]
    return -sum(count / total * log2(count / total) for count in counts)
