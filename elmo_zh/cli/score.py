"""The commands that measure how probable text is: evaluate for all of it together, score for each line."""

import math
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_model, model_path, refuse_splitting
from elmo_zh.cli.options import (
    Common,
    common_options,
    common_options_of_readers,
    engine_options,
    input_argument,
    input_options,
    output_option,
    shared_options,
    takes,
)
from elmo_zh.contexts import SCORE_FORMATS, ScoreOptions
from elmo_zh.errors import CorpusError
from elmo_zh.invocation import program
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import aligned, counted
from elmo_zh.run.tables import TABLE_SUFFIXES, chosen_format, save_rows

if TYPE_CHECKING:
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import ScoreCounts, ScoreJob, ScoreReport


@click.command()
@input_argument
@shared_options("model", "segmented")
@input_options
@shared_options("stateful")
@common_options_of_readers
def evaluate(common: Common, /, files: tuple[str, ...]) -> None:
    """Measure a text's exact perplexity and bits per character.

    Use it to compare models on the same text. If their vocabularies differ, compare bits per character, not perplexity.
    FILE is a text in any format that segment reads, a folder, or - for standard input. Raw text is split into sentences
    and words as in training. No line is skipped: a line that cannot be read is an error.

    \b
    Example:
      elmo-zh evaluate heldout.txt --model runs/mine/model
      elmo-zh evaluate reviews.csv --field review --model runs/mine/model
      elmo-zh evaluate runs/mine/segmented/heldout-00000.txt --segmented --json
    """
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import evaluate_texts

    keep_freed_memory()
    with common.opened_texts(files) as texts:
        bundle = load_model(common, model_path(common.model), "perplexity is")
        splits = not common.segmented and bundle.text is not None and bundle.text.split_sentences
        scorer = LineScorer(bundle, segmented=common.segmented, split_sentences=splits)
        counts = evaluate_texts(scorer, texts, stateful=common.stateful, reporter=common.console)
    _report_words(
        common, scorer, counts, _(" Unknown words lower the perplexity, so compare bits per character instead.")
    )
    figures = counts.figures()
    assert figures is not None, "evaluate_texts raises an error for text without a sentence"
    common.finish(
        asdict(figures),
        _(
            "perplexity {perplexity} (forward {forward_perplexity}, backward {backward_perplexity}),"
            " {bits_per_character} bits per character, {oov_rate} of the words unknown,"
            " {num_predictions}"
        ).format(
            perplexity=f"{figures.perplexity:,.2f}",
            forward_perplexity=f"{figures.forward_perplexity:,.2f}",
            backward_perplexity=f"{figures.backward_perplexity:,.2f}",
            bits_per_character=f"{figures.bits_per_character:.4f}",
            oov_rate=f"{figures.oov_rate:.2%}",
            num_predictions=counted(figures.num_predictions, "{number} prediction", "{number} predictions"),
        ),
        bundle=bundle,
    )


