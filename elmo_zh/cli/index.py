"""The commands that index words in their sentences and look up the occurrences most similar to a word."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import (
    index_model_option,
    index_option,
    index_or_own,
    load_embedder,
    load_embedder_of,
    refuse_splitting,
    warn_of_unknown,
)
from elmo_zh.cli.options import (
    Common,
    common_options,
    common_options_of_readers,
    engine_options,
    input_argument,
    input_options,
    output_option,
    reads,
    setting_options,
    shared_options,
    takes,
)
from elmo_zh.contexts import IndexOptions
from elmo_zh.invocation import program, typed_word
from elmo_zh.language import _
from elmo_zh.run.reporter import counted, format_bytes

if TYPE_CHECKING:
    from elmo_zh.contexts.build_index import IndexReport, IndexSettings
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.occurrences import NeighbourLine, TokenInSentence
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
    refuse_splitting(common, options.split_sentences)
    config = common.config
    from elmo_zh.contexts.build_index import IndexJob
    from elmo_zh.run.job import run_job

    with common.opened_texts(files, from_name=options.from_name) as texts:
        embedder = load_embedder(common)
        settings = _settings(embedder, options, segmented=common.segmented)
        job = IndexJob(embedder=embedder, texts=texts, output=output, settings=settings)
        with common.choose_engine(config).started(0) as engine:
            report = run_job(job, force=common.force, reporter=common.console, engine=engine)
    _finish(common, embedder, report)


def _settings(embedder: "ElmoEmbedder", options: IndexOptions, *, segmented: bool) -> "IndexSettings":
    from elmo_zh.contexts.build_index import IndexSettings, indexed_layers, load_word_list, word_former
    from elmo_zh.errors import ElmoZhError

    layers = indexed_layers(options.layers, embedder.num_layers, "index", "--layers", ElmoZhError)
    words = load_word_list(options.words, word_former(embedder, segmented=segmented)) if options.words else None
    return IndexSettings(layers=layers, words=words, segmented=segmented, options=options)


def _finish(common: Common, embedder: "ElmoEmbedder", report: "IndexReport") -> None:
    from elmo_zh.contexts.build_index import describe_missing_words

    counts = report.counts
    if missing := report.missing_words:
        common.console.warn(describe_missing_words(missing, "--words"))
    common.finish(
        {"output": str(report.path), **counts, "bytes": report.num_bytes, "missing_words": list(missing)},
        _("Wrote {path} ({num_bytes}): {counts} of {counts2} in {counts3}.").format(
            path=report.path,
            num_bytes=format_bytes(report.num_bytes),
            counts=counted(counts["occurrences"], "{number} occurrence", "{number} occurrences"),
            counts2=counted(counts["words"], "{number} word", "{number} words"),
            counts3=counted(counts["kept_lines"], "{number} line", "{number} lines"),
        ),
        _("Next: {program} neighbours WORD --in SENTENCE --index {path}").format(
            program=program(), path=shlex.quote(str(report.path))
        ),
        bundle=embedder.bundle,
    )


@click.command()
@click.argument("word", metavar="WORD")
@click.option("--in", "sentence", required=True, metavar="SENTENCE", help="Sentence that contains the word.")
@index_option
@click.option("--same-word", is_flag=True, help="Show only occurrences of the same word.")
@click.option(
    "--layer", type=click.IntRange(0), help="Layer whose vectors are compared. Default: the index's top layer."
)
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="Maximum number of occurrences to show."
)
@index_model_option
@shared_options("device")
@common_options_of_readers
@reads("embed")
def neighbours(
    common: Common, /, word: str, sentence: str, index_path: Path | None, same_word: bool, layer: int | None, top: int
) -> None:
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
    from elmo_zh.contexts.occurrences import best_occurrence, distinct_neighbours, require_occurrences

    index = ContextIndex.load(index_or_own(common, index_path))
    chosen = index.layers[-1] if layer is None else layer
    index.vectors(chosen)
    embedder = load_embedder_of(common, index)
    asked = best_occurrence(require_occurrences(embedder, sentence, word, segmented=index.is_segmented))
    [activations] = embedder.compute_vectors([asked.tokens])
    only = asked.word if same_word else None
    found = distinct_neighbours(index, activations[chosen, asked.position], chosen, top, only)
    _report_reading(common, embedder, asked)
    _show_neighbours(common, embedder, index, asked, chosen, found)


def _report_reading(common: Common, embedder: "ElmoEmbedder", asked: "TokenInSentence") -> None:
    """Report how the sentence was cut if the word was not a token of it, and warn if the word is unknown."""
    if cut := asked.describe_cut():
        common.console.note(cut)
    warn_of_unknown(common, embedder, asked.word)


def _show_neighbours(
    common: Common,
    embedder: "ElmoEmbedder",
    index: "ContextIndex",
    asked: "TokenInSentence",
    layer: int,
    found: list["NeighbourLine"],
) -> None:
    from elmo_zh.contexts.occurrences import keyword_lines

    common.finish(
        {
            "word": asked.word,
            "tokens": asked.tokens,
            "position": asked.position,
            "layer": layer,
            "neighbours": [_result(each) for each in found],
        },
        *keyword_lines(found),
        "",
        _next_step(index, asked.word),
        bundle=embedder.bundle,
    )


def _next_step(index: "ContextIndex", word: str) -> str:
    path = shlex.quote(str(index.path))
    if word in index:
        return _("Next, see all usages of this word: {program} senses {word} --index {path}").format(
            program=program(), word=typed_word(word), path=path
        )
    return _("Next, see the words of the index in the browser: {program} explore {path}").format(
        program=program(), path=path
    )


def _result(found: "NeighbourLine") -> dict[str, Any]:
    described = found.described()
    return {"cosine": described.pop("cosine"), "word": found.neighbour.occurrence.word, **described}
