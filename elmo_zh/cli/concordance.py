"""The command that shows words in context, and the code that it and the counting commands use to read texts."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder_of, own_index_path
from elmo_zh.cli.options import Common, common_options, input_options, reads, shared_options, takes, with_options
from elmo_zh.concordance import ConcordanceOptions, TextChoice
from elmo_zh.errors import ConfigError, CorpusError
from elmo_zh.invocation import program, typed_word
from elmo_zh.language import _, ngettext
from elmo_zh.run.reporter import Reporter, aligned, counted, first_ten

if TYPE_CHECKING:
    from elmo_zh.concordance.kwic import Concordance
    from elmo_zh.concordance.token_table import TokenTable
    from elmo_zh.contexts.index import ContextIndex

files_argument = click.argument("files", nargs=-1, metavar="[FILE]...")


@dataclass(frozen=True)
class ReadTexts:
    """The texts that a command reads: their tokens, the index they come from, and the lines to search or count in."""

    table: "TokenTable"
    folded: "TokenTable"  # the same tokens in the form in which they are searched and counted
    index: "ContextIndex | None"
    wanted: Any  # bool, shape (L,)
    prepare: Callable[[str], str]  # brings a query into the form of the tokens

    def find(self, query: str) -> "Concordance":
        """Return the matches of a query in the wanted lines."""
        from elmo_zh.concordance.kwic import Concordance
        from elmo_zh.concordance.query import Query, find_matches

        found = Concordance.of_matches(self.table, find_matches(self.folded, Query(self.prepare(query))))
        return found.take(self.wanted[found.lines])

    def note_longer_words(self, query: str, num_found: int, console: Reporter) -> None:
        """Say how often the characters of a query also stand inside longer words, where they are not found."""
        if query.split() != [query] or set("*?") & set(query):
            return
        count = len(self.find(f"*{query}*")) - num_found
        if count > 0:
            console.note(
                ngettext(
                    "{query} also stands inside longer words ({count:,} time). To find these too, search for {wider}",
                    "{query} also stands inside longer words ({count:,} times). To find these too, search for {wider}",
                    count,
                ).format(query=query, count=count, wider=shlex.quote(f"*{query}*"))
            )

    def note_types(self, names: Iterable[str], console: Reporter) -> None:
        """Say once how columns are compared and sorted, if they hold dates or if some cells are of another type."""
        from elmo_zh.contexts.index_files import note_type

        for name in dict.fromkeys(names):
            if name in self.table.columns:
                note_type(name, self.table.columns[name], console)


def read_texts(common: Common, files: tuple[str, ...], choice: TextChoice, queries: Sequence[str] = ()) -> ReadTexts:
    """Read an index or files; from files, read only lines that may match one of the queries, if any are given."""
    from elmo_zh.concordance.query import may_match, names_in_condition, wanted_lines
    from elmo_zh.concordance.token_table import TokenTable
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.text.preparation import TextPreparation
    from elmo_zh.text.script import fold_script

    config = common.config
    path = choice.index or (None if files else own_index_path())
    if (path is None) != bool(files):
        raise click.UsageError(_("Give either files to read or --index INDEX."))
    fold = fold_script() if choice.fold_script else str
    index = None

    def prepare(query: str) -> str:
        return fold(" ".join(map(normalise, query.split())))

    if path is not None:
        if choice.from_name is not None or common.user_dictionary is not None:
            raise click.UsageError(
                _("An index has its own words and columns. Leave out --user-dictionary and --from-name.")
            )
        if choice.index is None:
            common.console.note(
                _("Index: {path}, made by explore. To read other texts, give files or --index INDEX").format(path=path)
            )
        index = ContextIndex.load(path)
        normalise = index.normalise
        table = TokenTable.of_index(index)
        folded = table.folded(fold) if choice.fold_script else table
    else:
        preparation = None if common.segmented else TextPreparation.build(config.text, common.user_dictionary)
        if preparation is not None and common.user_dictionary is not None:
            preparation.report_dictionary(common.user_dictionary, common.console)
        normalise = preparation.normalise if preparation else str
        with common.opened_texts(files, from_name=choice.from_name) as texts:
            may_be_wanted = may_match(map(prepare, queries), fold)
            folded = table = TokenTable.of_texts(texts, preparation, may_be_wanted, common.console, fold)
        if not queries and not common.segmented:
            common.console.note(
                _(
                    "The files are segmented with the current settings, an index with its model's. To count as"
                    " in an index, give --index INDEX instead of files."
                )
            )
    if not len(table.ends):
        raise CorpusError(
            _("{files}: no text found. Give at least one file that contains text.").format(files=first_ten(files))
        )
    read = ReadTexts(table, folded, index, wanted_lines(table.columns, len(table.ends), choice.where), prepare)
    read.note_types(names_in_condition(choice.where), common.console)
    return read


def reading_of_texts(function: Callable[..., Any]) -> Any:
    """Add the options for reading texts or an index, which a command's help lists after the command's own options."""
    options = (
        takes(TextChoice, "texts"),
        input_options,
        shared_options("segmented", "user_dictionary"),
        common_options,
    )
    return with_options(reads("text")(function), options)


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
        read.note_longer_words(query, len(found), common.console)
        found = _sorted(common, read, _chosen(read, query, found, options), options)
        _note_renamed(found, options, common)
        if options.output:
            save_concordance(found, options.output)
    shown = [*(found.take(slice(options.top)) if options.top else found)]
    rows = [[str(line.number), *_shown_figures(line.figures), *keyword_cells(line.parts, line.line)] for line in shown]
    common.finish(
        {
            "query": query,
            "lines": len(found),
            "output": str(options.output) if options.output else None,
            "concordance": [line.described() for line in shown],
        },
        *aligned(rows, left=range(len(rows[0]) - 3, len(rows[0]))),
        "",
        num_shown(num_occurrences(query, len(found)), len(shown), len(found)),
        *wrote(options.output),
        _next_step(query, files, texts, options, shown[0].number),
    )


def num_occurrences(query: str, count: int) -> str:
    """Return the line that says how often a query was found."""
    occurrences = counted(count, "{number} occurrence", "{number} occurrences")
    return _("{query}: {occurrences}").format(query=query, occurrences=occurrences)


def num_shown(title: str, num_rows: int, total: int) -> str:
    """Return the line below a table, which says how many of its rows are shown."""
    if num_rows == total:
        return title
    return _("{title}, {count:,} shown").format(title=title, count=num_rows)


def wrote(output: Path | None) -> list[str]:
    """Return the line that names the written file, if there is one."""
    return [_("Wrote {path}").format(path=output)] if output else []


def _note_renamed(found: "Concordance", options: ConcordanceOptions, common: Common) -> None:
    names = found.column_names(for_vertical=options.output is not None and options.output.suffix == ".vrt")
    if renamed := [f"{name} -> {new}" for name, new in names.items() if name != new]:
        common.console.note(
            _("Columns of the texts have other names in the output: {names}").format(names=", ".join(renamed))
        )


def require_matches(query: str, found: "Concordance", texts: TextChoice) -> None:
    """Raise CorpusError if nothing matches, with advice on how to search again."""
    if len(found):
        return
    among = f" ({texts.where})" if texts.where else ""
    wider = shlex.quote(f"*{query}*")
    if texts.fold_script:
        advice = _("Try fewer characters, or the wildcard *, as in {wider}")
    else:
        advice = _("Try fewer characters, --fold-script, or the wildcard *, as in {wider}")
    raise CorpusError(
        _("{query} does not occur{among}. A match must begin and end at token boundaries.").format(
            query=query, among=among
        )
        + " "
        + advice.format(wider=wider)
    )


def _chosen(read: ReadTexts, query: str, found: "Concordance", options: ConcordanceOptions) -> "Concordance":
    """Return the matches that the options select: lines matching an expression, one usage, a sample."""
    if options.containing is not None:
        found = found.containing(options.containing)
        if not len(found):
            raise CorpusError(
                _("No line with {query} matches {expression}. Leave out --containing, or change it.").format(
                    query=query, expression=options.containing
                )
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
        raise ConfigError(
            _("No match of {query} has usage {usage}. The highest usage number is {highest}.").format(
                query=query, usage=options.usage, highest=highest
            )
        )
    return found.with_figure("usage", usages).take(usages == options.usage)


def require_index(read: ReadTexts, option: str) -> "ContextIndex":
    """Return the index being read; raise UsageError if files are being read instead."""
    if read.index is None:
        raise click.UsageError(
            _("{option} needs the vectors of an index. Give --index INDEX instead of files.").format(option=option)
        )
    return read.index


def _sorted(common: Common, read: ReadTexts, found: "Concordance", options: ConcordanceOptions) -> "Concordance":
    from elmo_zh.concordance.query import parse_keys

    keys = parse_keys(options.sort or "")
    read.note_types((key.removeprefix("-") for key in keys), common.console)
    if options.like is not None:
        from elmo_zh.concordance.kwic import by_meaning
        from elmo_zh.contexts.senses import usage_layer

        index = require_index(read, "--like")
        layer = usage_layer(index) if options.layer is None else options.layer
        found = by_meaning(index, found, options.like, layer)
        keys.append("cosine")
    if "surprisal" in [key.removeprefix("-") for key in keys]:
        from elmo_zh.concordance.kwic import with_surprisal

        index = require_index(read, "--sort surprisal")
        found = with_surprisal(load_embedder_of(common, index).bundle, found, common.console)
    elif common.model:
        raise click.UsageError(_("--model is only for surprisal. Add --sort surprisal, or leave out --model."))
    return found.sorted_by(keys)


def _shown_figures(figures: Mapping[str, float]) -> list[str]:
    return [f"{value:.0f}" if name == "usage" else f"{value:.3f}" for name, value in figures.items()]


def _next_step(query: str, files: tuple[str, ...], texts: TextChoice, options: ConcordanceOptions, first: int) -> str:
    named = (("--index", texts.index), ("--from-name", texts.from_name), ("--where", texts.where))
    read = shlex.join([*files, *(str(part) for pair in named if pair[1] is not None for part in pair)])
    if texts.index is not None and options.like is None:
        similar = f"{program()} concordance {typed_word(query)} {read} --like {first}"
        return _("Next, see the lines closest in meaning to the first match: {command}").format(command=similar)
    near = f"{program()} collocates {typed_word(query)} {read}"
    return _("Next, see which words occur near these matches: {command}").format(command=near)
