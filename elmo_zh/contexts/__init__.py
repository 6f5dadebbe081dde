"""Words in context: scores of lines and tokens, and indexes of occurrences with the analyses that use them.

This module defines most options of the commands on words in context; Python functions share many of their names,
defaults and limits.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.choices import RANKINGS
from elmo_zh.config.declare import declare

_FILE = {"exists": True, "dir_okay": False}


SCORE_FORMATS = ("tsv", "jsonl")


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """The options of `score`: how to split lines, the form of the rows, which lines to keep, and what to compare."""

    split_sentences: bool = declare(
        False,
        "Split lines into sentences as in training.",
    )
    by: str = declare(
        "line", "Write one row per line, or one row per token with the token's surprisal.", choices=("line", "token")
    )
    kind: str | None = declare(
        None,
        "Output format: a table with a header (tsv) or JSON lines (jsonl). Default: the format given by the suffix"
        " of --output, otherwise tsv.",
        choices=SCORE_FORMATS,
        names=("--format",),
    )
    keep_below: float | None = declare(
        None,
        "Instead of scores, write the lines with fewer bits per character than this; with --against, write the"
        " lines whose difference is below this value.",
        metavar="BITS",
    )
    keep_share: float | None = declare(
        None,
        "Instead of scores, write this fraction of the lines: the lines with the fewest bits per character; with"
        " --against, the lines with the lowest difference.",
        least=0,
        most=1,
        metavar="FRACTION",
    )
    pairs: str | None = declare(
        None,
        "Compare the two sentences of each record: specify the names of their columns (or numbers, if there is no"
        " header). Show the share of pairs whose first sentence is more probable, in total and for each value of the"
        " optional column KIND.",
        metavar="FIRST,SECOND[,KIND]",
    )
    against: Path | None = declare(
        None,
        "Also score with this model; add a column with the difference in bits per character (--model minus this"
        " model).",
        metavar="BUNDLE",
    )


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """The options of `index` that decide what an index contains."""

    split_sentences: bool = declare(False, "Split lines into sentences as in training.")
    layers: str = declare(
        "all",
        "Layers whose vectors are stored: all, top (the highest layer), or layer numbers, counting from 0.",
        metavar="all|top|N,...",
    )
    min_count: int = declare(2, "Leave out words that occur less often than this.", least=1)
    max_per_word: int = declare(
        1000, "Keep at most this many occurrences of a word, chosen at random; 0 keeps all.", least=0
    )
    words: Path | None = declare(
        None,
        "Index only the words in this file (one per line), however rare. Default: all words that reach --min-count,"
        " except punctuation.",
        metavar="FILE",
        path=_FILE,
    )
    from_name: str | None = declare(
        None,
        "File name pattern, such as '{year}_{author}.txt'; parts in braces become columns.",
        metavar="PATTERN",
    )
    # Seeds are hashed as eight bytes.
    seed: int = declare(1, "Random seed.", least=0, most=2**63 - 1)


@dataclass(frozen=True, kw_only=True)
class SubstituteOptions:
    """The options of `substitutes`: the word to replace, how to rank its substitutes, and which to show."""

    word: str = declare(..., "Find substitutes for this word, wherever it occurs.", metavar="WORD")
    ranking: str = declare(
        "pattern",
        "Rank substitutes by how well they can be coordinated with the word, as in WORD 和 _ (pattern), or by how"
        " well they fit in its place when the model does not see the word (slot).",
        choices=RANKINGS,
    )
    top: int = declare(20, "Maximum number of substitutes to show.", least=1)
    with_punctuation: bool = declare(False, "Show punctuation too. Default: only if the word is itself punctuation.")


@dataclass(frozen=True, kw_only=True)
class SenseOptions:
    """The options of `senses`: how to cluster occurrences into usages, and what to show."""

    layer: int | None = declare(
        None, "Layer whose vectors are compared. Default: the lowest layer above 0 in the index.", least=0
    )
    num_usages: int | None = declare(
        None, "Number of usages. Default: chosen from the data, possibly 1.", least=1, names=("--usages",), metavar="K"
    )
    by: str | None = declare(
        None, "Also show each usage's share for every value of this column (year, for example).", metavar="COLUMN"
    )
    top: int = declare(10, "Maximum number of characteristic words to show for each usage.", least=1)
    seed: int = declare(1, "Random seed.", least=0, most=2**32 - 1)


@dataclass(frozen=True, kw_only=True)
class DriftOptions:
    """The options of `drift` that decide what is compared, and how it is measured and tested."""

    periods: str | None = declare(
        None,
        "Column whose values are the periods to compare, such as year, if there is only one index. For a column of"
        " dates, add :year or :month to its name, as in date:year.",
        metavar="COLUMN",
    )
    layer: int | None = declare(
        None, "Layer whose vectors are compared. Default: the highest layer that all indexes contain.", least=1
    )
    by: str = declare(
        "excess",
        "Measure used to test and sort the words: the average pairwise distance between the periods (apd), apd"
        " minus the average distance within the periods (excess), the distance between the mean vectors (prt), or"
        " the Jensen-Shannon divergence of usages (jsd).",
        choices=("excess", "apd", "prt", "jsd"),
    )
    min_count: int = declare(
        10,
        "Compare only words that occur in at least this many different sentences, from at least two documents, in"
        " every period.",
        least=2,
    )
    permutations: int = declare(
        10000,
        "Maximum number of permutations per word; the smallest possible p-value is about 1 divided by this number.",
        least=1,
    )
    with_fragments: bool = declare(
        False,
        "Also compare likely fragments: words that stand next to the same word in at least 80% of their occurrences.",
    )
    seed: int = declare(1, "Random seed.", least=0, most=2**63 - 1)


@dataclass(frozen=True, kw_only=True)
class DriftShown(DriftOptions):
    """The options of `drift`: what is compared and how, which words to use, and what to show."""

    words: Path | None = declare(
        None,
        "Use only the words in this file (one per line). Default: all words that reach --min-count.",
        metavar="FILE",
        path=_FILE,
    )
    top: int = declare(10, "Maximum number of words to show.", least=1)
    lines: int = declare(
        3, "Show at most this many lines for each word from the first period, and as many from the last.", least=0
    )


@dataclass(frozen=True, kw_only=True)
class PageChoice:
    """The options of `explore` that decide what its page shows."""

    words: tuple[str, ...] = declare(
        (), "Show this word of the index; repeat the option for more words.", names=("--word",), metavar="WORD"
    )
    num_words: int = declare(
        20,
        "Number of words to show if --word is not given: those with the clearest usages, chosen from the frequent"
        " words that have labels or, without labels, from the frequent content words.",
        least=1,
    )
    max_per_word: int = declare(100, "Show at most this many occurrences of a word, chosen at random.", least=1)
    labels: Path | None = declare(
        None,
        "TSV file with labels to colour occurrences by: the columns file, line, start and word, and one column for"
        " each kind of label. Default for the sample text: the senses that come with it.",
        metavar="FILE",
        path=_FILE,
    )
    seed: int = declare(1, "Random seed.", least=0, most=2**32 - 1)
