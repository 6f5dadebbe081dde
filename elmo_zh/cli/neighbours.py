"""The command that looks up the occurrences most similar to a word in a sentence."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import (
    index_model_option,
    index_option,
    index_or_own,
    load_embedder_of,
    resolve_for_model,
    warn_of_unknown,
)
from elmo_zh.cli.options import Common, common_options_of_readers, shared_options
from elmo_zh.invocation import program, typed_word

if TYPE_CHECKING:
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.occurrences import NeighbourLine, TokenInSentence
    from elmo_zh.embed.embedder import ElmoEmbedder


@click.command()
@click.argument("word", metavar="WORD")
@click.option("--in", "sentence", required=True, metavar="SENTENCE", help="Sentence with the word.")
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
def neighbours(
    common: Common, /, word: str, sentence: str, index_path: Path | None, same_word: bool, layer: int | None, top: int
) -> None:
    """Find the occurrences most similar to a word in a sentence.

    Use it to see which meaning the model gives a word in this sentence. Each line shows the cosine of the two vectors,
    the occurrence in its context, and the file and line that it is from; a repeated line is shown once. If the
    segmenter does not make the word a token, the sentence is cut before and after it.

    \b
    Example:
      elmo-zh neighbours 苹果 --in 我昨天买了一斤苹果 --index sample.index
      elmo-zh neighbours 苹果 --in 苹果发布了新手机 --index sample.index --same-word --layer 1
    """
    resolve_for_model(common, also="embed")
    if not word.strip():
        raise click.UsageError("WORD is empty. Give a word of the sentence.")
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
    _finish(common, embedder, index, asked, chosen, found)


def _report_reading(common: Common, embedder: "ElmoEmbedder", asked: "TokenInSentence") -> None:
    """Say how the sentence is cut if the segmenter cuts it in another way, and that an unknown word is one."""
    if cut := asked.describe_cut():
        common.console.note(cut)
    warn_of_unknown(common, embedder, asked.word)


def _finish(
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
        return f"Next, see the usages of all its occurrences: {program()} senses {typed_word(word)} --index {path}"
    return f"Next, see the words of the index in the browser: {program()} explore {path}"


def _result(found: "NeighbourLine") -> dict[str, Any]:
    described = found.described()
    return {"cosine": described.pop("cosine"), "word": found.neighbour.occurrence.word, **described}
