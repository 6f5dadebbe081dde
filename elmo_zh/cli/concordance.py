"""The commands for corpus linguistics: words in context, counts, collocates, keywords, and new words."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.declared import takes, typed_options, with_options
from elmo_zh.cli.options import (
    INPUT,
    Common,
    common_options,
    figures,
    input_argument,
    reads,
    refuse_together,
    require_one,
    shared_options,
    table,
)
from elmo_zh.concordance import CollocateOptions, ConcordanceOptions, CountOptions, NewWordOptions, TextChoice
from elmo_zh.config.declare import declare
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.language import _
from elmo_zh.run.reporter import aligned, first_ten
from elmo_zh.run.tables import TABLE_SUFFIXES, save_rows

if TYPE_CHECKING:
    from elmo_zh.concordance.kwic import Concordance, ReadTexts

# Options that the next command does not repeat: those for this output, and those that only `concordance` has.
_OF_ONE_OUTPUT = {"sort", "top", *(f"common_{name}" for name in ("output", "force", "quiet", "as_json"))}
_OF_LINES = {"containing", "usage", "like", "layer", "sample", "seed"}

files_argument = click.argument("files", nargs=-1, metavar="[FILE]...")
query_argument = click.argument("query", metavar="QUERY")
_table_option = shared_options(
    "output",
    help="Write all rows to this file, in the format of its suffix: .tsv (tab-separated), .csv (for Excel) or .jsonl.",
)


def read_texts(common: Common, files: tuple[str, ...], choice: TextChoice, queries: Sequence[str] = ()) -> "ReadTexts":
    """Read an index or files; with queries, only those lines of the files that may match one are segmented."""
    from elmo_zh.concordance.kwic import ReadTexts
    from elmo_zh.concordance.query import TokenTable, may_match, names_in_condition, wanted_lines
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.text.preparation import TextPreparation
    from elmo_zh.text.script import fold_script

    require_one({"FILE": bool(files), "--index INDEX": choice.index is not None})
    fold = fold_script() if choice.fold_script else str
    index = None

    def prepare(query: str) -> str:
        return fold(" ".join(map(normalise, query.split())))

    if choice.index is not None:
        own = {"--from-name": choice.from_name, "--user-dictionary": common.user_dictionary}
        refuse_together("--index", {name: value is not None for name, value in own.items()})
        index = ContextIndex.load(choice.index)
        normalise = index.normalise
        tokens = TokenTable.of_index(index)
        folded = tokens.folded(fold) if choice.fold_script else tokens
    else:
        dictionary = common.user_dictionary
        preparation = None if common.segmented else TextPreparation.build(common.config.text, dictionary)
        if preparation is not None and dictionary is not None:
            preparation.report_dictionary(dictionary, common.console)
        normalise = preparation.normalise if preparation else str
        with common.opened_texts(files, from_name=choice.from_name) as texts:
            may_be_wanted = may_match(map(prepare, queries), fold)
            folded = tokens = TokenTable.of_texts(texts, preparation, may_be_wanted, common.console, fold)
    if not len(tokens.ends):
        raise CorpusError.no_text(first_ten(files) or choice.index)
    wanted = wanted_lines(tokens.columns, len(tokens.ends), choice.where)
    read = ReadTexts(tokens, folded, index, wanted, prepare)
    read.note_types(names_in_condition(choice.where), common.console)
    return read


def reading_of_texts(function: Callable[..., Any]) -> Any:
    """Add the options for reading texts or an index, and the common options, at the end of a command's help."""
    shared = shared_options(*INPUT, "segmented", "user_dictionary")
    return with_options(reads("text")(function), (takes(TextChoice, "texts"), shared, common_options))