@click.command()
@input_argument
@shared_options("model")
@output_option("FILE", "File to write; repeat an interrupted command to resume it. Default: standard output.")
@shared_options("segmented")
@input_options
@takes(ScoreOptions, "options")
@engine_options
@common_options
def score(common: Common, /, files: tuple[str, ...], output: Path | None, options: ScoreOptions) -> None:
    """Score lines of text, or keep those that score best.

    Use it to find unusual lines, to clean a corpus, or to select text from a particular domain. Scores are exact costs
    under the forward and the backward LM, in nats and in bits per character: the lower the score, the more probable the
    line. To find text from a domain, compare a model of the domain (--model) with a general model (--against; Moore and
    Lewis 2010). FILE is a text in any format that segment reads, a folder, or - for standard input. A line is one
    sentence unless --split-sentences is given; no line is skipped. docs/contexts.md describes the columns.

    \b
    Example:
      elmo-zh score file.txt
      elmo-zh score file.txt --by token --format jsonl --output tokens.jsonl
      elmo-zh score web.txt --keep-share 0.8 --output clean.txt
      elmo-zh score web.txt --against runs/general/model --keep-below 0 --output domain.txt
      elmo-zh score pairs.csv --pairs good,bad,phenomenon
    """
    refuse_splitting(common, options.split_sentences)
    config = common.config
    _check_usage(common, output, options)
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import KeepRule, ScoreJob
    from elmo_zh.run.job import run_job

    keep_freed_memory()
    if options.pairs is not None:
        _score_pairs(common, files, output, options.pairs)
        return
    keep = KeepRule(below=options.keep_below or 0.0, share=options.keep_share) if _keeps(options) else None
    reading: dict[str, Any] = {
        "segmented": common.segmented, "split_sentences": options.split_sentences, "by_token": options.by == "token"
    }  # fmt: skip
    paths = [common.model, options.against] if options.against else [common.model]
    with common.opened_texts(files) as texts:
        models = (load_model(common, model_path(path), "scores are") for path in paths)
        scorer, *others = [LineScorer(model, **reading) for model in models]
        other = others[0] if others else None
        kind = chosen_format(options.kind, None if keep else output, SCORE_FORMATS)
        job = ScoreJob(scorer=scorer, texts=texts, other=other, kind=kind, keep=keep)
        if output is None:
            report = job.print(sys.stdout.buffer, common.console)
        else:
            with common.choose_engine(config).started(0) as engine:
                report = run_job(
                    replace(job, output=output), force=common.force, reporter=common.console, engine=engine
                )
    _finish(common, job, report, output)


def _score_pairs(common: Common, files: tuple[str, ...], output: Path | None, pairs: str) -> None:
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import accuracies, iter_pair_scores, parse_pair_columns

    names = parse_pair_columns(pairs)
    with common.claimed(output, formats=TABLE_SUFFIXES), common.opened_texts(files, field=names[0]) as texts:
        bundle = load_model(common, model_path(common.model), "scores are")
        scorer = LineScorer(bundle)
        scores = list(iter_pair_scores(scorer, texts, names, common.console))
        if not scores:
            text = _("{files} has no pairs. Give records with two sentences each.")
            raise CorpusError(text.format(files=", ".join(files)))
        if output:
            save_rows(({**pair._asdict(), "is_right": int(pair.judgements()["right"])} for pair in scores), output)
    groups = accuracies(scores)
    totals = {measure: sum(group[measure] for group in groups.values()) for measure in scores[0].judgements()}
    rows = [
        [kind, f"{group['pairs']:,}", *(f"{group[measure] / group['pairs']:.1%}" for measure in totals)]
        for kind, group in groups.items()
    ]
    header = [N_("kind"), N_("pairs"), N_("by probability"), N_("by perplexity"), N_("by SLLN-LP")]
    right, by_perplexity, by_slln_lp = (f"{total / len(scores):.1%}" for total in totals.values())
    summary = _(
        "The first sentence is more probable in {totals} of {scores}: {right} ({by_perplexity}"
        " by perplexity, {by_slln_lp} by SLLN-LP)"
    ).format(
        totals=f"{totals['right']:,}",
        scores=counted(len(scores), "{number} pair", "{number} pairs"),
        right=right,
        by_perplexity=by_perplexity,
        by_slln_lp=by_slln_lp,
    )
    common.finish(
        {"pairs": len(scores), **totals, "groups": groups, "output": str(output) if output else None},
        *(aligned(rows, header=header) if len(rows) > 1 else ()),
        summary,
        *([_("Wrote {output}").format(output=output)] if output else []),
        bundle=bundle,
    )


def _keeps(options: ScoreOptions) -> bool:
    return options.keep_below is not None or options.keep_share is not None


