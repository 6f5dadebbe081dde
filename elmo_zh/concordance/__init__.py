"""Tools for corpus linguistics: concordances, frequencies, collocates and keywords of an index or of any text.

This module defines the options of the commands.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config.fields import option


@dataclass(frozen=True, kw_only=True)
class TextChoice:
    """Options that select texts, and lines within them."""

    index: Path | None = option(
        None,
        "Read this index instead of files; its lines are segmented already. Default without files: the index that"
        " explore has made.",
        metavar="INDEX",
    )
    from_name: str | None = option(
        None,
        "Take columns from the names of files, such as '{year}_{author}.txt'. An index has its columns already.",
        metavar="PATTERN",
    )
    where: str | None = option(
        None,
        "Keep only lines whose columns meet a condition, such as 'year >= 2020 and source ~ news'.",
        metavar="CONDITION",
    )
    fold_script: bool = option(False, "Find simplified words in traditional spelling too, and vice versa.")


@dataclass(frozen=True, kw_only=True)
class ConcordanceOptions:
    """The options of `concordance` that select, sort and write its lines."""

    containing: str | None = option(None, "Keep only lines in which this regular expression is found.", metavar="REGEX")
    usage: int | None = option(
        None, "Keep only this usage of the word, numbered as by senses, from 1. Needs --index.", least=1, metavar="N"
    )
    sort: str | None = option(
        None,
        "Sort by these keys, the first one above all: 1L to 9L and 1R to 9R (tokens to the left and right), node,"
        " source or another column, surprisal (highest first), meaning (needs --like). A - before a key reverses it."
        " Default: the order of the texts.",
        metavar="KEY,...",
    )
    like: int | None = option(
        None, "Sort by meaning: lines most similar to the line of this number first.", least=1, metavar="NUMBER"
    )
    layer: int | None = option(
        None, "Layer that --like and --usage compare. Default: the lowest layer of the index above 0.", least=0
    )
    sample: int | None = option(None, "Show a random sample of this many lines.", least=1, metavar="N")
    seed: int = option(1, "Seed of the sample and of --usage.", least=0, most=2**32 - 1)
    top: int = option(50, "Number of lines to print at most; 0 prints all. --output writes all of them.", least=0)
    output: Path | None = option(
        None,
        "Write all lines to this file: tab-separated (.tsv), for Excel (.csv), JSON lines (.jsonl), or the vertical"
        " format of CWB and Sketch Engine (.vrt).",
        metavar="FILE",
        path={"dir_okay": False},
    )


@dataclass(frozen=True, kw_only=True)
class CountOptions:
    """Options shared by all commands that produce tables of counts."""

    top: int = option(20, "Number of rows to print at most; 0 prints all. --output writes all of them.", least=0)
    output: Path | None = option(
        None,
        "Write all rows to this file: tab-separated (.tsv), for Excel (.csv) or JSON lines (.jsonl).",
        metavar="FILE",
        path={"dir_okay": False},
    )


@dataclass(frozen=True, kw_only=True)
class NewWordOptions:
    """The options of `words`: the minimum values that make a string a candidate."""

    min_count: int = option(5, "Leave out strings that occur less often.", least=2)
    min_pmi: float = option(4.0, "Leave out strings whose parts have less mutual information, in bits.", metavar="BITS")
    min_entropy: float = option(
        1.5, "Leave out strings whose neighbouring characters have less entropy, in bits.", least=0, metavar="BITS"
    )
