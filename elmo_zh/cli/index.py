"""The command that writes an index of words in their sentences."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmo_zh.cli.model_options import load_embedder, resolve_for_model
from elmo_zh.cli.options import (
    Common,
    common_options,
    engine_options,
    input_argument,
    input_options,
    output_option,
    setting_options,
    shared_options,
    takes,
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
@shared_options("model")
@output_option("INDEX", "Folder to write the index to.", is_folder=True, required=True)
@shared_options("segmented")
@input_options
@shared_options("user_dictionary")
@takes(IndexOptions, "options")
@setting_options("embed.precision", "embed.unknown")
@shared_options("device")
@engine_options
@common_options
def index(common: Common, /, files: tuple[str, ...], output: Path, options: IndexOptions) -> None:
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
    config = resolve_for_model(common, also="embed", split_sentences=options.split_sentences)
    from elmo_zh.contexts.build_index import build_index

    with common.opened_texts(files, from_name=options.from_name) as texts:
        embedder = load_embedder(common)
        settings = _settings(embedder, options, segmented=common.segmented)
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
    from elmo_zh.contexts.index_settings import describe_missing_words

    counts = report.counts
    if missing := report.missing_words:
        common.console.warn(describe_missing_words(missing, "--words"))
    common.finish(
        {"output": str(report.path), **counts, "bytes": report.num_bytes, "missing_words": list(missing)},
        f"{counted(counts['occurrences'], 'occurrence')} of {counted(counts['words'], 'word')} in"
        f" {counted(counts['kept_lines'], 'line')}, {format_bytes(report.num_bytes)}: folder {report.path}",
        f"Next: {program()} neighbours WORD --in SENTENCE --index {shlex.quote(str(report.path))}",
        bundle=embedder.bundle,
    )
