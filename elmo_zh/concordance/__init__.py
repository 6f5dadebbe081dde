"""Tools for corpus linguistics: concordances, frequencies, collocates and keywords of an index or of any text.

This module defines the options of the commands.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.config.fields import option


@dataclass(frozen=True, kw_only=True)
class TextChoice:
    """Options that select texts, and lines within them."""

    index: Path | None = option(None, metavar="INDEX")
    """Read this index, whose lines are already segmented, instead of files. Default if no files are given: the index
    that explore created."""
    from_name: str | None = option(None, metavar="PATTERN")
    """File name pattern, such as '{year}_{author}.txt'; parts in braces become columns. Not allowed with an index."""
    where: str | None = option(None, metavar="CONDITION")
    """Keep only lines whose columns meet this condition, such as 'year >= 2020 and source ~ news'."""
    fold_script: bool = option(False)
    """Also find words written in the other script: traditional or simplified characters."""


@dataclass(frozen=True, kw_only=True)
class ConcordanceOptions:
    """The options of `concordance` that select, sort and write its lines."""

    containing: str | None = option(None, metavar="REGEX")
    """Keep only lines with a match for this regular expression."""
    usage: int | None = option(None, least=1, metavar="N")
    """Keep only lines with this usage of the word, numbered as in the output of senses. Needs an index."""
    sort: str | None = option(None, metavar="KEY,...")
    """Sort by these keys, in order of priority: 1L to 9L and 1R to 9R (tokens to the left and right), node (the
    match itself), source or another column, or surprisal (highest first; needs an index). A - before a key reverses
    its order. Default: the order of the texts."""
    like: int | None = option(None, least=1, metavar="NUMBER")
    """Sort by meaning: the lines most similar to the line with this number come first. Needs an index."""
    layer: int | None = option(None, least=0)
    """Layer whose vectors --like and --usage compare. Default: the lowest layer above 0 in the index."""
    sample: int | None = option(None, least=1, metavar="N")
    """Keep only a random sample of this many lines."""
    seed: int = option(1, least=0, most=2**32 - 1)
    """Random seed for --sample and --usage."""
    top: int = option(50, least=0)
    """Maximum number of lines to print; 0 prints all. --output always writes all lines."""
    output: Path | None = option(None, metavar="FILE", path={"dir_okay": False})
    """Write all lines to this file, in the format of its suffix: .tsv (tab-separated), .csv (for Excel), .jsonl (JSON
    lines) or .vrt (the vertical format of CWB and Sketch Engine)."""


@dataclass(frozen=True, kw_only=True)
class CountOptions:
    """Options shared by all commands that produce tables of counts."""

    top: int = option(20, least=0)
    """Maximum number of rows to print; 0 prints all. --output always writes all rows."""
    output: Path | None = option(None, metavar="FILE", path={"dir_okay": False})
    """Write all rows to this file, in the format of its suffix: .tsv (tab-separated), .csv (for Excel) or .jsonl."""


@dataclass(frozen=True, kw_only=True)
class NewWordOptions:
    """The options of `words`: the minimum values that make a string a candidate."""

    min_count: int = option(5, least=2)
    """Leave out strings that occur less often than this."""
    min_pmi: float = option(4.0, metavar="BITS")
    """Leave out strings whose parts have less mutual information than this, in bits."""
    min_entropy: float = option(1.5, least=0, metavar="BITS")
    """Leave out strings whose neighbouring characters have less entropy than this, in bits."""