@click.command()
@query_argument
@files_argument
@takes(ConcordanceOptions, "options")
@shared_options(
    "output",
    help="Write all lines to this file, in the format of its suffix: .tsv (tab-separated), .csv (for Excel), .jsonl"
    " (JSON lines) or .vrt (the vertical format of CWB and Sketch Engine).",
)
@reading_of_texts
def concordance(
    common: Common, /, query: str, files: tuple[str, ...], texts: TextChoice, options: ConcordanceOptions
) -> None:
    """Find every occurrence of a word or phrase, with its context.

    QUERY is a word, a phrase, or tokens separated by spaces, in which * stands for any number of characters of a
    token, ? for one character, and * on its own for a whole token. A string without spaces is found however it was
    segmented, as long as it begins and ends where tokens do. FILE is a text in any format that segment reads, a folder,
    or - for standard input; no model or index is needed. With an index, lines can also be sorted by meaning and
    filtered by usage.

    \b
    Example:
      elmo-zh concordance 高质量发展 news/ --sort 1R,2R
      elmo-zh concordance '吃 *' --index my.index --where 'source ~ 1998' --output eat.csv
      elmo-zh concordance 苹果 --index my.index --like 3
    """
    from elmo_zh.concordance.kwic import note_longer_words, save_concordance
    from elmo_zh.contexts.occurrences import keyword_cells

    with common.claimed(*TABLE_SUFFIXES, ".vrt"):
        read = read_texts(common, files, texts, [query])
        matches = read.find(query)
        require_matches(query, matches, texts.where)
        if options.containing is None:
            note_longer_words(read.folded, read.prepare(query), common.console, read.wanted)
        matches = _sorted(common, read, _selected(read, query, matches, options), options)
        if common.output:
            _note_renamed(matches, common.output, common)
            save_concordance(matches, common.output)
    shown = [*(matches.take(slice(options.top)) if options.top else matches)]
    rows = [[str(line.number), *_shown_figures(line.figures), *keyword_cells(line.parts, line.line)] for line in shown]
    if shown[0].figures:
        rows.insert(0, ["", *shown[0].figures, "", "", "", ""])
    repeated, context = (query, *files), click.get_current_context()
    following: tuple[str, ...] = ()
    if texts.index is not None and options.like is None:
        typed = typed_options(context, without=_OF_ONE_OUTPUT)
        following = ("concordance", *repeated, *typed, "--like", str(shown[0].number))
    elif "-" not in files and {options.containing, options.usage, options.sample} == {None}:
        following = ("collocates", *repeated, *typed_options(context, without=_OF_ONE_OUTPUT | _OF_LINES))
    counts = {"query": query, "lines": len(matches)}
    table_of_lines = aligned(rows, left=range(len(rows[0]) - 3, len(rows[0])))
    common.finish(
        {**counts, "concordance": [line.described() for line in shown]},
        [*table_of_lines, "", *figures({**counts, "shown": len(shown)})],
        following=following,
    )


def _note_renamed(matches: "Concordance", output: Path, common: Common) -> None:
    names = matches.column_names(for_vertical=output.suffix == ".vrt")
    if renamed := [f"{name} -> {new}" for name, new in names.items() if name != new]:
        message = _("Columns renamed in the output: {names}")
        common.console.note(message.format(names=", ".join(renamed)))


def require_matches(query: str, matches: "Concordance", condition: str | None) -> None:
    """Raise CorpusError, with advice on how to search again, if there are no matches."""
    if not len(matches):
        if condition:
            message = _(
                "{query} does not occur in lines that match {condition!r}. Change this condition, or leave it out."
            )
            raise CorpusError(message.format(query=query, condition=condition))
        message = _(
            "{query} does not occur. A query is a word or phrase, which may contain the wildcards * and ?, and it"
            " matches only whole tokens. Try fewer characters, --fold-script, or {wider}"
        )
        raise CorpusError(message.format(query=query, wider=shlex.quote(f"*{query}*")))


def _selected(read: "ReadTexts", query: str, matches: "Concordance", options: ConcordanceOptions) -> "Concordance":
    """Return the matches that the options select: lines matching an expression, one usage, a sample."""
    if options.containing is not None:
        matches = matches.containing(options.containing)
        require_matches(query, matches, options.containing)
    if options.usage is not None:
        from elmo_zh.concordance.kwic import match_usages

        index = read.require_index("--usage")
        usages = match_usages(index, query, matches, layer=options.layer, seed=options.seed)
        if options.usage not in usages:
            raise ConfigError.unexpected(f"--usage {options.usage}", f"1<=N<={int(max(usages[usages > 0]))}")
        matches = matches.with_figure("usage", usages).take(usages == options.usage)
    return matches if options.sample is None else matches.sample(options.sample, options.seed)


