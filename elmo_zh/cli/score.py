"""The commands that measure how probable text is: evaluate for all of it together, score for each line."""

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_model, model_path
from elmo_zh.cli.options import (
    ENGINE,
    INPUT,
    Common,
    common_options,
    common_options_of_readers,
    figures,
    input_argument,
    output_option,
    refuse_together,
    shared_options,
    table,
    takes,
)
from elmo_zh.contexts import SCORE_FORMATS, ScoreOptions
from elmo_zh.errors import CorpusError
from elmo_zh.language import _
from elmo_zh.run.tables import TABLE_SUFFIXES, chosen_format, save_rows

if TYPE_CHECKING:
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import ScoreCounts, ScoreReport


@click.command()
@input_argument
@shared_options("model", "segmented", *INPUT, "stateful")
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
    _report_words(common, scorer, counts)
    measured = counts.figures()
    assert measured is not None, "evaluate_texts raises an error for text without a sentence"
    common.finish(asdict(measured), *figures(asdict(measured)), bundle=bundle)


@click.command()
@input_argument
@shared_options("model")
@output_option("FILE", "File to write; repeat an interrupted command to resume it. Default: standard output.")
@shared_options("segmented", *INPUT)
@takes(ScoreOptions, "options")
@shared_options(*ENGINE)
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
    if common.segmented:
        refuse_together("--segmented", {"--split-sentences": options.split_sentences})
    _check_usage(common, output, options)
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import KeepRule, ScoreJob
    from elmo_zh.run.job import run_job

    keep_freed_memory()
    if options.pairs is not None:
        _score_pairs(common, files, output, options.pairs)
        return
    keeps = options.keep_below is not None or options.keep_share is not None
    keep = KeepRule(below=options.keep_below or 0.0, share=options.keep_share) if keeps else None
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
            with common.choose_engine(common.config).started(0) as engine:
                job = replace(job, output=output)
                report = run_job(job, force=common.force, reporter=common.console, engine=engine)
    _finish(common, scorer, report, output)


def _check_usage(common: Common, output: Path | None, options: ScoreOptions) -> None:
    by_token, keep = {"--by token": options.by == "token"}, {"--keep-share": options.keep_share is not None}
    forms = {**by_token, "--format": options.kind is not None}
    all_keeps = {**keep, "--keep-below": options.keep_below is not None}
    splits = {"--split-sentences": options.split_sentences, "--against": options.against is not None}
    if options.pairs is not None:
        refuse_together("--pairs", {**forms, **all_keeps, **splits})
        return
    if options.keep_below is not None:
        refuse_together("--keep-below", {**keep, **forms})
    if options.keep_share is not None:
        refuse_together("--keep-share", forms)
    if options.against is not None:
        refuse_together("--against", by_token)
    for option, is_used in {"--json": common.as_json, "--engine dask": common.engine != "local"}.items():
        if is_used and output is None:
            raise click.UsageError(_("{option} needs a file for the scores. Add --output FILE.").format(option=option))


def _score_pairs(common: Common, files: tuple[str, ...], output: Path | None, pairs: str) -> None:
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import accuracies, iter_pair_scores, parse_pair_columns

    names = parse_pair_columns(pairs)
    with common.claimed(output, formats=TABLE_SUFFIXES), common.opened_texts(files, field=names[0]) as texts:
        bundle = load_model(common, model_path(common.model), "scores are")
        scores = list(iter_pair_scores(LineScorer(bundle), texts, names, common.console))
        if not scores:
            text = _("{files} has no pairs. Give records with two sentences each.")
            raise CorpusError(text.format(files=", ".join(files)))
        if output:
            save_rows(({**pair._asdict(), "is_right": int(pair.judgements()["right"])} for pair in scores), output)
    groups = accuracies(scores)
    totals = {measure: sum(group[measure] for group in groups.values()) for measure in scores[0].judgements()}
    rows: list[dict[str, Any]] = [
        {"kind": kind, "pairs": group["pairs"], **{name: group[name] / group["pairs"] for name in totals}}
        for kind, group in groups.items()
    ]
    shares = {name: total / len(scores) for name, total in totals.items()}
    written = str(output) if output else None
    common.finish(
        {"pairs": len(scores), **totals, "groups": groups, "output": written},
        *table([*rows, {"kind": _("all"), "pairs": len(scores), **shares}]),
        *figures({"output": written}),
        bundle=bundle,
    )


def _finish(common: Common, scorer: "LineScorer", report: "ScoreReport", output: Path | None) -> None:
    """Warn about unknown words and report what was written; use stderr if the scores go to stdout."""
    counts = report.counts
    _report_words(common, scorer, counts)
    measured = counts.figures()
    result = {
        "output": str(output) if output else None,
        **counts.described(),
        **({} if report.kept is None else {"kept": report.kept}),
        "perplexity": measured.perplexity if measured else None,
        "bits_per_character": measured.bits_per_character if measured else None,
    }
    lines = figures(result)
    if output is None:
        for line in lines:
            common.console.note(line)
        return
    keep = ("score", "FILE", "--keep-share", "0.8", "--output", "kept.txt")
    train = ("pipeline", output, "--run", "runs/NAME") if report.kept else ()
    following = keep if report.kept is None else train
    common.finish(result, *lines, bundle=scorer.bundle, following=following)


def _report_words(common: Common, scorer: "LineScorer", counts: "ScoreCounts") -> None:
    """Report how many words were truncated, and warn if the share of unknown words is far higher than in training."""
    from elmo_zh.embed.unknown_rate import describe_unknown_rate

    if counts.cut_words:
        text = _("Words truncated because the model cannot read them whole: {cut_words}")
        common.console.note(text.format(cut_words=f"{counts.cut_words:,}"))
    warning = describe_unknown_rate(scorer.bundle, counts.tokens, counts.unknown, counts.unknown_words.counts)
    if warning:
        common.console.warn(warning)
