"""The command that writes vectors: embed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmo_zh.cli.model_options import load_embedder
from elmo_zh.cli.options import (
    ENGINE,
    INPUT,
    Common,
    common_options,
    figures,
    input_argument,
    reads,
    refuse_together,
    shared_options,
    takes,
)
from elmo_zh.config.declare import declare
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.embed.dump import DumpJob, DumpSettings, Target
    from elmo_zh.embed.embedder import ElmoEmbedder
    from elmo_zh.engine.engine import Engine


@dataclass(frozen=True, kw_only=True)
class EmbedOptions:
    """The options of `embed` that are not settings in section embed."""

    output: Path | None = declare(
        None,
        "File or folder to write. Default: FILE with the format's suffix, such as FILE.hdf5; for standard input, a"
        " file named embeddings, with that suffix, in the current folder.",
        metavar="FILE",
    )
    split_sentences: bool = declare(
        False, "Split lines into sentences as in training; the output says which line each sentence comes from."
    )
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
@takes(EmbedOptions, "options")
@shared_options("embed.layers", "embed.pool", "embed.dtype", "embed.format", "embed.precision", "embed.unknown")
@shared_options("stateful", "device", *ENGINE)
@common_options
@reads("embed")
def embed(common: Common, /, files: tuple[str, ...], options: EmbedOptions) -> None:
    """Write the vectors of each line of a text file.

    Use it to make vectors for other programs. FILE is a text in any format that the segment command reads, a folder,
    or - for standard input; each file has an output of its own. A line is a line of a text file, or a record of CSV
    or JSON; no line is skipped. In HDF5, the datasets "0", "1", ... hold the vectors of the lines, counted from 0, each
    of shape (layers, tokens, dimensions); tokens/0, ... hold the words of the line, and offsets/0, ... the positions of
    these words in the raw line. docs/embedding.md describes the formats. An interrupted command resumes if it is run
    again.

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

    if options.output is not None and is_single(files):
        require_matching_suffix(options.output, config.embed.format)
    with opened_inputs(files, common.console) as sources:
        suffix = f".{config.embed.format}"
        targets = plan_targets(files, sources, options.output, suffix, config.text, segmented=common.segmented)
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
    """Embed one file after another; if there are several, skip files whose output exists."""
    from elmo_zh.corpus.content import UnsuitableError
    from elmo_zh.embed.text_tokens import TokenCounts
    from elmo_zh.run.job import run_job

    results, skipped, total = [], [], TokenCounts()
    for target in targets:
        text, output = target.text, target.output
        if not is_single and output.exists() and not common.force:
            message = _("{output} already exists, so {name} is skipped.")
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
        result = {"output": str(output), **report.counts.reported(), "unknown_words": dict(report.unknown_words)}
        if is_single:
            common.finish(result, *figures(result), bundle=embedder.bundle)
            return
        total.add(report.counts)
        results.append(result)
        for line in figures(result):
            common.console.note(line)
    summary = {"skipped": skipped, **total.reported()}
    common.finish({"outputs": results, **summary}, *figures(summary), bundle=embedder.bundle)
