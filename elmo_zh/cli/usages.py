"""The commands about the uses of words: senses, drift and substitutes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.declared import takes
from elmo_zh.cli.model_options import UNSEEN, load_index, load_model, warn_of_unknown
from elmo_zh.cli.options import (
    Common,
    common_options,
    common_options_of_readers,
    figures,
    refuse_together,
    shared_options,
    table,
)
from elmo_zh.contexts import DriftOptions, DriftShown, SenseOptions, SubstituteOptions
from elmo_zh.errors import OptionError
from elmo_zh.language import _
from elmo_zh.names import label
from elmo_zh.run.reporter import first_ten, joined

if TYPE_CHECKING:
    from elmo_zh.contexts.drift import Drift, WordDrift
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.occurrences import TokenInSentence
    from elmo_zh.contexts.senses import Senses, Usage
    from elmo_zh.embed.substitutes import Substitute, Substitutes

# Number of occurrences shown for each usage.
_NUM_LINES = 5
# If this share of the words changed, the texts are probably of different kinds.
_NEARLY_ALL = 0.9


@click.command()
@click.argument("word", metavar="WORD")
@shared_options("index", required=True)
@takes(SenseOptions, "options")
@shared_options("output", help="Write every occurrence with its usage to this TSV file.")
@shared_options("picture")
@common_options
def senses(common: Common, /, word: str, options: SenseOptions) -> None:
    """Find the usages of a word by clustering its occurrences.

    Use it to see whether a model tells the senses of a word apart. For each usage, the command shows its share of the
    occurrences, its characteristic words (other words that are used in this way), and the five occurrences nearest to
    its centre, with their cosines. docs/methods.md explains how the number of usages is chosen.

    \b
    Example:
      elmo-zh index my-texts/ --split-sentences --output my.index
      elmo-zh senses 苹果 --index my.index
      elmo-zh senses 苹果 --index my.index --usages 2 --output apple.tsv --picture apple.png
    """
    from elmo_zh.concordance.kwic import note_longer_words
    from elmo_zh.concordance.query import TokenTable
    from elmo_zh.contexts.index_files import note_type, require_column
    from elmo_zh.contexts.senses import find_senses, usage_counts

    index = load_index(common)
    note_longer_words(TokenTable.of_index(index), index.normalise(word), common.console)
    column = require_column(index.columns, options.by, "--by") if options.by else None
    if options.by:
        note_type(index.columns, options.by, common.console)
    with common.claimed():
        senses = find_senses(
            index, word, layer=options.layer, num_usages=options.num_usages, seed=options.seed, top=options.top
        )
        _write_senses(common, index, senses, options)
    _note_clearness(common, senses, options)
    choice = senses.clusters.choice
    counts = usage_counts(index, senses, column) if column else {}
    summary = {
        "word": word,
        "layer": senses.layer,
        "occurrences": len(senses.clusters.labels),
        "repeated": int(senses.is_repeated.sum()),
    }
    common.finish(
        {
            **summary,
            "usages": [_usage_result(usage) for usage in senses.usages],
            "by": counts,
            "choice": choice and {"candidate": choice.candidate, **_rounded(asdict(choice), "silhouette", "score")},
        },
        [
            *figures(summary),
            *(line for usage in senses.usages for line in _describe_usage(usage)),
            "",
            *table(list(_share_rows(options.by or "", counts))),
        ],
        following=("explore", index.path, "--word", word),
    )


def _note_clearness(common: Common, senses: "Senses", options: SenseOptions) -> None:
    """Say if the occurrences form no clear groups, or groups that overlap."""
    from elmo_zh.contexts.senses import CLEAR_SILHOUETTE

    if options.num_usages is None and len(senses.usages) == 1:
        common.console.note(
            _("The occurrences form no clear groups, or are too few to tell. --usages 2 divides them anyway.")
        )
    choice = senses.clusters.choice
    if choice is not None and choice.number > 1 and choice.silhouette <= CLEAR_SILHOUETTE:
        common.console.note(
            _(
                "The groups overlap, so their number is uncertain (silhouette {value:.2f}; above {limit} is clear)."
            ).format(value=choice.silhouette, limit=CLEAR_SILHOUETTE)
        )


def _usage_result(usage: "Usage") -> dict[str, Any]:
    return {
        "share": round(usage.share, 6),
        "occurrences": len(usage.nearest),
        "words": list(usage.words),
        "lines": [line.described() for line in usage.nearest[:_NUM_LINES]],
    }


def _describe_usage(usage: "Usage") -> list[str]:
    from elmo_zh.contexts.occurrences import keyword_lines

    title = _("usage {number}: {share}").format(number=usage.number + 1, share=f"{usage.share:.1%}")
    return ["", title, *figures({"words": " ".join(usage.words)}), *keyword_lines(usage.nearest[:_NUM_LINES])]


def _share_rows(by: str, counts: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each value of a column: its number of occurrences, and the share of each usage."""
    for value, numbers in counts.items():
        shares = {f"{label('usage')} {number}": count / sum(numbers) for number, count in enumerate(numbers, 1)}
        yield {by: value, "occurrences": sum(numbers), **shares}