def _check_usage(common: Common, output: Path | None, options: ScoreOptions) -> None:
    limits = {"--keep-below": options.keep_below, "--keep-share": options.keep_share}
    if options.pairs is not None:
        if _keeps(options) or options.kind or options.by == "token" or options.against or options.split_sentences:
            raise click.UsageError(
                _(
                    "--pairs cannot be combined with --against, --by token, --format, --keep-below,"
                    " --keep-share or --split-sentences. Use --pairs without these options."
                )
            )
        return
    if common.as_json and output is None:
        raise click.UsageError(_("With --json, stdout is for the result. Write the scores to a file: --output FILE"))
    if common.engine != "local" and output is None:
        raise click.UsageError(_("--engine dask needs an output file on a disk that all workers share: --output FILE"))
    if None not in limits.values():
        raise click.UsageError(_("--keep-below and --keep-share cannot be combined. Give only one of them."))
    if not math.isfinite(options.keep_below or 0):
        raise click.UsageError(_("--keep-below must be a finite number."))
    if _keeps(options) and (options.kind or options.by == "token"):
        raise click.UsageError(_("--keep-below and --keep-share write whole lines. Leave out --format and --by token."))
    if options.against and options.by == "token":
        raise click.UsageError(_("--against compares whole lines, not tokens. Leave out --by token."))


def _finish(common: Common, job: "ScoreJob", report: "ScoreReport", output: Path | None) -> None:
    """Warn about unknown words and report what was written; use stderr if the scores go to stdout."""
    scorer, counts = job.scorer, report.counts
    _report_words(common, scorer, counts)
    lines = _describe(report, output)
    if output is None:
        for line in lines:
            common.console.note(line)
        return
    if report.kept is None and counts.tokens:
        lines.append(
            _("Next, keep the most probable lines: {program} score FILE --keep-share 0.8 --output kept.txt").format(
                program=program()
            )
        )
    elif report.kept:
        lines.append(
            _("Next, train on the kept lines: {program} pipeline {output} --run runs/NAME").format(
                program=program(), output=shlex.quote(str(output))
            )
        )
    figures = counts.figures()
    kept = {} if report.kept is None else {"kept": report.kept}
    common.finish(
        {
            "output": str(output),
            **counts.described(),
            **kept,
            "perplexity": figures.perplexity if figures else None,
            "bits_per_character": figures.bits_per_character if figures else None,
        },
        *lines,
        bundle=scorer.bundle,
    )


def _report_words(common: Common, scorer: "LineScorer", counts: "ScoreCounts", advice: str = "") -> None:
    """Report how many words were truncated, and warn if the share of unknown words is far higher than in training."""
    from elmo_zh.embed.unknown_rate import describe_unknown_rate

    if counts.cut_words:
        common.console.note(
            _("Words truncated because the model cannot read them whole: {cut_words}").format(
                cut_words=f"{counts.cut_words:,}"
            )
        )
    warning = describe_unknown_rate(scorer.bundle, counts.tokens, counts.unknown, counts.unknown_words.counts)
    if warning:
        common.console.warn(warning + advice)


def _describe(report: "ScoreReport", output: Path | None) -> list[str]:
    counts, figures = report.counts, report.counts.figures()
    line = _("{lines} ({empty_lines} empty), {tokens} ({unknown} unknown)").format(
        lines=counted(counts.lines, "{number} line", "{number} lines"),
        empty_lines=f"{counts.empty_lines:,}",
        tokens=counted(counts.tokens, "{number} token", "{number} tokens"),
        unknown=f"{counts.unknown:,}",
    )
    if figures:
        line = _("{line}, perplexity {perplexity}, {bits_per_character} bits per character").format(
            line=line, perplexity=f"{figures.perplexity:,.2f}", bits_per_character=f"{figures.bits_per_character:.4f}"
        )
    place = f": {output}" if output else ""
    return (
        [line + place]
        if report.kept is None
        else [
            line,
            _("{kept} kept{place}").format(kept=counted(report.kept, "{number} line", "{number} lines"), place=place),
        ]
    )
