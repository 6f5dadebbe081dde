"""The commands that read text with a model: embed writes vectors; evaluate and score measure how probable text is."""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.declared import takes
from elmo_zh.cli.model_options import load_embedder, load_model
from elmo_zh.cli.options import (
    ENGINE,
    INPUT,
    Common,
    common_options,
    common_options_of_readers,
    figures,
    input_argument,
    reads,
    refuse_together,
    shared_options,
    table,
)
from elmo_zh.config.declare import declare
from elmo_zh.contexts import SCORE_FORMATS, ScoreOptions
from elmo_zh.errors import CorpusError, OptionError
from elmo_zh.language import _
from elmo_zh.run.reporter import first_ten
from elmo_zh.run.tables import TABLE_SUFFIXES, chosen_format, save_rows

if TYPE_CHECKING:
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import ScoreCounts
    from elmo_zh.embed.dump import DumpJob, DumpSettings, Target
    from elmo_zh.embed.embedder import ElmoEmbedder
    from elmo_zh.engine import Engine


@dataclass(frozen=True, kw_only=True)
class EmbedOptions:
    """The options of `embed` that are neither settings nor in `Common`."""

    split_sentences: bool = declare(False, "Split lines into sentences as in training.")
    mix_weights: Path | None = declare(
        None,
        'JSON file with the learned weights for --layers mix: {"scalar_parameters": [...], "gamma": ...}.',
        path={"dir_okay": False},
        metavar="FILE",
    )
    sentence_index: bool = declare(
        False, "Add AllenNLP's dataset sentence_to_index to HDF5 output; this keeps all sentences in memory."
    )


@click.command()
@input_argument
@shared_options("model", "segmented", *INPUT, "user_dictionary")
@shared_options(
    "output",
    help="File or folder to write. Default: FILE with the format's suffix, such as FILE.hdf5; for standard input, a"
    " file named embeddings, with that suffix, in the current folder.",
    path={},
)
@takes(EmbedOptions, "options")
@shared_options("embed.layers", "embed.pool", "embed.dtype", "embed.format", "embed.precision", "embed.unknown")
@shared_options("stateful", "device", *ENGINE)
@common_options
@reads("embed")
def embed(common: Common, /, files: tuple[str, ...], options: EmbedOptions) -> None:
    """Write the vectors of each line of a text file.

    Use it to make vectors for other programs. FILE is a text in any format that the segment command reads, a folder,
    or - for standard input; each file has an output of its own. A line is a line of a text file, or a record of CSV
    or JSON; no line is skipped. In HDF5, the datasets "0", "1", ... hold the vectors of the lines, by default of shape
    (layers, tokens, dimensions); tokens/0, ... hold the words and, for raw text, offsets/0, ... their positions in the
    line. docs/embedding.md describes the formats. An interrupted command resumes if it is run again.

    \b
    Example:
      elmo-zh embed file.txt
      elmo-zh embed file.txt --layers average --dtype float16 --output vectors.hdf5
      elmo-zh embed texts/ more.txt.gz --output vectors/ --format npy
      elmo-zh embed hotel.csv --field review --split-sentences
      elmo-zh embed big.txt --engine dask --scheduler tcp://192.168.0.1:8786
      echo 今天天气很好 | elmo-zh embed -
    """
    if common.segmented:
        refuse_together("--segmented", {"--split-sentences": options.split_sentences})
    if common.stateful:
        refuse_together("--stateful", {"--engine": common.engine != "local"})
    config = common.config
    from elmo_zh.corpus.input_texts import opened_inputs
    from elmo_zh.embed.dump import DumpJob, is_single, plan_targets
    from elmo_zh.embed.formats import require_matching_suffix
    from elmo_zh.run.reporter import Hints

    if common.output is not None and is_single(files):
        require_matching_suffix(common.output, config.embed.format)
    with opened_inputs(files, common.console) as sources:
        suffix = f".{config.embed.format}"
        targets = plan_targets(files, sources, common.output, suffix, config.text, segmented=common.segmented)
        embedder = load_embedder(common)
        with common.choose_engine(config).started(0) as engine:
            make_job = partial(
                DumpJob,
                embedder=embedder,
                settings=_settings(common, options, embedder.num_layers),
                output_format=config.embed.format,
                sentence_index=options.sentence_index,
                hints=Hints(common.console),
            )
            _embed_texts(common, embedder, targets, is_single(files), make_job, engine)


