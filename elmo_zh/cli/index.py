"""The commands that index words in their sentences and look up the occurrences most similar to a word."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmo_zh.cli.model_options import (
    index_model_option,
    index_option,
    load_embedder,
    load_embedder_of,
    warn_of_unknown,
)
from elmo_zh.cli.options import (
    ENGINE,
    INPUT,
    Common,
    common_options,
    common_options_of_readers,
    figures,
    input_argument,
    output_option,
    reads,
    refuse_together,
    shared_options,
    takes,
)
from elmo_zh.config.declare import declare
from elmo_zh.contexts import IndexOptions
from elmo_zh.language import _

if TYPE_CHECKING:
    from elmo_zh.contexts.build_index import IndexSettings
    from elmo_zh.embed.embedder import ElmoEmbedder


@click.command()
@input_argument
@shared_options("model")
@output_option("INDEX", "Folder to write the index to.", is_folder=True, required=True)
@shared_options("segmented", *INPUT, "user_dictionary")
@takes(IndexOptions, "options")
@shared_options("embed.precision", "embed.unknown", "device", *ENGINE)
@common_options
@reads("embed")
def index(common: Common, /, files: tuple[str, ...], output: Path, options: IndexOptions) -> None:
    """Index words by their vectors, to look up similar occurrences.

    Use it before neighbours, senses and drift; explore can use the index too. FILE is a text in any format that the
    segment command reads, a folder, or - for standard input. INDEX is a folder that contains the vectors of words in
    their sentences, and the sentences themselves; docs/contexts.md describes it. An interrupted command resumes if it
    is run again.

    \b
    Example:
      elmo-zh index my-texts/ --split-sentences --output my.index
      elmo-zh index news/ reviews.csv --output news.index --min-count 5 --max-per-word 200
      elmo-zh index news.txt --output few.index --words words.txt --layers 1,2
    """
    if common.segmented:
        refuse_together("--segmented", {"--split-sentences": options.split_sentences})
    from elmo_zh.contexts.build_index import IndexJob, describe_missing_words
    from elmo_zh.run.job import run_job

    with common.opened_texts(files, from_name=options.from_name) as texts:
        embedder = load_embedder(common)
        settings = _settings(embedder, options, segmented=common.segmented)
        job = IndexJob(embedder=embedder, texts=texts, output=output, settings=settings)
        with common.choose_engine(common.config).started(0) as engine:
            report = run_job(job, force=common.force, reporter=common.console, engine=engine)
    if missing := report.missing_words:
        common.console.warn(describe_missing_words(missing, "--words"))
    result = {"output": str(report.path), **report.counts, "bytes": report.num_bytes, "missing_words": list(missing)}
    following = ("neighbours", "WORD", "--in", "SENTENCE", "--index", report.path)
    common.finish(result, *figures(result), bundle=embedder.bundle, following=following)


def _settings(embedder: "ElmoEmbedder", options: IndexOptions, *, segmented: bool) -> "IndexSettings":
    from elmo_zh.contexts.build_index import IndexSettings, indexed_layers, load_word_list, word_former
    from elmo_zh.errors import ElmoZhError

    layers = indexed_layers(options.layers, embedder.num_layers, "index", "--layers", ElmoZhError)
    words = load_word_list(options.words, word_former(embedder, segmented=segmented)) if options.words else None
    return IndexSettings(layers=layers, words=words, segmented=segmented, options=options)


@dataclass(frozen=True, kw_only=True)
class NeighbourOptions:
    """The options of `neighbours`: where the word stands, and what is compared with it."""

    sentence: str = declare(..., "Sentence that contains the word.", names=("--in",), metavar="SENTENCE")
    same_word: bool = declare(False, "Show only occurrences of the same word.")
    layer: int | None = declare(None, "Layer whose vectors are compared. Default: the index's top layer.", least=0)
    top: int = declare(10, "Maximum number of occurrences to show.", least=1)


@click.command()
@click.argument("word", metavar="WORD")
@takes(NeighbourOptions, "options")
@index_option
@index_model_option
@shared_options("device")
@common_options_of_readers
@reads("embed")
def neighbours(common: Common, /, word: str, index_path: Path, options: NeighbourOptions) -> None:
    """Find the occurrences most similar to a word in a sentence.

    Use it to see which sense the model gives a word in this sentence. Each line shows the cosine between the
    word's vector and the occurrence's, the occurrence in its context, and its file and line; a repeated line is shown
    only once. If the segmenter does not return the word as a single token, the sentence is cut before and after it.

    \b
    Example:
      elmo-zh neighbours 苹果 --in 我昨天买了一斤苹果 --index my.index
      elmo-zh neighbours 苹果 --in 苹果发布了新手机 --index my.index --same-word --layer 1
    """
    if not word.strip():
        raise click.UsageError(_("WORD is empty. Give a word from the sentence."))
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.occurrences import best_occurrence, distinct_neighbours, keyword_lines, require_occurrences

    index = ContextIndex.load(index_path)
    layer = index.layers[-1] if options.layer is None else options.layer
    index.vectors(layer)  # an error if the index lacks it
    embedder = load_embedder_of(common, index)
    asked = best_occurrence(require_occurrences(embedder, options.sentence, word, segmented=index.is_segmented))
    [activations] = embedder.compute_vectors([asked.tokens])
    only = asked.word if options.same_word else None
    lines = distinct_neighbours(index, activations[layer, asked.position], layer, options.top, only)
    if cut := asked.describe_cut():
        common.console.note(cut)
    warn_of_unknown(common, embedder, asked.word)
    common.finish(
        {
            "word": asked.word,
            "tokens": asked.tokens,
            "position": asked.position,
            "layer": layer,
            "neighbours": [{**line.described(), "word": line.neighbour.occurrence.word} for line in lines],
        },
        *keyword_lines(lines),
        "",
        bundle=embedder.bundle,
        following=("senses", asked.word, "--index", index.path),
    )
