"""The command that writes vectors: embed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_embedder, refuse_splitting
from elmo_zh.cli.options import (
    Common,
    common_options,
    engine_options,
    input_argument,
    input_options,
    reads,
    setting_option,
    setting_options,
    shared_options,
    takes,
)
from elmo_zh.config import EmbedConfig
from elmo_zh.config.declare import declare
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import counted, format_bytes

if TYPE_CHECKING:
    from elmo_zh.embed.dump import DumpJob, DumpReport, DumpSettings, Target
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

    def settings(self, common: Common, config: EmbedConfig, num_layers: int) -> "DumpSettings":
        """Return the settings for turning lines into vectors, taken from the options and from section embed."""
        from elmo_zh.embed.dump import DumpSettings
        from elmo_zh.embed.reduction import load_mix_weights

        return DumpSettings(
            segmented=common.segmented,
            layers=config.layers,
            dtype=config.dtype,
            pool=config.pool,
            mix_weights=load_mix_weights(self.mix_weights, num_layers) if self.mix_weights else None,
            stateful=common.stateful,
            split_sentences=self.split_sentences,
        )


@click.command()
@input_argument
@shared_options("model", "segmented")
@input_options
@shared_options("user_dictionary")
@takes(EmbedOptions, "options")
@setting_option("embed.layers", metavar="all|average|top|mix|N,...")
@setting_options("embed.pool", "embed.dtype", "embed.format")
@setting_options("embed.precision", "embed.unknown")
@shared_options("stateful", "device")
@engine_options
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
    refuse_splitting(common, options.split_sentences)
    config = common.config
    if common.stateful and common.engine != "local":
        raise click.UsageError(
            _("--stateful processes the lines one after another, on one machine. Leave out --engine.")
        )
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
                settings=options.settings(common, config.embed, embedder.num_layers),
                output_format=config.embed.format,
                sentence_index=options.sentence_index,
                hints=Hints(common.console),
            )
            _embed_texts(common, embedder, targets, is_single(files), make_job, engine)


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
            common.console.note(
                _("{output} already exists, so {name} is skipped.").format(output=output, name=text.name)
            )
            skipped.append(str(output))
            continue
        job = make_job(text=text, output=output)
        try:
            report = run_job(job, force=common.force, reporter=common.console, engine=engine)
        except UnsuitableError as error:
            text.skip(error, common.console)
            skipped.append(text.name)
            continue
        total.add(report.counts)
        results.append(_dump_result(report))
        if is_single:
            common.finish(_dump_result(report), *_describe_dump(report, job), bundle=embedder.bundle)
            return
        for line in _describe_dump(report, job):
            common.console.note(line)
    common.finish(
        {"outputs": results, "skipped": skipped, **total.reported()},
        _("{results} written ({lines}, {tokens}), {skipped} skipped").format(
            results=counted(len(results), "{number} output", "{number} outputs"),
            lines=counted(total.lines, "{number} line", "{number} lines"),
            tokens=counted(total.tokens, "{number} token", "{number} tokens"),
            skipped=f"{len(skipped):,}",
        ),
        bundle=embedder.bundle,
    )


def _dump_result(report: "DumpReport") -> dict[str, Any]:
    counts = report.counts.reported()
    return {"output": str(report.output), **counts, "unknown_words": dict(report.unknown_words)}


def _describe_dump(report: "DumpReport", job: "DumpJob") -> list[str]:
    counts, output = report.counts, report.output
    files = sorted(path for path in output.iterdir() if path.is_file()) if output.is_dir() else [output]
    folder = _("the folder {path} with {names}").format(path=output, names=", ".join(path.name for path in files))
    num_lines = counted(counts.lines, "{number} line", "{number} lines")
    num_sentences = counted(counts.lines, "{number} sentence", "{number} sentences")
    lines = [
        _("Wrote {place} ({size}): {lines} ({empty} empty), {tokens} ({unknown} unknown).").format(
            place=folder if output.is_dir() else output,
            size=format_bytes(sum(path.stat().st_size for path in files)),
            lines=num_sentences if job.settings.split_sentences else num_lines,
            empty=f"{counts.empty_lines:,}",
            tokens=counted(counts.tokens, "{number} token", "{number} tokens"),
            unknown=f"{counts.unknown_tokens:,}",
        )
    ]
    if report.unknown_words:
        words = {word if word.isprintable() else repr(word): n for word, n in report.unknown_words.items()}
        text = _("{share} of the words are unknown; the most frequent: {words}")
        share, listed = counts.unknown_tokens / counts.tokens, [f"{word} ({n:,})" for word, n in words.items()]
        lines.append(text.format(share=f"{share:.1%}", words=", ".join(listed)))
    for number, text in (
        (counts.backed_off_tokens, N_("Unknown words read as the known words in them: {number}")),
        (counts.cut_tokens, N_("Words too long for the model, and truncated: {number}")),
    ):
        if number:
            lines.append(_(text).format(number=f"{number:,}"))
    return lines