def _settings(common: Common, options: EmbedOptions, num_layers: int) -> "DumpSettings":
    """Return the settings for turning lines into vectors, taken from the options and from section embed."""
    from elmo_zh.embed.dump import DumpSettings
    from elmo_zh.embed.reduction import load_mix_weights

    config = common.config.embed
    return DumpSettings(
        segmented=common.segmented,
        layers=config.layers,
        dtype=config.dtype,
        pool=config.pool,
        mix_weights=load_mix_weights(options.mix_weights, num_layers) if options.mix_weights else None,
        stateful=common.stateful,
        split_sentences=options.split_sentences,
    )


def _embed_texts(
    common: Common,
    embedder: "ElmoEmbedder",
    targets: list["Target"],
    is_single: bool,
    make_job: Callable[..., "DumpJob"],
    engine: "Engine",
) -> None:
    """Embed each text; for a folder or several files, skip a text whose output exists, unless --force is given."""
    from elmo_zh.corpus.content import UnsuitableError
    from elmo_zh.embed.text_tokens import TokenCounts
    from elmo_zh.run.job import run_job

    following = _("Next: read the vectors in Python, as docs/embedding.md shows.")
    results, skipped, total = [], [], TokenCounts()
    for target in targets:
        text, output = target.text, target.output
        if not is_single and output.exists() and not common.force:
            message = _("{output} already exists, so {name} is skipped. To replace existing outputs, add: --force")
            common.console.note(message.format(output=output, name=text.name))
            skipped.append(str(output))
            continue
        try:
            job = make_job(text=text, output=output)
            report = run_job(job, force=common.force, reporter=common.console, engine=engine)
        except UnsuitableError as error:
            text.skip(error, common.console)
            skipped.append(text.name)
            continue
        result = {"output": output, **report.counts.reported(), "unknown_words": dict(report.unknown_words)}
        if is_single:
            common.finish(result, bundle=embedder.bundle, following=following)
            return
        total.add(report.counts)
        results.append(result)
        for line in figures(result):
            common.console.note(line)
    summary = {"skipped": skipped, **total.reported()}
    common.finish({"outputs": results, **summary}, figures(summary), bundle=embedder.bundle, following=following)


@click.command()
@input_argument
@shared_options("model", "segmented", *INPUT, "stateful")
@common_options_of_readers
def evaluate(common: Common, /, files: tuple[str, ...]) -> None:
    """Measure a text's exact perplexity and bits per character.

    Use it to compare models on the same text. If their vocabularies differ, compare bits per character, not perplexity.
    FILE is a text in any format that segment reads, a folder, or - for standard input. Raw text is split into sentences
    and words as in training. A line that cannot be read is an error.

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
        bundle = load_model(common, common.model)
        splits = not common.segmented and bundle.text is not None and bundle.text.split_sentences
        scorer = LineScorer(bundle, segmented=common.segmented, split_sentences=splits)
        counts = evaluate_texts(scorer, texts, stateful=common.stateful, reporter=common.console)
    _report_words(common, scorer, counts)
    common.finish(asdict(counts.cost.figures()), bundle=bundle)


@click.command()
@input_argument
@shared_options("model")
@shared_options("output")
@shared_options("segmented", *INPUT)
@takes(ScoreOptions, "options")
@shared_options(*ENGINE)
@common_options
def score(common: Common, /, files: tuple[str, ...], options: ScoreOptions) -> None:
    """Score lines of text, or keep those that score best.

    Use it to find unusual lines, to clean a corpus, or to select text from a particular domain. Scores are exact
    negative log-probabilities under the forward and the backward LM, in nats and in bits per character: the lower the
    score, the more probable the line. To find text from a domain, compare a model of the domain (--model) with a
    general model (--against; Moore and Lewis 2010). FILE is a text in any format that segment reads, a folder, or - for
    standard input. A line is one sentence unless --split-sentences is given. docs/contexts.md describes the columns.

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
    _check_usage(common, options)
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import ScoreJob
    from elmo_zh.run.job import run_job

    keep_freed_memory()
    if options.pairs is not None:
        _score_pairs(common, files, options.pairs)
        return
    keep: dict[str, Any] = {"keep_below": options.keep_below, "keep_share": options.keep_share}
    reading: dict[str, Any] = {
        "segmented": common.segmented, "split_sentences": options.split_sentences, "by_token": options.by == "token"
    }  # fmt: skip
    paths = [common.model, options.against] if options.against else [common.model]
    with common.opened_texts(files) as texts:
        models = (load_model(common, path) for path in paths)
        scorer, *others = [LineScorer(model, **reading) for model in models]
        other = others[0] if others else None
        has_table = all(limit is None for limit in keep.values())
        kind = chosen_format(options.kind, common.output if has_table else None, SCORE_FORMATS)
        job = ScoreJob(scorer=scorer, texts=texts, other=other, kind=kind, **keep)
        if common.output is None:
            counts = job.print(sys.stdout.buffer, common.console)
        else:
            with common.choose_engine(common.config).started(0) as engine:
                job = replace(job, output=common.output)
                counts = run_job(job, force=common.force, reporter=common.console, engine=engine)
    _finish(common, scorer, counts)


