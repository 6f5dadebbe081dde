"""The command that writes an index of words in their sentences."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.choices import EMBED_PRECISIONS, UNKNOWN_WAYS
from elmo_zh.cli.model_options import (
    load_embedder,
    model_option,
    model_path,
    refuse_format_of_segmented,
    refuse_settings_of_the_model,
    segmented_option,
)
from elmo_zh.cli.options import (
    Common,
    common_options,
    device_option,
    engine_options,
    input_argument,
    input_options,
)
from elmo_zh.invocation import program
from elmo_zh.run.reporter import counted, format_bytes

if TYPE_CHECKING:
    from elmo_zh.contexts.build_index import IndexReport, IndexSettings
    from elmo_zh.embed.embedder import ElmoEmbedder


@click.command()
@input_argument
@model_option
@click.option(
    "--output", type=click.Path(path_type=Path), required=True, metavar="INDEX", help="Folder of the index to write."
)
@segmented_option
@input_options
@click.option(
    "--split-sentences", is_flag=True, help="Split lines into sentences as in training; each is kept as a line."
)
@click.option(
    "--layers",
    default="all",
    show_default=True,
    metavar="all|top|N,...",
    help="Layers whose vectors are kept, each in a file of its own: all, the top one, or numbers from 0.",
)
@click.option(
    "--min-count",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Index only words that occur at least this often; has no effect with --words.",
)
@click.option(
    "--max-per-word",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="Keep at most this many occurrences of a word, chosen at random; 0 keeps all.",
)
@click.option(
    "--words",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Index only the words of this file, one per line, however rare. Default: all but punctuation.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help="Seed of the samples.")
@click.option(
    "--precision",
    type=click.Choice(EMBED_PRECISIONS),
    help="Precision of matrix products; lower is faster and less exact. Default float32.",
)
@click.option(
    "--unknown",
    type=click.Choice(UNKNOWN_WAYS),
    help="Read words outside the vocabulary as <UNK> (unk) or as the known words in them (backoff). Default unk.",
)
@device_option
@engine_options
@common_options
@click.pass_obj
def index(
    common: Common,
    /,
    files: tuple[str, ...],
    model: Path | None,
    output: Path,
    device: str | None,
    **chosen: Any,
) -> None:
    """Index words by their vectors, to look up similar occurrences.

    Use it before neighbours, senses and drift; explore can use it too. FILE is a text in any form that segment reads, a
    folder, or - for standard input. INDEX is a folder with the vectors of words in their sentences, and with these
    sentences; docs/contexts.md describes it. An interrupted command resumes if it is run again.

    \b
    Example:
      elmo-zh index data/sample --split-sentences --output sample.index
      elmo-zh index news/ reviews.csv --output news.index --min-count 5 --max-per-word 200
      elmo-zh index news.txt --output few.index --words words.txt --layers 1,2
    """
    config = common.resolve()
    refuse_settings_of_the_model(common, "index", also="embed")
    refuse_format_of_segmented(common, segmented=chosen["segmented"])
    if chosen["split_sentences"] and chosen["segmented"]:
        raise click.UsageError("--segmented text has one sentence per line already. Leave out --split-sentences.")
    from elmo_zh.contexts.build_index import build_index, texts_to_index
    from elmo_zh.corpus.input_texts import opened_inputs

    with opened_inputs(files, common.console) as sources:
        texts = texts_to_index(sources, config.text, segmented=chosen["segmented"])
        embedder = load_embedder(
            common,
            model_path(model),
            config.embed,
            device,
            precision=chosen["precision"],
            unknown=chosen["unknown"],
        )
        with common.choose_engine(config).started(0) as engine:
            report = build_index(
                embedder,
                texts,
                output,
                _build_settings(embedder, chosen),
                force=common.force,
                reporter=common.console,
                engine=engine,
            )
    _finish(common, embedder, report)


def _build_settings(embedder: "ElmoEmbedder", chosen: dict[str, Any]) -> "IndexSettings":
    from elmo_zh.checks import check_layers
    from elmo_zh.contexts.build_index import IndexSettings
    from elmo_zh.contexts.choice import Choice, load_word_list, word_former
    from elmo_zh.errors import ElmoZhError

    choice = Choice(min_count=chosen["min_count"], max_per_word=chosen["max_per_word"], seed=chosen["seed"])
    if path := chosen["words"]:
        words = load_word_list(path, word_former(embedder, segmented=chosen["segmented"]))
        choice = replace(choice, words=words)
    return IndexSettings(
        layers=check_layers(chosen["layers"], embedder.num_layers, "index", "--layers", ElmoZhError),
        segmented=chosen["segmented"],
        split_sentences=chosen["split_sentences"],
        choice=choice,
    )


def _finish(common: Common, embedder: "ElmoEmbedder", report: "IndexReport") -> None:
    from elmo_zh.bundle.description import describe_model
    from elmo_zh.contexts.choice import describe_missing_words

    counts = report.counts
    if missing := report.missing_words:
        common.console.warn(describe_missing_words(missing, "--words"))
    common.finish(
        {
            "output": str(report.path),
            **counts,
            "bytes": report.num_bytes,
            "missing_words": list(missing),
            "model": describe_model(embedder.bundle),
        },
        f"{counted(counts['occurrences'], 'occurrence')} of {counted(counts['words'], 'word')} in"
        f" {counted(counts['kept_lines'], 'line')}, {format_bytes(report.num_bytes)}: folder {report.path}",
        f"Next: {program()} neighbours WORD --in SENTENCE --index {shlex.quote(str(report.path))}",
    )
