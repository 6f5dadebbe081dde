"""The command that writes an index of words in their sentences."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmo_zh.choices import EMBED_PRECISIONS, UNKNOWN_WAYS
from elmo_zh.cli.model_options import (
    load_embedder,
    model_option,
    model_path,
    refuse_reading_of_segmented,
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
    takes,
    user_dictionary_option,
)
from elmo_zh.contexts import IndexOptions
from elmo_zh.invocation import program
from elmo_zh.run.reporter import counted, format_bytes

if TYPE_CHECKING:
    from elmo_zh.contexts.build_index import IndexReport
    from elmo_zh.contexts.index_settings import IndexSettings
    from elmo_zh.embed.embedder import ElmoEmbedder


@click.command()
@input_argument
@model_option
@click.option(
    "--output", type=click.Path(path_type=Path), required=True, metavar="INDEX", help="Folder of the index to write."
)
@segmented_option
@input_options
@user_dictionary_option
@takes(IndexOptions, "options")
@click.option(
    "--precision",
    type=click.Choice(EMBED_PRECISIONS),
    help="Precision of matrix products; lower is faster and less exact. Default float32.",
)
@click.option(
    "--unknown",
    type=click.Choice(UNKNOWN_WAYS),
    help="Words outside the vocabulary: as <UNK> (unk) or by the known words in them (backoff). Default auto: backoff.",
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
    *,
    segmented: bool,
    options: IndexOptions,
    precision: str | None,
    unknown: str | None,
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
    refuse_reading_of_segmented(common, segmented=segmented, split_sentences=options.split_sentences)
    from elmo_zh.contexts.build_index import build_index, texts_to_index
    from elmo_zh.corpus.input_texts import opened_inputs

    with opened_inputs(files, common.console) as sources:
        texts = texts_to_index(sources, config.text, segmented=segmented, from_name=options.from_name)
        path = model_path(model)
        embedder = load_embedder(common, path, config.embed, device, precision=precision, unknown=unknown)
        settings = _settings(embedder, options, segmented=segmented)
        with common.choose_engine(config).started(0) as engine:
            report = build_index(
                embedder, texts, output, settings, force=common.force, reporter=common.console, engine=engine
            )
    _finish(common, embedder, report)


def _settings(embedder: "ElmoEmbedder", options: IndexOptions, *, segmented: bool) -> "IndexSettings":
    from elmo_zh.checks import check_layers
    from elmo_zh.contexts.index_settings import IndexSettings, load_word_list, word_former
    from elmo_zh.errors import ElmoZhError

    layers = check_layers(options.layers, embedder.num_layers, "index", "--layers", ElmoZhError)
    words = load_word_list(options.words, word_former(embedder, segmented=segmented)) if options.words else None
    return IndexSettings(layers=layers, words=words, segmented=segmented, options=options)


def _finish(common: Common, embedder: "ElmoEmbedder", report: "IndexReport") -> None:
    from elmo_zh.bundle.description import describe_model
    from elmo_zh.contexts.index_settings import describe_missing_words

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
