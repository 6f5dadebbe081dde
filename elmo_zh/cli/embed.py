"""The commands that write vectors: embed and merge."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elmo_zh.choices import (
    EMBED_PRECISIONS,
    HDF5_COMPRESSIONS,
    HDF5_LAYOUTS,
    OUTPUT_FORMATS,
    POOL_METHODS,
    UNKNOWN_WAYS,
    VECTOR_DTYPES,
)
from elmo_zh.cli.model_options import FROM_ZERO, WARM_UP, model_option, model_path, segmented_option, stateful_option
from elmo_zh.cli.options import Common, RegisteredName, common_options, device_option
from elmo_zh.config import EmbedConfig
from elmo_zh.errors import CorpusError

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.embed.dump import DumpSettings
    from elmo_zh.embed.formats import OutputForm
    from elmo_zh.embed.jobs import Job
    from elmo_zh.embed.join import DumpReport

Function = TypeVar("Function", bound=Callable[..., Any])


def form_options(function: Function) -> Function:
    """Add the options for the form in which vectors are written."""
    options = [
        click.option(
            "--format",
            type=RegisteredName(OUTPUT_FORMATS),
            help="File format to write: HDF5, NumPy arrays (npy), Parquet, JSON lines (jsonl), or word2vec's text"
            " format with one vector for each word. Default hdf5.",
        ),
        click.option(
            "--layout",
            type=RegisteredName(HDF5_LAYOUTS),
            help="HDF5 datasets: one for each line (lines), or one for all, with offsets (packed). Default lines.",
        ),
        click.option(
            "--compression", type=click.Choice(HDF5_COMPRESSIONS), help="Compression of packed HDF5. Default none."
        ),
        click.option(
            "--sentence-index",
            is_flag=True,
            help="Add AllenNLP's dataset sentence_to_index; this keeps all sentences in memory.",
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
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File or folder to write. Default: FILE with the format's suffix, such as FILE.hdf5; for standard input,"
    " embeddings.hdf5 in the current folder.",
)
@segmented_option
@click.option(
    "--layers",
    metavar="all|average|top|N|mix",
    help="Layers to write: all, their mean, the top one, a number from 0, or a learned mix. Default all.",
)
@click.option(
    "--mix-weights",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help='JSON file of the learned weights of --layers mix: {"scalar_parameters": [...], "gamma": ...}.',
)
@click.option(
    "--pool",
    type=click.Choice(("none", *POOL_METHODS)),
    help="Write one vector for each line instead of each token. Default none.",
)
@click.option("--dtype", type=click.Choice(VECTOR_DTYPES), help="Number type of the vectors. Default float32.")
@form_options
@click.option(
    "--precision",
    type=click.Choice(EMBED_PRECISIONS),
    help="Precision of matrix products; lower is faster and less exact. Default float32.",
)
@click.option(
    "--unknown",
    type=click.Choice(UNKNOWN_WAYS),
    help="Vectors of words outside the vocabulary: <UNK> (unk) or the mean of their parts (backoff). Default unk.",
)
@click.option(
    "--shard", metavar="I/N", help="Embed only shard I of N of the lines; the command merge joins the shards."
)
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
    """Write the vectors of each line of a text file.

    Use it to make vectors for other programs. FILE is a text file, a folder, or - for standard input; each file has an
    output of its own. In HDF5, datasets "0", "1", ... are the vectors of each line, from line 0, of shape (layers,
    tokens, dimensions); tokens/0, ... are its words, and offsets/0, ... their positions in the raw line.
    docs/embedding.md describes the formats. An interrupted command resumes if it is run again.

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
        raise click.UsageError("- (standard input) cannot be combined with other files. Give it alone.")
    form_chosen = any(chosen[name] for name in ("format", "layout", "compression", "sentence_index"))
    if chosen["shard"] and form_chosen:
        raise click.UsageError("A shard is always packed HDF5. Give --format, --layout and so on to: elmo-zh merge")
    form = _build_form(config.embed, chosen)
    with _planned(files, output, form) as (jobs, is_single):
        from elmo_zh.allocator import keep_few_kernels, keep_freed_memory

        keep_few_kernels()
        keep_freed_memory()
        from elmo_zh.bundle.read import load_bundle
        from elmo_zh.embed.embedder import ElmoEmbedder

        bundle = load_bundle(model_path(model))
        if bundle.needs_warm_state() and not stateful:
            common.console.warn(f"{FROM_ZERO}, so its vectors are worse than they could be. {WARM_UP}")
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
    """Yield the jobs, and whether there is only a single file."""
    from elmo_zh.embed.formats import output_suffix
    from elmo_zh.embed.jobs import Job, is_single, plan_jobs

    suffix = output_suffix(form)
    if files != ("-",):
        yield plan_jobs(files, output, suffix), is_single(files)
        return
    # Copy standard input to a file, so that it can be read twice.
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
    """Embed one file after another; if there are several, skip those whose output exists."""
    from elmo_zh.embed.dump import dump_vectors
    from elmo_zh.embed.merge import Shard
    from elmo_zh.embed.unfinished import DumpCounts

    shard = Shard.parse(shard_text) if shard_text else None
    results, skipped, total = [], [], DumpCounts()
    for job in jobs:
        output = shard.output(job.output) if shard else job.output
        if not is_single and output.exists() and not common.force:
            common.console.note(f"{output} exists already, so {job.source} is skipped.")
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
        results.append(_dump_result(report))
        if is_single:
            common.finish(_dump_result(report), *_describe_dump(report))
            return
        for line in _describe_dump(report):
            common.console.note(line)
    common.finish(
        {"outputs": results, "skipped": skipped, **asdict(total)},
        f"{len(results):,} outputs written, {len(skipped):,} skipped: {total.lines:,} lines, {total.tokens:,} tokens",
    )


