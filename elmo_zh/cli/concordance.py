"""The command that shows words in context, and the code that it and the counting commands use to read texts."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder_of, own_index_path
from elmo_zh.cli.options import Common, common_options, input_options, shared_options, takes, with_options
from elmo_zh.concordance import ConcordanceOptions, TextChoice
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.invocation import program, typed_word
from elmo_zh.run.reporter import aligned, counted, first_ten

if TYPE_CHECKING:
    from elmo_zh.concordance.kwic import Concordance
    from elmo_zh.concordance.token_table import TokenTable
    from elmo_zh.contexts.index import ContextIndex

files_argument = click.argument("files", nargs=-1, metavar="[FILE]...")


@dataclass(frozen=True)
class ReadTexts:
    """The texts that a command reads: their tokens, the index they come from, and the lines to search or count in."""

    table: "TokenTable"
    index: "ContextIndex | None"
    wanted: Any  # bool, shape (L,)
    fold: Callable[[str], str]

    def find(self, query: str) -> "Concordance":
        """Return the matches of a query in the wanted lines."""
        from elmo_zh.concordance.kwic import Concordance
        from elmo_zh.concordance.query import compile_query, find_matches

        found = Concordance.of_matches(self.table, find_matches(self.table, compile_query(self.fold(query)), self.fold))
        return found.take(self.wanted[found.lines])


def read_texts(common: Common, files: tuple[str, ...], choice: TextChoice, queries: Sequence[str] = ()) -> ReadTexts:
    """Read an index or files; from files, read only lines that may match one of the queries, if any are given."""
    from elmo_zh.concordance.query import may_match, wanted_lines
    from elmo_zh.concordance.token_table import TokenTable
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.text.preparation import TextPreparation
    from elmo_zh.text.script import fold_script

    config = common.resolve()
    path = choice.index or (None if files else own_index_path())
    if (path is None) != bool(files):
        raise click.UsageError("Give either files to read or --index INDEX.")
    fold = fold_script() if choice.fold_script else str
    if path is not None:
        if choice.index is None:
            common.console.note(f"Index: {path}, made by explore. To read other texts, give files or --index INDEX")
        if choice.from_name is not None:
            raise click.UsageError("An index has its own columns. Leave out --from-name.")
        if common.user_dictionary is not None:
            raise click.UsageError("An index is already segmented. Leave out --user-dictionary.")
        index = ContextIndex.load(path)
        table = TokenTable.of_index(index)
    else:
        index, preparation = None, TextPreparation.build(config.text, common.user_dictionary)
        with common.opened_texts(files, from_name=choice.from_name) as texts:
            table = TokenTable.of_texts(texts, preparation, may_match(map(fold, queries), fold), common.console)
        if not queries:
            common.console.note(
                "The files are segmented with the current settings. Counts from an index may differ, because an index"
                " is segmented with its model's settings. To segment as the starter does: --set text.jieba_hmm=false"
            )
    if not len(table.ends):
        raise CorpusError(f"{first_ten(files)}: no text found. Give at least one file that contains text.")
    return ReadTexts(table, index, wanted_lines(table.columns, len(table.ends), choice.where), fold)


def reading_of_texts(function: Callable[..., Any]) -> Any:
    """Add the options for reading texts or an index, which a command's help lists after the command's own options."""
    options = (takes(TextChoice, "texts"), input_options, shared_options("user_dictionary"), common_options)
    return with_options(function, options)


@click.command()
@click.argument("query", metavar="QUERY")
@files_argument
@takes(ConcordanceOptions, "options")
@shared_options("model", help="Model that computes surprisal for --sort. Default: the model that made the index.")
@reading_of_texts
def concordance(
    common: Common, /, query: str, files: tuple[str, ...], texts: TextChoice, options: ConcordanceOptions
) -> None:
    """Show every occurrence of a word or phrase in its context.

    QUERY is a word, a phrase, or tokens separated by spaces, in which * stands for any number of characters of a
    token, ? for one character, and * on its own for a whole token. A string without spaces is found however it was
    segmented. FILE is a text in any format that segment reads, or a folder; no model or index is needed. With an
    index, lines can also be sorted by meaning and filtered by usage.

    \b
    Example:
      elmo-zh concordance 高质量发展 news/ --sort 1R,2R
      elmo-zh concordance '吃 *' --index my.index --where 'source ~ 1998' --output eat.csv
      elmo-zh concordance 苹果 --index my.index --like 3
    """
    from elmo_zh.concordance.kwic import save_concordance
    from elmo_zh.contexts.occurrences import keyword_cells
    from elmo_zh.run.tables import TABLE_SUFFIXES

    with common.claimed(options.output, formats=(*TABLE_SUFFIXES, ".vrt")):
        read = read_texts(common, files, texts, [query])
        texts = replace(texts, index=read.index.path if read.index else None)
        found = read.find(query)
        require_matches(query, found, texts)
        found = _sorted(common, read, _chosen(read, query, found, options), options)
        if options.output:
            save_concordance(found, options.output)
    shown = [*(found.take(slice(options.top)) if options.top else found)]
    rows = [[str(line.number), *_shown_figures(line.figures), *keyword_cells(line.parts, line.line)] for line in shown]
    title = f"{query}: {counted(len(found), 'occurrence')}"
    common.finish(
        {
            "query": query,
            "lines": len(found),
            "output": str(options.output) if options.output else None,
            "concordance": [line.described() for line in shown],
        },
        *aligned(rows, left=range(len(rows[0]) - 3, len(rows[0]))),
        "",
        f"{title}, {len(shown):,} shown" if len(shown) < len(found) else title,
        *([f"Wrote {options.output}"] if options.output else []),
        _next_step(query, files, texts, options, shown[0].number),
    )


def require_matches(query: str, found: "Concordance", texts: TextChoice) -> None:
    """Raise CorpusError if nothing matches, with advice on how to search again."""
    if not len(found):
        among = f" in the lines where {texts.where}" if texts.where else ""
        advice = "Try fewer characters, or the wildcard *."
        if not texts.fold_script:
            advice = "Try fewer characters, the wildcard *, or --fold-script."
        raise CorpusError(f"{query} does not occur{among}. A match must begin and end at token boundaries. {advice}")


def _chosen(read: ReadTexts, query: str, found: "Concordance", options: ConcordanceOptions) -> "Concordance":
    """Return the matches that the options select: lines matching an expression, one usage, a sample."""
    if options.containing is not None:
        found = found.containing(options.containing)
        if not len(found):
            raise CorpusError(
                f"No line with {query} matches {options.containing}. Leave out --containing, or change it."
            )
    if options.usage is not None:
        found = _with_usages(read, query, found, options)
    if options.sample is not None:
        found = found.sample(options.sample, options.seed)
    return found


def _with_usages(read: ReadTexts, query: str, found: "Concordance", options: ConcordanceOptions) -> "Concordance":
    """Return the matches of one usage, without those whose vectors are not in the index."""
    from elmo_zh.concordance.kwic import match_usages

    index = require_index(read, "--usage")
    usages = match_usages(index, query, found, layer=options.layer, seed=options.seed)
    if options.usage not in usages:
        highest = int(max(usages[usages > 0]))
        raise ConfigError(f"No match of {query} has usage {options.usage}. The highest usage number is {highest}.")
    return found.with_figure("usage", usages).take(usages == options.usage)


def require_index(read: ReadTexts, option: str) -> "ContextIndex":
    """Return the index being read; raise UsageError if files are being read instead."""
    if read.index is None:
        raise click.UsageError(f"{option} needs the vectors of an index. Give --index INDEX instead of files.")
    return read.index


def _sorted(common: Common, read: ReadTexts, found: "Concordance", options: ConcordanceOptions) -> "Concordance":
    keys = [key.strip() for key in (options.sort or "").split(",") if key.strip()]
    if options.like is not None:
        from elmo_zh.concordance.kwic import by_meaning
        from elmo_zh.contexts.usages import usage_layer

        index = require_index(read, "--like")
        layer = usage_layer(index) if options.layer is None else options.layer
        found = by_meaning(index, found, options.like, layer)
        keys.append("cosine")
    if "surprisal" in [key.removeprefix("-") for key in keys]:
        from elmo_zh.concordance.kwic import with_surprisal

        index = require_index(read, "--sort surprisal")
        found = with_surprisal(load_embedder_of(common, index).bundle, found, common.console)
    elif common.model:
        raise click.UsageError("--model is only for surprisal. Add --sort surprisal, or leave out --model.")
    return found.sorted_by(keys)


def _shown_figures(figures: Mapping[str, float]) -> list[str]:
    return [f"{value:.0f}" if name == "usage" else f"{value:.3f}" for name, value in figures.items()]


def _next_step(query: str, files: tuple[str, ...], texts: TextChoice, options: ConcordanceOptions, first: int) -> str:
    named = (("--index", texts.index), ("--from-name", texts.from_name), ("--where", texts.where))
    read = shlex.join([*files, *(str(part) for pair in named if pair[1] is not None for part in pair)])
    if texts.index is not None and options.like is None:
        similar = f"{program()} concordance {typed_word(query)} {read} --like {first}"
        return f"Next, see the lines closest in meaning to the first match: {similar}"
    return f"Next, see which words occur near these matches: {program()} collocates {typed_word(query)} {read}"