def _write_senses(common: Common, index: "ContextIndex", senses: "Senses", options: SenseOptions) -> None:
    if common.output:
        from elmo_zh.contexts.senses import usage_rows
        from elmo_zh.run.tables import save_rows

        save_rows(usage_rows(index, senses, options.by), common.output, ".tsv")
    if common.picture:
        from elmo_zh.pictures.canvas import can_write, save_picture
        from elmo_zh.pictures.figures import usages_figure

        title = _("usage {number}: {share}")
        names = [
            (title.format(number=usage.number + 1, share=f"{usage.share:.0%}"), " ".join(usage.words[:3]))
            for usage in senses.usages
        ]
        places, labels = senses.clusters.places, senses.clusters.labels
        details = [f"{label('occurrences')}: {len(labels):,}", index.path.name]
        word = senses.word if can_write(senses.word) else ""
        save_picture(usages_figure(places, labels, names, word, details), common.picture)


@click.command()
@click.argument("indexes", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="INDEX...")
@takes(DriftShown, "options")
@shared_options("output", help="Write all compared words to this TSV file.")
@shared_options(
    "picture", help="Write a plot of the distances between the periods, for the words shown, to this PNG file."
)
@common_options
def drift(common: Common, /, indexes: tuple[Path, ...], options: DriftShown) -> None:
    """Find words used differently in different periods or texts.

    Pass one index per period, oldest first, all made with the same model; or one index and --periods, the column that
    holds the period of each line. The words that changed most between the first and the last period come first, each
    with the lines of both periods that show the change best, and the cosine between each line and the mean of the
    other period. p is the share of random splits of the documents whose two groups are at least as far apart as the
    periods; q is the expected share of false discoveries among the words with this p or a smaller one.
    docs/contexts.md describes the columns.

    \b
    Example:
      elmo-zh index novels/ --split-sentences --output novels.index
      elmo-zh index press/ --split-sentences --output press.index
      elmo-zh drift novels.index press.index --output drift.tsv
      elmo-zh drift news.index --periods year --picture drift.png
    """
    if options.periods is not None:
        refuse_together("--periods", {indexes[-1].name: len(indexes) > 1})
    from elmo_zh.contexts.drift import measure_drift, rows
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.index_text import load_word_list
    from elmo_zh.run.tables import save_rows

    with common.claimed():
        words = load_word_list(options.words) if options.words else None
        measured = {field.name: getattr(options, field.name) for field in fields(DriftOptions)}
        drift = measure_drift(*map(ContextIndex.load, indexes), words=words, reporter=common.console, **measured)
        if common.output:
            save_rows(rows(drift.words), common.output, ".tsv")
        top = drift.words[: options.top]
        if common.picture:
            _draw_drift(drift, top, common.picture)
    _warn_of_drift(common, drift, words, options)
    _finish_drift(common, drift, top, options)