def _sorted(common: Common, read: "ReadTexts", matches: "Concordance", options: ConcordanceOptions) -> "Concordance":
    from elmo_zh.concordance.query import parse_keys

    keys = parse_keys(options.sort or "")
    read.note_types((key.removeprefix("-") for key in keys), common.console)
    if options.like is not None:
        from elmo_zh.concordance.kwic import by_meaning
        from elmo_zh.contexts.senses import usage_layer

        index = read.require_index("--like")
        layer = usage_layer(index) if options.layer is None else options.layer
        matches = by_meaning(index, matches, options.like, layer)
        keys.append("cosine")
    return matches.sorted_by(keys)


def _shown_figures(values: Mapping[str, float]) -> list[str]:
    return [f"{value:.0f}" if name == "usage" else f"{value:.3f}" for name, value in values.items()]


@dataclass(frozen=True, kw_only=True)
class FrequencyOptions(CountOptions):
    """The options of `frequencies`."""

    words: tuple[str, ...] = declare(
        (),
        "Word or phrase to count, in the form that concordance accepts; may be repeated. Default: every word.",
        names=("--word",),
        metavar="QUERY",
    )
    by: str | None = declare(
        None,
        "Column that divides the text into parts, such as year. For a column of dates, add :year or :month to its name,"
        " as in date:year. With --word, also count by part. Default: source.",
        metavar="COLUMN",
    )


@click.command()
@files_argument
@takes(FrequencyOptions, "options")
@_table_option
@reading_of_texts
def frequencies(common: Common, /, files: tuple[str, ...], texts: TextChoice, options: FrequencyOptions) -> None:
    """Count words and phrases, and show how evenly they are spread.

    Each row has the count and the count per million tokens. If the text has several parts, the row for the whole text
    also has the dispersion over them: Gries' DP, normalised, from 0 (as even as possible) to 1 (as uneven as possible).
    Parts are the sources, or the values of the column given with --by.

    \b
    Example:
      elmo-zh frequencies my-texts/ --top 30
      elmo-zh frequencies --index news.index --word 高质量发展 --word 改革 --by year --output counts.csv
    """
    from elmo_zh.concordance import counts
    from elmo_zh.concordance.kwic import note_longer_words
    from elmo_zh.concordance.query import unquoted
    from elmo_zh.contexts.index_files import require_column

    with common.claimed(*TABLE_SUFFIXES):
        read = read_texts(common, files, texts)
        by = options.by and unquoted(options.by)
        divided = require_column(read.table.columns, by or "source", "--by")
        read.note_types([by] if by else [], common.console)
        rows = [] if options.words else counts.most_frequent(read.folded, read.wanted, divided)
        for query in options.words:
            lines = read.find(query).lines
            note_longer_words(read.folded, read.prepare(query), common.console, read.wanted)
            by_part = by is not None
            rows += counts.frequencies(query, read.table, read.wanted, lines, divided, by_part=by_part)
        _report(common, rows, options.top)


