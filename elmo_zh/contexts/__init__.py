"""Words in context: scores of lines and tokens, and indexes of occurrences with the analyses that use them.

This module defines the options of the commands; Python functions take the same names, defaults and limits.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.choices import RANKINGS
from elmo_zh.config.fields import option

_FILE = {"exists": True, "dir_okay": False}
_NEW_FILE = {"dir_okay": False}


SCORE_FORMATS = ("tsv", "jsonl")


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """The options of `score`: how to split lines, the form of the rows, and which lines to keep."""

    split_sentences: bool = option(False)
    """Split lines into sentences as in training; the cost of a line is then the sum of the costs of its sentences."""
    by: str = option("line", choices=("line", "token"))
    """Write one row per line, or one row per token with the token's surprisal."""
    kind: str | None = option(None, choices=SCORE_FORMATS, names=("--format",))
    """Output format: a table with a header (tsv) or JSON lines (jsonl). Default: the format given by the suffix of
    --output, otherwise tsv."""
    keep_below: float | None = option(None, metavar="BITS")
    """Instead of scores, write the lines with fewer bits per character than this; with --against, write the lines whose
    difference is below this value."""
    keep_share: float | None = option(None, least=0, most=1, metavar="FRACTION")
    """Instead of scores, write this fraction of the lines: the lines with the fewest bits per character; with
    --against, the lines with the lowest difference."""
    pairs: str | None = option(None, metavar="FIRST,SECOND[,KIND]")
    """Compare the two sentences of each record: give the names of their columns (or numbers, if there is no header).
    For each value of the optional column KIND, show the share of pairs whose first sentence is more probable."""
    against: Path | None = option(None, metavar="BUNDLE")
    """Also score with this model; add a column with the difference in bits per character (--model minus this model)."""


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """The options of `index` that decide what an index contains."""

    split_sentences: bool = option(False)
    """Split lines into sentences as in training, and store each sentence as a line of the index."""
    layers: str = option("all", metavar="all|top|N,...")
    """Layers whose vectors are stored: all, top (the highest layer), or layer numbers, counting from 0."""
    min_count: int = option(2, least=1)
    """Index only words that occur at least this many times; this has no effect with --words."""
    max_per_word: int = option(1000, least=0)
    """Keep at most this many occurrences of a word, chosen at random; 0 keeps all."""
    words: Path | None = option(None, metavar="FILE", path=_FILE)
    """Index only the words in this file (one per line). Default: all words that reach --min-count (no punctuation)."""
    from_name: str | None = option(None, metavar="PATTERN")
    """Pattern that all file names must match, such as '{year}_{author}.txt'; the parts in braces become columns of the
    index, in addition to the columns of CSV and JSON lines."""
    # Seeds are hashed as eight bytes.
    seed: int = option(1, least=0, most=2**63 - 1)
    """Random seed for choosing occurrences (see --max-per-word)."""


@dataclass(frozen=True, kw_only=True)
class SubstituteOptions:
    """The options of `substitutes`: the token to replace, and how to rank the words for its place."""

    word: str | None = option(None, metavar="WORD")
    """Find substitutes for this word, wherever it occurs."""
    position: int | None = option(None, least=0, metavar="N")
    """Find substitutes for the token at this position, counting from 0; use this instead of --word."""
    file: str | None = option(None, metavar="FILE")
    """Find substitutes for the word in each line of this file that contains the word; use this instead of TEXT."""
    ranking: str = option("pattern", choices=RANKINGS)
    """Rank substitutes by how well they can be coordinated with the word, as in WORD 和 _ (pattern), or by how well
    they fit in its place when the model does not see the word (slot)."""
    top: int = option(20, least=1)
    """Number of substitutes to show."""
    without_word: bool = option(False)
    """With --ranking slot, leave out the word itself and its rank."""
    with_punctuation: bool = option(False)
    """Show punctuation too. Default: only if the word is itself punctuation."""