def _draw_drift(drift: "Drift", top: "Sequence[WordDrift]", picture: Path) -> None:
    from elmo_zh.contexts.drift import LEVEL
    from elmo_zh.pictures.canvas import save_picture
    from elmo_zh.pictures.figures import Point, drift_figure

    curves = {
        word.word: [Point(step.distance, step.low, step.high, step.q < LEVEL) for step in word.steps] for word in top
    }
    boundaries = [step.boundary for step in top[0].steps]
    save_picture(drift_figure(curves, boundaries, drift.by, drift.layer), picture)


def _warn_of_drift(common: Common, drift: "Drift", words: frozenset[str] | None, options: DriftShown) -> None:
    """Report what was left out of the comparison, and warn if the tests say little."""
    import numpy as np

    from elmo_zh.contexts.drift import LEAST_DOCUMENTS, LEVEL, describe_fragments
    from elmo_zh.contexts.index_files import note_type

    if by_lines := [period.name for period in drift.periods if period.by_lines]:
        text = _(
            "Periods with fewer than {LEAST_DOCUMENTS} documents: {by_lines}. In these, the test"
            " treats each raw line as a document, so the topic of one document may look like a change."
        )
        common.console.note(text.format(LEAST_DOCUMENTS=LEAST_DOCUMENTS, by_lines=first_ten(by_lines)))
    if options.periods is not None:
        columns = drift.periods[0].index.columns
        note_type(columns, options.periods, common.console)
        if num_left := int((~np.any([period.lines for period in drift.periods], axis=0)).sum()):
            text = _("Lines left out because {name} has no value: {count:,}")
            common.console.note(text.format(name=options.periods, count=num_left))
    if drift.fragments:
        common.console.note(describe_fragments(drift.fragments))
    num_changed = sum(word.q < LEVEL for word in drift.words)
    if words is None and num_changed >= _NEARLY_ALL * len(drift.words):
        text = _(
            "Nearly every word differs ({count:,} of {total:,}), as is usual between different kinds of text. Trust"
            " only the example lines, and how far {by} lies above the baseline."
        )
        common.console.warn(text.format(count=num_changed, total=len(drift.words), by=label(drift.by)))
    known = {word.word for word in drift.words} | drift.fragments.keys()
    if missing := sorted((words or frozenset()) - known):
        text = _(
            "Words from --words that could not be compared: {words}. A word must occur in at least"
            " {min_count} different sentences (--min-count) and two documents per period."
        )
        common.console.warn(text.format(words=first_ten(missing), min_count=options.min_count))
    least = 1 / (options.permutations + 1)
    if any(word.p <= least for word in drift.words) and all(word.q >= LEVEL for word in drift.words):
        text = _("Too few permutations for a q below {LEVEL}. Use --permutations {number}")
        common.console.warn(text.format(LEVEL=LEVEL, number=round(len(drift.words) / LEVEL) + 1))


def _finish_drift(common: Common, drift: "Drift", top: "Sequence[WordDrift]", options: DriftShown) -> None:
    from elmo_zh.contexts.drift import LEVEL, moved_lines
    from elmo_zh.contexts.occurrences import keyword_lines

    ends, lines, results = (drift.periods[0], drift.periods[-1]), [], []
    for word in top:
        moved = moved_lines(*ends, word.word, drift.layer, options.lines)
        for period, lines_of_period in zip(ends, moved, strict=True):
            shown = keyword_lines(lines_of_period)
            lines += ["", joined([word.word, period.name]), *(f"  {line}" for line in shown)] if shown else []
        described = ([line.described() for line in lines_of_period] for lines_of_period in moved)
        more = dict(zip(("old_lines", "new_lines"), described, strict=True))
        results.append({**_rounded(asdict(word)), "change": word.change, **more})
    compared = {
        "layer": drift.layer,
        "by": drift.by,
        "compared_words": len(drift.words),
        "shared_words": drift.num_shared,
        "changed_words": sum(word.q < LEVEL for word in drift.words),
    }
    common.finish(
        {
            **compared,
            "periods": [{"name": period.name, "by_lines": period.by_lines} for period in drift.periods],
            "fragments": dict(drift.fragments),
            "words": results,
        },
        [*table([row for word in top for row in _drift_rows(word, drift.by)]), *lines, "", *figures(compared)],
        following=("neighbours", top[0].word, "--in", "SENTENCE", "--index", drift.periods[-1].index.path),
    )