@click.command()
@query_argument
@files_argument
@takes(CollocateOptions, "near")
@takes(CountOptions, "options")
@_table_option
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

    Each row has the number of co-occurrences, the count of the collocate, the number expected by chance,
    log-likelihood (G2, negative if the two words avoid each other) and logDice (14 at most, independent of corpus
    size).

    \b
    Example:
      elmo-zh collocates 苹果 --index my.index --usages
      elmo-zh collocates 改革 news/ --window 3 3 --by log-dice
    """
    from elmo_zh.concordance import counts

    with common.claimed(*TABLE_SUFFIXES):
        read = read_texts(common, files, texts)
        matches = read.find(query)
        require_matches(query, matches, texts.where)
        parts = {"": matches}
        if near.usages:
            from elmo_zh.concordance.kwic import match_usages

            of_match = match_usages(read.require_index("--usages"), query, matches, layer=None, seed=1)
            parts = {str(n): matches.take(of_match == n) for n in range(1, int(max(of_match[of_match > 0])) + 1)}
        rows: list[dict[str, Any]] = []
        for usage, matches_of_usage in parts.items():
            counted = replace(matches_of_usage, table=read.folded)
            words = counts.collocates(counted, near.window, least=near.min_count)
            if near.by == "log-dice":
                words.sort(key=lambda word: -word.log_dice)
            rows += [{**({"usage": usage} if near.usages else {}), **asdict(word)} for word in words]
        _report(common, rows, options.top, by="usage")


@dataclass(frozen=True, kw_only=True)
class KeywordOptions(CountOptions):
    """The options of `keywords`."""

    against_where: str | None = declare(
        None,
        "Compare with the lines that meet this condition. Default: all lines that do not meet --where.",
        metavar="CONDITION",
    )
    against: Path | None = declare(
        None, "Compare all lines with this index. Cannot be combined with --where or --against-where.", metavar="INDEX"
    )
    min_count: int = declare(5, "Leave out words that occur less often than this in both sets together.", least=1)


@click.command()
@files_argument
@takes(KeywordOptions, "options")
@_table_option
@reading_of_texts
def keywords(common: Common, /, files: tuple[str, ...], texts: TextChoice, options: KeywordOptions) -> None:
    """Find words typical of some lines compared with others.

    Each row has the word's counts in the two sets of lines, both counts per million tokens, the log ratio (1 means
    twice as frequent), log-likelihood (G2, negative if the word is rarer in the first set), its p-value, and q, the
    false discovery rate (adjusted over all compared words). The words typical of the other set come last.

    \b
    Example:
      elmo-zh keywords --index news.index --where 'year >= 2020'
      elmo-zh keywords --index old.index --against new.index --output keywords.csv
    """
    from elmo_zh.concordance.counts import compare_words
    from elmo_zh.concordance.query import wanted_lines

    against, against_where = options.against, options.against_where
    require_one({"--where CONDITION": texts.where is not None, "--against INDEX": against is not None})
    if against is not None:
        refuse_together("--against", {"--against-where": against_where is not None})
    with common.claimed(*TABLE_SUFFIXES):
        read = read_texts(common, files, texts)
        other, lines = read.folded, ~read.wanted
        if against is not None:
            other_read = read_texts(common, (), replace(texts, index=against))
            other, lines = other_read.folded, other_read.wanted
        elif against_where is not None:
            lines = wanted_lines(other.columns, len(other.ends), against_where)
        _report(common, compare_words((read.folded, read.wanted), (other, lines), least=options.min_count), options.top)


@click.command()
@input_argument
@takes(NewWordOptions, "limits")
@takes(CountOptions, "options")
@_table_option
@shared_options(*INPUT, "segmented", "user_dictionary")
@common_options
@reads("text")
def words(common: Common, /, files: tuple[str, ...], limits: NewWordOptions, options: CountOptions) -> None:
    """Find candidates for words that the segmenter does not know.

    Candidates are strings of two to four Han characters that stick together (pmi: pointwise mutual information of the
    two parts, in bits) and occur in many contexts (entropy of the characters next to them, in bits). Words in the
    segmenter's dictionary or in --user-dictionary are left out. With --segmented, the tokens of the text are left
    out instead. Delete the rows that are not words, then pass the table to segment, index, embed and concordance as a
    user dictionary.

    \b
    Example:
      elmo-zh words news/ --output words.tsv
      elmo-zh concordance 负载均衡 news/ --user-dictionary words.tsv
      elmo-zh pipeline news/ --run runs/news --set text.user_dictionary=words.tsv
    """
    from elmo_zh.concordance.counts import find_new_words, iter_runs, token_finder, word_finder

    config = common.config
    with common.claimed(*TABLE_SUFFIXES):
        with common.opened_texts(files) as texts:
            segmented, text = common.segmented, None if common.segmented else config.text
            is_known = token_finder(texts) if segmented else word_finder(config.text, common.user_dictionary)
            rows = find_new_words(lambda reporter: iter_runs(texts, text, reporter), is_known, limits, common.console)
        _report(common, rows, options.top)


def _report(common: Common, results: Sequence[Any], top: int, *, by: str = "") -> None:
    """Write the table to --output, if given, and print its first rows; with `by`, the first for each value of `by`."""
    rows = [row if isinstance(row, dict) else asdict(row) for row in results]
    if common.output:
        save_rows(rows, common.output)
    shown = [row for _value, part in groupby(rows, lambda row: row.get(by)) for row in islice(part, top or None)]
    # The column `name` holds words or phrases, so its heading is that of the option --word.
    printed = [{"word" if name == "name" else name: value for name, value in row.items()} for row in shown]
    lines = [*table(printed), "", *figures({"rows": len(rows), "shown": len(shown)})]
    common.finish({"rows": shown, "count": len(rows)}, lines)
