"""Tools for corpus linguistics: concordances, frequencies, collocates, keywords and candidates for new words.

This module defines most options of their commands.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config.declare import declare


@dataclass(frozen=True, kw_only=True)
class TextChoice:
    """Options that decide which texts and lines to read, and whether to find words in both scripts."""

    index: Path | None = declare(
        None, "Read this index, whose lines are already segmented, instead of files.", metavar="INDEX"
    )
    from_name: str | None = declare(
        None,
        "File name pattern, such as '{year}_{author}.txt'; parts in braces become columns.",
        metavar="PATTERN",
    )
    where: str | None = declare(
        None,
        "Keep only lines whose columns meet this condition, such as 'year >= 2020 and source ~ news'.",
        metavar="CONDITION",
    )
    fold_script: bool = declare(
        False, "Also find words written in the other script: traditional or simplified characters."
    )


@dataclass(frozen=True, kw_only=True)
class ConcordanceOptions:
    """The options of `concordance` that select, sort and write its lines."""

    containing: str | None = declare(None, "Keep only lines with a match for this regular expression.", metavar="REGEX")
    usage: int | None = declare(
        None,
        "Keep only lines with this usage of the word; usages are numbered from 1, as senses prints them. Needs an"
        " index.",
        least=1,
        metavar="N",
    )
    sort: str | None = declare(
        None,
        "Sort by these keys, in order of priority: 1L to 9L and 1R to 9R (tokens to the left and right), node (the"
        " match itself), source or another column. A - before a key reverses its order. Default: the order of the"
        " texts.",
        metavar="KEY,...",
    )
    like: int | None = declare(
        None,
        "Sort by meaning (after any keys of --sort): the lines most similar to the line with this number come first."
        " Needs an index.",
        least=1,
        metavar="NUMBER",
    )
    layer: int | None = declare(
        None, "Layer whose vectors are compared. Default: the lowest layer above 0 in the index.", least=0
    )
    sample: int | None = declare(None, "Keep only a random sample of this many lines.", least=1, metavar="N")
    seed: int = declare(1, "Random seed.", least=0, most=2**32 - 1)
    top: int = declare(50, "Maximum number of lines to print; 0 prints all. --output always writes all.", least=0)


@dataclass(frozen=True, kw_only=True)
class CountOptions:
    """Options shared by all commands that produce tables of counts."""

    top: int = declare(20, "Maximum number of lines to print; 0 prints all. --output always writes all.", least=0)


@dataclass(frozen=True, kw_only=True)
class CollocateOptions:
    """The options of `collocates`: what counts as near a word, and how its neighbours are chosen and sorted."""

    window: tuple[int, int] = declare(
        (5, 5),
        "Number of tokens to the left and to the right that count as near.",
        least=0,
        most=1000,
        nargs=2,
        metavar="LEFT RIGHT",
    )
    min_count: int = declare(3, "Leave out words that occur near the word less often than this.", least=1)
    by: str = declare("log-likelihood", "Measure to sort the words by.", choices=("log-likelihood", "log-dice"))
    usages: bool = declare(
        False, "List the collocates of each usage of the word separately, up to --top for each. Needs --index."
    )


@dataclass(frozen=True, kw_only=True)
class NewWordOptions:
    """The options of `words`: the minimum values that make a string a candidate."""

    min_count: int = declare(5, "Leave out words that occur less often than this.", least=2)
    min_pmi: float = declare(
        4.0, "Leave out strings whose parts have less mutual information than this, in bits.", metavar="BITS"
    )
    min_entropy: float = declare(
        1.5,
        "Leave out strings whose neighbouring characters have less entropy than this, in bits.",
        least=0,
        metavar="BITS",
    )