def _drift_rows(word: "WordDrift", by: str) -> Iterator[dict[str, Any]]:
    """Yield the row that is shown for each comparison of a word."""
    names = ("old", "new", "old_count", "new_count", by, "low", "high", "baseline", "p", "q")
    for comparison in word.comparisons():
        yield {"word": word.word, **{name: getattr(comparison, name) for name in names}}


def _rounded(value: Any, *names: str) -> Any:
    """Return a value for JSON with numbers rounded to six decimals; if names are given, with only these items."""
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items() if not names or name in names}
    if isinstance(value, tuple):
        return [*map(_rounded, value)]
    return round(value, 6) if isinstance(value, float) else value


@click.command()
@click.argument("text")
@takes(SubstituteOptions, "options")
@shared_options("model", "segmented")
@common_options_of_readers
def substitutes(common: Common, /, text: str, options: SubstituteOptions) -> None:
    """Show words similar in meaning to a word in a sentence.

    Use it to see which sense a model gives a word in a sentence. TEXT is one sentence, including its full stop.
    Substitutes are ranked by how well both LMs predict them in coordination with the word, as in 苹果 和 _. With
    --ranking slot, they are ranked by how well they fit in place of the word, which is listed with its own rank.
    docs/methods.md has the formulas.

    \b
    Example:
      elmo-zh substitutes 我昨天买了一个苹果。 --word 苹果
      elmo-zh substitutes 我昨天买了一个苹果。 --word 苹果 --ranking slot
    """
    if not options.word.strip():
        raise OptionError.unexpected('--word ""', "苹果")
    from elmo_zh.contexts.occurrences import require_occurrences
    from elmo_zh.embed.embedder import ElmoEmbedder

    bundle = load_model(common, common.model)
    bundle.require_probabilities()
    embedder = ElmoEmbedder(bundle, "cpu", unknown=common.config.embed.unknown)
    occurrences = require_occurrences(embedder, text, options.word, segmented=common.segmented)
    for occurrence in occurrences:
        if cut := occurrence.describe_cut():
            common.console.note(cut)
    word = occurrences[0].word
    if options.ranking == "pattern":
        warn_of_unknown(common, embedder, word)
    ranked = embedder.substitutes_many(
        [(occurrence.tokens, occurrence.position) for occurrence in occurrences],
        options.top,
        ranking=options.ranking,
        with_punctuation=options.with_punctuation,
    )
    hide = options.ranking == "pattern"
    results = [_substitutes_result(*pair, hide=hide) for pair in zip(occurrences, ranked, strict=True)]
    common.finish(
        {"ranking": options.ranking, "occurrences": results},
        (line for pair in zip(occurrences, results, strict=True) for line in _describe_substitutes(*pair)),
        bundle=bundle,
    )


def _substitutes_result(occurrence: "TokenInSentence", ranked: "Substitutes", *, hide: bool) -> dict[str, Any]:
    of_word = {} if hide else {"own": _four_digits(ranked.own) if ranked.own else None}
    best = ranked.others if hide else ranked.best
    return {**occurrence.described(), **of_word, "substitutes": [*map(_four_digits, best)]}


def _four_digits(substitute: "Substitute") -> dict[str, Any]:
    """Return the values, rounded to four significant digits so that they do not depend on the batch."""
    values = asdict(substitute).items()
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in values}


def _describe_substitutes(occurrence: "TokenInSentence", result: dict[str, Any]) -> Iterator[str]:
    tokens = [f"[{token}]" if i == occurrence.position else token for i, token in enumerate(occurrence.tokens)]
    yield " ".join(tokens)
    best, row_of_word = result["substitutes"], result.get("own")
    yield from table(best if row_of_word is None or row_of_word["rank"] <= len(best) else [*best, row_of_word])
    if "own" in result and row_of_word is None:
        yield _(UNSEEN).format(word=occurrence.word)
    yield ""