def _dump_result(report: "DumpReport") -> dict[str, Any]:
    counts = asdict(report.counts)
    return {"output": str(report.output), **counts, "unknown_words": dict(report.unknown_words), **report.extra}


def _describe_dump(report: "DumpReport") -> list[str]:
    counts, output = report.counts, report.output
    files = [path for path in output.iterdir() if path.is_file()] if output.is_dir() else [output]
    size = sum(path.stat().st_size for path in files)
    cut = f", {counts.cut_tokens:,} cut because they are too long" if counts.cut_tokens else ""
    lines = [
        f"{counts.lines:,} lines ({counts.empty_lines:,} empty), {counts.tokens:,} tokens"
        f" ({counts.unknown_tokens:,} unknown{cut}), {size / 1e6:,.1f} MB: {output}"
    ]
    if report.unknown_words:
        shown = {word if word.isprintable() else repr(word): n for word, n in report.unknown_words.items()}
        named = ", ".join(f"{word} ({count:,})" for word, count in shown.items())
        lines.append(f"{counts.unknown_tokens / counts.tokens:.1%} of the words are unknown, most often {named}")
    if report.extra.get("words_left_out"):
        lines.append(f"{report.extra['words_left_out']:,} words that contain white space are left out")
    return lines


@click.command()
@click.argument("shards", nargs=-1, required=True, metavar="SHARD...", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File or folder to write. Default: the shards' name without .shard-I-of-N.",
)
@form_options
@common_options
@click.pass_obj
def merge(common: Common, /, shards: tuple[Path, ...], output: Path | None, **chosen: Any) -> None:
    """Join the shards that `elmo-zh embed --shard` wrote.

    Use it after all shards of a file are finished. The output is the same as one embed command without --shard writes.

    \b
    Example:
      elmo-zh merge file.txt.hdf5.shard-*
      elmo-zh merge file.txt.hdf5.shard-* --format npy --output vectors.npy
    """
    config = common.resolve()
    from elmo_zh.embed.merge import merge_shards

    form = _build_form(config.embed, chosen)
    report = merge_shards(shards, output, form, force=common.force, reporter=common.console)
    common.finish(_dump_result(report), *_describe_dump(report))