@dataclass(frozen=True, kw_only=True)
class SenseOptions:
    """The options of `senses`: how to cluster occurrences into usages, and what to show or write."""

    layer: int | None = option(None, least=0)
    """Layer whose vectors are compared. Default: the lowest layer above 0 in the index."""
    num_usages: int | None = option(None, least=1, names=("--usages",), metavar="K")
    """Number of usages. Default: chosen from the data, possibly 1."""
    by: str | None = option(None, metavar="COLUMN")
    """Also show each usage's share for every value of this column (year, for example)."""
    top: int = option(10, least=1)
    """Maximum number of characteristic words, and of substitutes, to show for each usage."""
    no_substitutes: bool = option(False)
    """Do not show substitutes, so that no model is needed."""
    output: Path | None = option(None, metavar="FILE", path=_NEW_FILE)
    """Write every occurrence with its usage to this TSV file."""
    picture: Path | None = option(None, metavar="FILE", path=_NEW_FILE)
    """Write a map of the occurrences, coloured by usage, to this PNG file."""
    seed: int = option(1, least=0, most=2**32 - 1)
    """Random seed for k-means."""


@dataclass(frozen=True, kw_only=True)
class DriftOptions:
    """The options of `drift`: the periods and words to compare, the measure, and the output."""

    periods: str | None = option(None, metavar="COLUMN")
    """Column whose values are the periods to compare (year, for example), if there is only one index."""
    layer: int | None = option(None, least=0)
    """Layer whose vectors are compared. Default: the highest layer that all indexes contain."""
    by: str = option("excess", choices=("excess", "apd", "prt", "jsd"))
    """Measure used to test and sort the words: the average pairwise distance between the periods (apd), apd minus
    the average distance within the periods (excess), the distance between the mean vectors (prt), or the Jensen-Shannon
    divergence of usages (jsd)."""
    min_count: int = option(10, least=2)
    """Compare only words that occur in at least this many different sentences, from at least two documents, in every
    period."""
    words: Path | None = option(None, metavar="FILE", path=_FILE)
    """Compare only the words in this file (one per line)."""
    permutations: int = option(10000, least=1)
    """Maximum number of permutations per word; the smallest possible p-value is about 1 divided by this number."""
    with_fragments: bool = option(False)
    """Also compare likely fragments: words that stand next to the same word in at least 80% of their occurrences."""
    seed: int = option(1, least=0, most=2**63 - 1)
    """Random seed for tests, intervals and clusters."""
    top: int = option(10, least=1)
    """Maximum number of words to show."""
    lines: int = option(3, least=0)
    """Maximum number of lines to show for each word from each of the first and last periods."""
    output: Path | None = option(None, metavar="FILE")
    """Write all compared words to this TSV file."""
    picture: Path | None = option(None, metavar="FILE", path=_NEW_FILE)
    """Write a plot of the distances between the periods, for the words shown, to this PNG file."""


@dataclass(frozen=True, kw_only=True)
class PageChoice:
    """The options of `explore` that decide which words and occurrences its page shows."""

    words: tuple[str, ...] = option((), names=("--word",), metavar="WORD")
    """Show this word of the index; repeat the option for more words."""
    word_list: Path | None = option(None, names=("--words",), metavar="FILE", path=_FILE)
    """Show the words in this file (one per line)."""
    num_words: int = option(20, least=1)
    """Number of words to show if neither --word nor --words is given: words whose usages differ most, chosen from the
    frequent words that have labels or, without labels, from the frequent content words."""
    max_per_word: int = option(100, least=1)
    """Show at most this many occurrences of a word, chosen at random."""
    labels: Path | None = option(None, metavar="FILE", path=_FILE)
    """TSV file with labels to colour occurrences by: at least one of the columns file, line and word, and one column
    for each kind of label. Default for the sample text: data/senses.tsv."""
    seed: int = option(1, least=0, most=2**32 - 1)
    """Random seed for choosing occurrences, k-means and t-SNE."""
