"""The command that compares how words are used in different periods."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.bundle.find_bundle import shown_model
from elmo_zh.cli.model_options import IndexPath
from elmo_zh.cli.options import Common, common_options, takes
from elmo_zh.cli.senses import require_picture
from elmo_zh.contexts import DriftOptions
from elmo_zh.invocation import program, typed_word
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import aligned, counted, first_ten

if TYPE_CHECKING:
    from elmo_zh.contexts.drift import Comparison, Drift, WordDrift
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.occurrences import NeighbourLine


@click.command()
@click.argument("indexes", type=IndexPath(), nargs=-1, required=True, metavar="INDEX...")
@takes(DriftOptions, "options")
@common_options
def drift(common: Common, /, indexes: tuple[Path, ...], options: DriftOptions) -> None:
    """Find words used differently in different periods or texts.

    Give one index per period, oldest first, all made with the same model; or one index and --periods, the column that
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
    if options.periods is not None and len(indexes) > 1:
        raise click.UsageError(_("--periods divides a single index. Leave out --periods, or give one INDEX."))
    require_picture(options.picture)
    from elmo_zh.contexts.build_index import load_word_list
    from elmo_zh.contexts.drift import measure_drift, moved_lines, rows
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.run.tables import save_rows

    loaded = [ContextIndex.load(path) for path in indexes]
    with common.claimed(options.output, options.picture):
        words = load_word_list(options.words) if options.words else None
        measured = measure_drift(
            *loaded,
            periods=options.periods,
            layer=options.layer,
            min_count=options.min_count,
            words=words,
            by=options.by,
            with_fragments=options.with_fragments,
            permutations=options.permutations,
            seed=options.seed,
            reporter=common.console,
        )
        if options.output:
            save_rows(rows(measured.words), options.output, ".tsv")
        top = measured.words[: options.top]
        if options.picture:
            _draw(measured, top, options.picture)
    _report(common, measured, loaded)
    _warn(common, measured, loaded, words, options)
    ends = measured.periods[0], measured.periods[-1]
    lines = [moved_lines(*ends, word.word, measured.layer, options.lines) for word in top]
    _finish(common, measured, list(zip(top, lines, strict=True)), options)


def _draw(drift: "Drift", top: "Sequence[WordDrift]", picture: Path) -> None:
    from elmo_zh.contexts.drift import LEVEL
    from elmo_zh.pictures.canvas import save_picture
    from elmo_zh.pictures.usages import Point, drift_figure

    curves = {
        word.word: [Point(step.distance, step.low, step.high, step.q < LEVEL) for step in word.steps] for word in top
    }
    boundaries = [step.boundary for step in top[0].steps]
    save_picture(
        drift_figure(curves, boundaries, _("{by}, layer {layer}").format(by=drift.by, layer=drift.layer)), picture
    )


def _report(
    common: Common,
    drift: "Drift",
    indexes: "Sequence[ContextIndex]",
) -> None:
    """Report what was compared and what was left out."""
    from elmo_zh.contexts.drift import LEAST_DOCUMENTS, LEVEL

    model = shown_model(Path(indexes[0].model["path"]))
    common.console.note(
        _(
            "Model: {model}. Compared {words} in layer {layer}, out of {num_shared} that occur in"
            " every period. Words with q below {LEVEL}: {value}."
        ).format(
            model=model,
            words=counted(len(drift.words), "{number} word", "{number} words"),
            layer=drift.layer,
            num_shared=f"{drift.num_shared:,}",
            LEVEL=LEVEL,
            value=f"{sum(word.q < LEVEL for word in drift.words):,}",
        )
    )
    if by_lines := [period.name for period in drift.periods if period.by_lines]:
        common.console.note(
            _(
                "Periods with fewer than {LEAST_DOCUMENTS} documents: {by_lines}. In these, the test"
                " treats each raw line as a document, so the topic of one document may look like a change."
            ).format(LEAST_DOCUMENTS=LEAST_DOCUMENTS, by_lines=first_ten(by_lines))
        )
    if drift.fragments:
        pairs = [f"{word} ({whole})" for word, whole in drift.fragments.items()]
        common.console.note(
            _("Left out {pairs} of longer words: {pairs2}. To compare fragments too, add --with-fragments.").format(
                pairs=counted(len(pairs), "{number} fragment", "{number} fragments"), pairs2=first_ten(pairs)
            )
        )


def _warn(
    common: Common,
    drift: "Drift",
    indexes: "Sequence[ContextIndex]",
    words: frozenset[str] | None,
    options: DriftOptions,
) -> None:
    """Warn about equal texts, words of --words that were not compared, and tests that cannot succeed."""
    from elmo_zh.contexts.drift import LEVEL

    if len(indexes) > 1 and all(_texts_of(index) == _texts_of(indexes[0]) for index in indexes):
        common.console.warn(
            _("All indexes are of the same text, so no word can have changed. Give indexes of different texts.")
        )
    known = {word.word for word in drift.words} | drift.fragments.keys()
    if missing := sorted((words or frozenset()) - known):
        common.console.warn(
            _(
                "{missing} from --words could not be compared: {missing2}. A word must occur in at least"
                " {min_count} different sentences (--min-count) and two documents per period."
            ).format(
                missing=counted(len(missing), "{number} word", "{number} words"),
                missing2=first_ten(missing),
                min_count=options.min_count,
            )
        )
    least = 1 / (options.permutations + 1)
    if any(word.p <= least for word in drift.words) and all(word.q >= LEVEL for word in drift.words):
        common.console.warn(
            _("{permutations} may be too few for {words}: no q is below {LEVEL}. Use --permutations {words2}").format(
                permutations=counted(options.permutations, "{number} permutation", "{number} permutations"),
                words=counted(len(drift.words), "{number} word", "{number} words"),
                LEVEL=LEVEL,
                words2=round(len(drift.words) / LEVEL) + 1,
            )
        )