def _check_usage(common: Common, options: ScoreOptions) -> None:
    by_token, keep = {"--by token": options.by == "token"}, {"--keep-share": options.keep_share is not None}
    forms = {**by_token, "--format": options.kind is not None}
    all_keeps = {**keep, "--keep-below": options.keep_below is not None}
    splits = {"--split-sentences": options.split_sentences, "--against": options.against is not None}
    if options.pairs is not None:
        refuse_together("--pairs", {**forms, **all_keeps, **splits, "--engine": common.engine != "local"})
        return
    if options.keep_below is not None:
        refuse_together("--keep-below", {**keep, **forms})
    if options.keep_share is not None:
        refuse_together("--keep-share", forms)
    if options.against is not None:
        refuse_together("--against", by_token)
    for option, is_used in {"--json": common.as_json, "--engine dask": common.engine != "local"}.items():
        if is_used and common.output is None:
            raise OptionError.needs(option, "--output FILE")


def _score_pairs(common: Common, files: tuple[str, ...], pairs: str) -> None:
    from elmo_zh.contexts.line_scorer import LineScorer
    from elmo_zh.contexts.score_texts import accuracies, iter_pair_scores, parse_pair_columns

    names = parse_pair_columns(pairs)
    with common.claimed(*TABLE_SUFFIXES), common.opened_texts(files, field=names[0]) as texts:
        bundle = load_model(common, common.model)
        scores = list(iter_pair_scores(LineScorer(bundle), texts, names, common.console))
        if not scores:
            raise CorpusError.no_text(first_ten(files))
        if common.output:
            rows = ({**pair._asdict(), "is_right": int(pair.judgements()["right"])} for pair in scores)
            save_rows(rows, common.output)
    groups = accuracies(scores)
    totals = {measure: sum(group[measure] for group in groups.values()) for measure in scores[0].judgements()}
    shown: list[dict[str, Any]] = [
        {"kind": kind, "pairs": group["pairs"], **{name: group[name] / group["pairs"] for name in totals}}
        for kind, group in groups.items()
    ]
    shares = {name: total / len(scores) for name, total in totals.items()}
    common.finish(
        {"pairs": len(scores), **totals, "groups": groups},
        table([*shown, {"kind": _("total"), "pairs": len(scores), **shares}]),
        bundle=bundle,
    )


def _finish(common: Common, scorer: "LineScorer", counts: "ScoreCounts") -> None:
    """Warn about unknown words and report what was written; use stderr if the scores go to stdout."""
    _report_words(common, scorer, counts)
    measured = counts.cost.figures() if counts.cost.num_sentences else None
    result = {
        **counts.described(),
        **({} if counts.kept is None else {"kept": counts.kept}),
        "perplexity": measured.perplexity if measured else None,
        "bits_per_character": measured.bits_per_character if measured else None,
    }
    lines = figures({name: value for name, value in result.items() if not name.endswith("_nats")})
    if common.output is None:
        for line in lines:
            common.console.note(line)
        return
    keep = ("score", "FILE", "--keep-share", "0.8", "--output", "kept.txt")
    train = ("pipeline", common.output, "--run", "runs/NAME") if counts.kept else ()
    following = keep if counts.kept is None else train
    common.finish(result, lines, bundle=scorer.bundle, following=following)


def _report_words(common: Common, scorer: "LineScorer", counts: "ScoreCounts") -> None:
    """Report how many words were truncated, and warn if the share of unknown words is far higher than in training."""
    from elmo_zh.embed.unknown_rate import describe_unknown_rate

    if counts.cut_words:
        text = _("Words truncated because the model cannot read them whole: {cut_words}")
        common.console.note(text.format(cut_words=f"{counts.cut_words:,}"))
    warning = describe_unknown_rate(
        scorer.bundle, counts.cost.num_tokens, counts.cost.num_unknown, counts.unknown_words.counts
    )
    if warning:
        common.console.warn(warning)
