"""The commands that count words: frequencies, collocates, keywords, and candidates for new words."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import click

from elmo_zh.cli.concordance import (
    files_argument,
    num_occurrences,
    num_shown,
    read_texts,
    reading_of_texts,
    require_index,
    require_matches,
    wrote,
)
from elmo_zh.cli.options import (
    Common,
    common_options,
    input_argument,
    input_options,
    reads,
    shared_options,
    takes,
)
from elmo_zh.concordance import CollocateOptions, CountOptions, NewWordOptions, TextChoice
from elmo_zh.errors import ConfigError
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import aligned, counted
from elmo_zh.run.tables import TABLE_SUFFIXES, cell, save_rows

# Columns with text, which tables align to the left.
_LEFT = ("usage", "word", "part")
# The headings of the tables, which are the names of the rows' fields with spaces.
_HEADINGS = (
    *(N_("usage"), N_("word"), N_("part"), N_("count"), N_("other count"), N_("per million"), N_("other per million")),
    *(N_("dispersion"), N_("together"), N_("expected"), N_("log likelihood"), N_("log dice"), N_("log ratio")),
    *(N_("entropy")),
)


@click.command()
@files_argument
@click.option(
    "--word",
    "queries",
    multiple=True,
    metavar="QUERY",
    help="Word or phrase to count, in the form that concordance accepts; may be repeated. Default: every word.",
)
@click.option(
    "--by",
    "column",
    metavar="COLUMN",
    help="Column, such as year, that divides the text into parts. With --word, also count by part. Default: source.",
)
@takes(CountOptions, "options")
@reading_of_texts
def frequencies(
    common: Common,
    /,
    files: tuple[str, ...],
    queries: tuple[str, ...],
    column: str | None,
    texts: TextChoice,
    options: CountOptions,
) -> None:
    """Count words and phrases, and show how evenly they are spread.

    Each row has the count, the count per million tokens, and the dispersion over the parts: Gries' DP, normalised,
    from 0 (as even as possible) to 1 (as uneven as possible). Parts are the sources, or the values of the column
    given with --by.

    \b
    Example:
      elmo-zh frequencies my-texts/ --top 30
      elmo-zh frequencies --index news.index --word 高质量发展 --word 改革 --by year --output counts.csv
    """
    from elmo_zh.concordance import counts
    from elmo_zh.concordance.query import unquoted
    from elmo_zh.contexts.index_files import require_column

    with common.claimed(options.output, formats=TABLE_SUFFIXES):
        read = read_texts(common, files, texts)
        column = column and unquoted(column)
        divided = require_column(read.table.columns, column or "source", "--by")
        read.note_types([column] if column else [], common.console)
        rows = [] if queries else counts.most_frequent(read.folded, read.wanted, divided)
        for query in queries:
            lines = read.find(query).lines
            read.note_longer_words(query, len(lines), common.console)
            by_part = column is not None
            rows += counts.frequencies(query, read.table, read.wanted, lines, divided, by_part=by_part)
        _report(common, rows, options, _num_rows(len(rows)) if queries else _num_words(len(rows)))


@click.command()
@click.argument("query", metavar="QUERY")
@files_argument
@takes(CollocateOptions, "near")
@takes(CountOptions, "options")
@reading_of_texts
def collocates(
    common: Common,
    /,
    query: str,
    files: tuple[str, ...],
    near: CollocateOptions,
    texts: TextChoice,
    options: CountOptions,
) -> None:
    """Find words that occur near a word more often than by chance.

    With --usages, the collocates of each usage of the word are listed separately. Each row has the number of
    co-occurrences, the count of the collocate, the number expected by chance, log-likelihood (G2, negative if the two
    words avoid each other) and logDice (14 at most, independent of corpus size).

    \b
    Example:
      elmo-zh collocates 苹果 --index my.index --usages
      elmo-zh collocates 改革 news/ --window 3 3 --by log-dice
    """
    from elmo_zh.concordance import counts

    with common.claimed(options.output, formats=TABLE_SUFFIXES):
        read = read_texts(common, files, texts)
        matches = read.find(query)
        require_matches(query, matches, texts)
        parts = {"": matches}
        if near.usages:
            from elmo_zh.concordance.kwic import match_usages

            of_match = match_usages(require_index(read, "--usages"), query, matches, layer=None, seed=1)
            parts = {str(n): matches.take(of_match == n) for n in range(1, int(max(of_match[of_match > 0])) + 1)}
        rows: list[dict[str, Any]] = []
        for usage, matches_of_usage in parts.items():
            words = counts.collocates(matches_of_usage, near.window, least=near.min_count)
            if near.by == "log-dice":
                words.sort(key=lambda word: -word.log_dice)
            rows += [{**({"usage": usage} if near.usages else {}), **asdict(word)} for word in words]
        _report(common, rows, options, num_occurrences(query, len(matches)), by="usage")


@click.command()
@files_argument
@click.option(
    "--against-where",
    metavar="CONDITION",
    help="Compare with the lines that meet this condition. Default: all lines that do not meet --where.",
)
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="INDEX", help="Index to compare with, instead of --where."
)
@click.option(
    "--min-count",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Minimum number of occurrences of a word, counted in both sets of lines together.",
)
@takes(CountOptions, "options")
@reading_of_texts
def keywords(
    common: Common,
    /,
    files: tuple[str, ...],
    against_where: str | None,
    against: Path | None,
    min_count: int,
    texts: TextChoice,
    options: CountOptions,
) -> None:
    """Find words typical of some lines compared with others.

    Each row has the word's counts in the two sets of lines, both counts per million tokens, the log ratio (1 means
    twice as frequent), log-likelihood (G2), its p-value, and q, the false discovery rate among all compared words.

    \b
    Example:
      elmo-zh keywords --index news.index --where 'year >= 2020'
      elmo-zh keywords --index old.index --against new.index --output keywords.csv
    """
    from elmo_zh.concordance.counts import compare_words
    from elmo_zh.concordance.query import wanted_lines

    if (texts.where is None) == (against is None) or (against is not None and against_where is not None):
        raise click.UsageError(
            _(
                "Say which lines to compare: --where CONDITION, with or without --against-where, or only --against"
                " INDEX."
            )
        )
    with common.claimed(options.output, formats=TABLE_SUFFIXES):
        read = read_texts(common, files, texts)
        other, lines = read.folded, ~read.wanted
        if against is not None:
            other_read = read_texts(common, (), replace(texts, index=against))
            other, lines = other_read.folded, other_read.wanted
        elif against_where is not None:
            lines = wanted_lines(other.columns, len(other.ends), against_where)
        elif not lines.any():
            raise ConfigError(
                _("Every line meets {condition!r}, so nothing is left to compare with. Narrow the condition.").format(
                    condition=texts.where
                )
            )
        rows = compare_words((read.folded, read.wanted), (other, lines), least=min_count)
        _report(common, rows, options, _num_words(len(rows)))


@click.command()
@input_argument
@takes(NewWordOptions, "limits")
@takes(CountOptions, "options")
@input_options
@shared_options("segmented", "user_dictionary")
@common_options
@reads("text")
def words(common: Common, /, files: tuple[str, ...], limits: NewWordOptions, options: CountOptions) -> None:
    """Find candidates for words that the segmenter does not know.

    Candidates are strings of two to four Han characters that stick together (pmi: pointwise mutual information of the
    two parts, in bits) and occur in many contexts (entropy of the characters next to them, in bits). Words in the
    segmenter's dictionary or in --user-dictionary are left out; with --segmented, tokens of the text are. Delete the
    rows that are not words, then give the table to segment, index, embed and concordance as a user dictionary.

    \b
    Example:
      elmo-zh words news/ --output words.tsv
      elmo-zh concordance 负载均衡 news/ --user-dictionary words.tsv
      elmo-zh pipeline news/ --run runs/news --set text.user_dictionary=words.tsv
    """
    from elmo_zh.concordance.new_words import find_new_words, iter_runs, token_finder, word_finder

    config = common.config
    with common.claimed(options.output, formats=TABLE_SUFFIXES):
        with common.opened_texts(files) as texts:
            segmented, text = common.segmented, None if common.segmented else config.text
            is_known = token_finder(texts) if segmented else word_finder(config.text, common.user_dictionary)
            rows = find_new_words(lambda reporter: iter_runs(texts, text, reporter), is_known, limits, common.console)
        _report(common, rows, options, _num_words(len(rows)))


def _num_rows(count: int) -> str:
    return counted(count, "{number} row", "{number} rows")


def _num_words(count: int) -> str:
    return counted(count, "{number} word", "{number} words")


def _report(common: Common, rows: Sequence[Any], options: CountOptions, title: str, *, by: str = "") -> None:
    """Write the table and print its first rows; with `by`, the first rows for each value of that column."""
    found = [row if isinstance(row, dict) else asdict(row) for row in rows]
    if options.output:
        save_rows(found, options.output)
    shown = [row for _, own in groupby(found, lambda row: row.get(by)) for row in islice(own, options.top or None)]
    cells = [[_("all") if each == ("part", "all") else _cell(each[1]) for each in row.items()] for row in shown]
    # `name`, a word or a phrase, is headed like the option that gives it.
    header = ["word" if name == "name" else name.replace("_", " ") for name in shown[0]] if shown else []
    common.finish(
        {"rows": shown, "count": len(found), "output": str(options.output) if options.output else None},
        *(aligned(cells, [n for n, name in enumerate(header) if name in _LEFT], header) if shown else []),
        "",
        num_shown(title, len(shown), len(found)),
        *wrote(options.output),
    )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(cell(value))