def _texts_of(index: "ContextIndex") -> list[dict[str, Any]]:
    """Return each text's digest and the settings it was read with, such as its field, but not its name."""
    return [{name: value for name, value in text.items() if name != "name"} for text in index.info["texts"]]


def _finish(
    common: Common,
    found: "Drift",
    top: "list[tuple[WordDrift, tuple[list[NeighbourLine], list[NeighbourLine]]]]",
    options: DriftOptions,
) -> None:
    from elmo_zh.contexts.drift import LEVEL

    lines = _table_lines([word for word, _ in top])
    for word, moved in top:
        if any(moved) or len(word.steps) > 1:
            lines += ["", word.word, *_step_lines(word), *_moved_line_rows((word.old, word.new), moved)]
    lines.append("")
    if options.output:
        lines.append(f"{counted(len(found.words), '{number} word', '{number} words')}: {options.output}")
    if options.picture:
        lines.append(_("Wrote {picture}").format(picture=options.picture))
    first, index = typed_word(top[0][0].word), found.periods[-1].index.path
    lines.append(
        _("Next: {program} neighbours {first} --in SENTENCE --index {index}").format(
            program=program(), first=first, index=shlex.quote(str(index))
        )
    )
    results = [
        {
            **_rounded(asdict(word)),
            "change": word.change,
            "old_lines": [each.described() for each in old],
            "new_lines": [each.described() for each in new],
        }
        for word, (old, new) in top
    ]
    written = {"output": options.output, "picture": options.picture}
    common.finish(
        {
            "layer": found.layer,
            "by": found.by,
            "periods": [{"name": period.name, "by_lines": period.by_lines} for period in found.periods],
            "compared_words": len(found.words),
            "shared_words": found.num_shared,
            "changed_words": sum(each.q < LEVEL for each in found.words),
            "fragments": dict(found.fragments),
            "words": results,
            **{name: str(path) if path else None for name, path in written.items()},
        },
        *lines,
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [*map(_rounded, value)]
    return round(value, 6) if isinstance(value, float) else value


def _table_lines(words: "Sequence[WordDrift]") -> list[str]:
    """Return the lines of a table that compares the first and the last period for each word."""
    from elmo_zh.contexts.drift_statistics import MEASURES

    optional = {
        _("change"): [word.change for word in words],
        _("fragment"): [word.fragment for word in words],
    }
    more = {name: cells for name, cells in optional.items() if any(cells)}
    measures = [name for name in MEASURES if getattr(words[0], name) is not None]
    header = [N_("word"), words[0].old, words[0].new]
    header += ["excess" if name == "excess" else name.upper() for name in measures]
    header += [N_("interval"), N_("baseline"), N_("old spread"), N_("new spread"), "p", "q", *more]
    cells_of_words = []
    for number, word in enumerate(words):
        row = [word.word, f"{word.old_count:,}", f"{word.new_count:,}"]
        row += [f"{getattr(word, name):.4f}" for name in measures]
        row += [_interval(word), *(f"{value:.4f}" for value in (word.baseline, word.old_spread, word.new_spread))]
        row += [f"{word.p:.2g}", f"{word.q:.2g}", *(cells[number] or "-" for cells in more.values())]
        cells_of_words.append(row)
    return list(aligned(cells_of_words, header=header))


def _step_lines(word: "WordDrift") -> list[str]:
    """Return the distances between consecutive periods, one per line; empty if there are only two periods."""
    if len(word.steps) < 2:
        return []
    cells = [
        [
            step.boundary,
            f"{step.distance:.4f}",
            f"({_interval(step)})",
            _("baseline {value}").format(value=f"{step.baseline:.4f}"),
            f"p {step.p:.2g}",
            f"q {step.q:.2g}",
        ]
        for step in word.steps
    ]
    return [f"  {line}" for line in aligned(cells)]


def _moved_line_rows(periods: Sequence[str], lines: "Sequence[Sequence[NeighbourLine]]") -> list[str]:
    """Align lines from two periods at the word, with the name of its period before each line."""
    from elmo_zh.contexts.occurrences import keyword_lines

    names = [name for name, lines_of_period in zip(periods, lines, strict=True) for _ in lines_of_period]
    shown = keyword_lines([line for lines_of_period in lines for line in lines_of_period])
    return [f"  {line}" for line in aligned([*zip(names, shown, strict=True)], left=(0, 1))]


def _interval(compared: "Comparison") -> str:
    return _("{low} to {high}").format(low=f"{compared.low:.4f}", high=f"{compared.high:.4f}")
