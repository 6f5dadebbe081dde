"""The commands that make vectors and measure text with a model."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elmo_zh.cli.options import Common, common_options, device_option
from elmo_zh.config import EmbedConfig
from elmo_zh.config.schema import COMPRESSIONS, EMBED_PRECISIONS, FORMATS, LAYOUTS, POOLS, UNKNOWN_WAYS
from elmo_zh.errors import CorpusError

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.embed.dump import DumpSettings
    from elmo_zh.embed.formats import OutputForm
    from elmo_zh.embed.jobs import Job
    from elmo_zh.embed.join import DumpReport

Function = TypeVar("Function", bound=Callable[..., Any])

DEFAULT_MODEL = "runs/latest/model"

model_option = click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="BUNDLE",
    help=f"Folder of the model; default $ELMO_ZH_MODEL, else {DEFAULT_MODEL}.",
)
segmented_option = click.option(
    "--segmented", is_flag=True, help="The text is one sentence a line, its tokens split by single spaces."
)

stateful_option = click.option(
    "--stateful",
    is_flag=True,
    help="Carry the LSTM state from sentence to sentence, as the original programs do; one by one, so slower.",
)
_FROM_ZERO = "This model was trained with carried state, and every sentence starts from zero state here"
_WARM_UP = "Give it a warm state (elmo-zh convert --warm-on TEXT, or export the run again), or use --stateful."


def form_options(function: Function) -> Function:
    """Add the options that say in what form vectors are written."""
    options = [
        click.option("--format", type=click.Choice(FORMATS), help="What kind of file to write; default hdf5."),
        click.option(
            "--layout",
            type=click.Choice(LAYOUTS),
            help="Of hdf5: a dataset for each line (default), or one for all with a table of offsets.",
        ),
        click.option("--compression", type=click.Choice(COMPRESSIONS), help="Of packed hdf5; default none."),
        click.option(
            "--sentence-index",
            is_flag=True,
            help="Add AllenNLP's sentence_to_index; the one thing that is held in memory as a whole.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _build_form(config: EmbedConfig, chosen: dict[str, Any]) -> "OutputForm":
    from elmo_zh.embed.formats import OutputForm

    return OutputForm(
        format=chosen["format"] or config.format,
        layout=chosen["layout"] or config.layout,
        compression=chosen["compression"] or config.compression,
        sentence_index=chosen["sentence_index"],
    )


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Default: FILE.hdf5; or a folder.")
@segmented_option
@click.option("--layers", metavar="all|average|top|N|mix", help="Which layers to write; default all.")
@click.option(
    "--mix-weights",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help='Of --layers mix: JSON, {"scalar_parameters": [...], "gamma": ...}, as a task has learned them.',
)
@click.option("--pool", type=click.Choice(POOLS), help="Write one vector for each line instead of each token.")
@click.option("--dtype", type=click.Choice(["float32", "float16"]), help="Kind of numbers; default float32.")
@form_options
@click.option(
    "--precision", type=click.Choice(EMBED_PRECISIONS), help="Of matrix products; default float32. Lower is faster."
)
@click.option(
    "--unknown",
    type=click.Choice(UNKNOWN_WAYS),
    help="What words outside the vocabulary read: <UNK> (default), or the mean of their pieces.",
)
@click.option("--shard", metavar="I/N", help="Take only share I of N of the lines; elmo-zh merge joins them.")
@stateful_option
@device_option
@common_options
@click.pass_obj
def embed(
    common: Common,
    /,
    files: tuple[str, ...],
    model: Path | None,
    output: Path | None,
    stateful: bool,
    device: str | None,
    **chosen: Any,
) -> None:
    """Write the vectors of each line of FILE to HDF5; FILE - is stdin.

    Dataset "0", "1", ... is the line's vectors, from line 0: (layers, tokens, numbers). tokens/0, ... are its words,
    and offsets/0, ... where they stand in a raw line. Several files and folders are done one after the other, each to
    its own output. Typed again after an interruption, it goes on. docs/embedding.md tells of the formats.

    \b
    Example:
      elmo-zh embed file.txt
      elmo-zh embed file.txt --layers average --dtype float16 --output vectors.hdf5
      elmo-zh embed texts/ more.txt.gz --output vectors/ --format npy
      elmo-zh embed big.txt --pool mean --shard 1/4
      echo 今天天气很好 | elmo-zh embed -
    """
    config = common.resolve()
    if "-" in files and len(files) > 1:
        raise click.UsageError("- is stdin, which is embedded alone.")
    form_chosen = any(chosen[name] for name in ("format", "layout", "compression", "sentence_index"))
    if chosen["shard"] and form_chosen:
        raise click.UsageError("A shard is packed HDF5. Give --format, --layout and so on to: elmo-zh merge")
    form = _build_form(config.embed, chosen)
    with _planned(files, output, form) as (jobs, is_single):
        from elmo_zh.allocator import keep_few_kernels, keep_freed_memory

        keep_few_kernels()
        keep_freed_memory()
        from elmo_zh.bundle.read import load_bundle
        from elmo_zh.embed.embedder import ElmoEmbedder

        bundle = load_bundle(_model_path(model))
        if bundle.needs_warm_state() and not stateful:
            common.console.warn(f"{_FROM_ZERO}, so its vectors are poorer than they could be. {_WARM_UP}")
        settings = _build_settings(config.embed, bundle, stateful, chosen)
        embedder = ElmoEmbedder(
            bundle,
            device or "auto",
            chosen["precision"] or config.embed.precision,
            stateful=stateful,
            batch_tokens=config.embed.batch_tokens,
            unknown=chosen["unknown"] or config.embed.unknown,
        )
        _run_jobs(common, embedder, jobs, is_single, settings, form, chosen["shard"])


def _model_path(given: Path | None) -> Path:
    return given or Path(os.environ.get("ELMO_ZH_MODEL") or DEFAULT_MODEL)


def _build_settings(config: EmbedConfig, bundle: "Bundle", stateful: bool, chosen: dict[str, Any]) -> "DumpSettings":
    from elmo_zh.embed.dump import DumpSettings
    from elmo_zh.embed.reduction import load_mix_weights

    path, num_layers = chosen["mix_weights"], bundle.bilm.shape.num_layers + 1
    return DumpSettings(
        segmented=chosen["segmented"],
        layers=chosen["layers"] or config.layers,
        dtype=chosen["dtype"] or config.dtype,
        pool=chosen["pool"] or config.pool,
        mix_weights=load_mix_weights(path, num_layers) if path else None,
        stateful=stateful,
    )


@contextmanager
def _planned(files: tuple[str, ...], output: Path | None, form: "OutputForm") -> Iterator[tuple[list["Job"], bool]]:
    """Yield what there is to do, and whether it is one file alone."""
    from elmo_zh.embed.formats import SUFFIXES
    from elmo_zh.embed.jobs import Job, is_single, plan_jobs

    suffix = SUFFIXES[form.format]
    if files != ("-",):
        yield plan_jobs(files, output, suffix), is_single(files)
        return
    # Spooled, so that it can be read twice.
    with tempfile.NamedTemporaryFile(prefix="elmo-zh-", suffix=".txt") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        try:
            yield [Job(Path(spool.name), output or Path(f"embeddings{suffix}"), "stdin")], True
        except CorpusError as error:
            raise CorpusError(*(message.replace(spool.name, "stdin") for message in error.messages)) from None


def _run_jobs(
    common: Common,
    embedder: Any,
    jobs: list["Job"],
    is_single: bool,
    settings: "DumpSettings",
    form: "OutputForm",
    shard_text: str | None,
) -> None:
    """Do one file after the other; of several, those whose output is there already are passed over."""
    from elmo_zh.embed.dump import dump_vectors
    from elmo_zh.embed.merge import Shard
    from elmo_zh.embed.unfinished import DumpCounts

    shard = Shard.parse(shard_text) if shard_text else None
    results, skipped, total = [], [], DumpCounts()
    for job in jobs:
        output = shard.output(job.output) if shard else job.output
        if not is_single and output.exists() and not common.force:
            common.console.note(f"{output} is there already: {job.source} is skipped.")
            skipped.append(str(output))
            continue
        report = dump_vectors(
            embedder,
            job,
            settings,
            form,
            shard=shard,
            force=common.force,
            reporter=common.console,
        )
        total.add(report.counts)
        results.append(_result(report))
        if is_single:
            common.finish(_result(report), *_describe(report))
            return
        for line in _describe(report):
            common.console.note(line)
    common.finish(
        {"outputs": results, "skipped": skipped, **asdict(total)},
        f"{len(results):,} outputs written, {len(skipped):,} skipped: {total.lines:,} lines, {total.tokens:,} tokens",
    )


def _result(report: "DumpReport") -> dict[str, Any]:
    counts = asdict(report.counts)
    return {"output": str(report.output), **counts, "unknown_words": dict(report.unknown_words), **report.extra}


def _describe(report: "DumpReport") -> list[str]:
    counts, output = report.counts, report.output
    files = [path for path in output.iterdir() if path.is_file()] if output.is_dir() else [output]
    size = sum(path.stat().st_size for path in files)
    cut = f", {counts.cut_tokens:,} too long and cut" if counts.cut_tokens else ""
    lines = [
        f"{counts.lines:,} lines ({counts.empty_lines:,} empty), {counts.tokens:,} tokens"
        f" ({counts.unknown_tokens:,} unknown{cut}), {size / 1e6:,.1f} MB: {output}"
    ]
    if report.unknown_words:
        shown = {word if word.isprintable() else repr(word): n for word, n in report.unknown_words.items()}
        named = ", ".join(f"{word} ({count:,})" for word, count in shown.items())
        lines.append(f"{counts.unknown_tokens / counts.tokens:.1%} of the words are unknown, most often {named}")
    if report.extra.get("words_left_out"):
        lines.append(f"{report.extra['words_left_out']:,} words with white space in them are left out")
    return lines


@click.command()
@click.argument("shards", nargs=-1, required=True, metavar="SHARD...", type=click.Path(path_type=Path))
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="Default: the shards' name without its end."
)
@form_options
@common_options
@click.pass_obj
def merge(common: Common, /, shards: tuple[Path, ...], output: Path | None, **chosen: Any) -> None:
    """Join the shards of a text, which `elmo-zh embed --shard` wrote, into what one process would have written.

    \b
    Example:
      elmo-zh merge file.txt.hdf5.shard-*
      elmo-zh merge file.txt.hdf5.shard-* --format npy --output vectors.npy
    """
    config = common.resolve()
    from elmo_zh.embed.merge import merge_shards

    form = _build_form(config.embed, chosen)
    report = merge_shards(shards, output, form, force=common.force, reporter=common.console)
    common.finish(_result(report), *_describe(report))


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@model_option
@segmented_option
@stateful_option
@device_option
@common_options
@click.pass_obj
def evaluate(
    common: Common, files: tuple[str, ...], model: Path | None, segmented: bool, stateful: bool, device: str | None
) -> None:
    """Measure exact perplexity and bits per character of text.

    \b
    Example:
      elmo-zh evaluate heldout.txt --model runs/mine/model
      elmo-zh evaluate runs/mine/segmented/heldout-00000.txt --segmented --json
    """
    common.resolve()
    from elmo_zh.allocator import keep_freed_memory
    from elmo_zh.bundle.read import load_bundle
    from elmo_zh.corpus.files import find_corpus_files
    from elmo_zh.training.evaluate import evaluate_files

    keep_freed_memory()
    found = find_corpus_files(files)
    bundle = load_bundle(_model_path(model))
    if bundle.needs_warm_state() and not stateful:
        common.console.warn(f"{_FROM_ZERO}, so its perplexity is worse than it could be. {_WARM_UP}")
    figures = evaluate_files(
        bundle,
        found.paths,
        segmented=segmented,
        stateful=stateful,
        device=device or "auto",
        reporter=common.console,
    )
    common.finish(
        asdict(figures),
        f"perplexity {figures.perplexity:,.2f} (forward {figures.forward_perplexity:,.2f},"
        f" backward {figures.backward_perplexity:,.2f}), {figures.bits_per_character:.4f} bits per character,"
        f" {figures.oov_rate:.2%} of the words unknown, {figures.num_predictions:,} predictions",
    )
