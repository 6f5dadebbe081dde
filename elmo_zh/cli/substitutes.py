"""The command that finds substitutes for a word in a sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import load_model, model_path, warn_of_unknown
from elmo_zh.cli.options import Common, common_options_of_readers, input_options, shared_options, takes
from elmo_zh.config import TextConfig
from elmo_zh.contexts import SubstituteOptions
from elmo_zh.errors import CorpusError
from elmo_zh.invocation import program, typed_word
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import Hints, aligned, counted
from elmo_zh.text.sentences import LONGEST_SENTENCE, describe_cuts, iter_pieces

if TYPE_CHECKING:
    from elmo_zh.contexts.occurrences import TokenInSentence
    from elmo_zh.embed.embedder import ElmoEmbedder
    from elmo_zh.embed.substitutes import Substitute, Substitutes


@click.command()
@click.argument("text", required=False)
@takes(SubstituteOptions, "options")
@shared_options("model", "segmented")
@input_options
@common_options_of_readers
def substitutes(common: Common, /, text: str | None, options: SubstituteOptions) -> None:
    """Show words similar in meaning to a word in a sentence.

    Use it to see which sense a model gives a word in a sentence. TEXT is one sentence, including its full stop.
    Substitutes are ranked by how well both LMs predict them in coordination with the word, as in 苹果 和 _. With
    --ranking slot, they are ranked by how well they fit in place of the word, which is listed with its own rank.
    docs/contexts.md has the formulas.

    \b
    Example:
      elmo-zh substitutes 我昨天买了一个苹果。 --word 苹果
      elmo-zh substitutes 我昨天买了一个苹果。 --position 5 --top 5
      elmo-zh substitutes 我昨天买了一个苹果。 --word 苹果 --ranking slot
      elmo-zh substitutes --file reviews.txt --word 包 --json
    """
    config = common.config
    _check_usage(text, options)
    from elmo_zh.embed.embedder import ElmoEmbedder

    bundle = load_model(common, model_path(common.model), "substitutes are")
    bundle.require_probabilities()
    embedder = ElmoEmbedder(bundle, "cpu", unknown=config.embed.unknown)
    if text is not None:
        occurrences = _occurrences_in_text(embedder, text, options, segmented=common.segmented)
    else:
        occurrences = list(_occurrences_in_file(common, embedder, options))
    for occurrence in occurrences:
        if cut := occurrence.describe_cut():
            common.console.note(cut)
    if options.ranking == "pattern":
        warn_of_unknown(common, embedder, occurrences[0].word)
    found = embedder.substitutes_many(
        [(each.tokens, each.position) for each in occurrences],
        options.top,
        ranking=options.ranking,
        with_punctuation=options.with_punctuation,
    )
    hide = options.without_word or options.ranking == "pattern"
    results = [_result(occurrence, each, hide=hide) for occurrence, each in zip(occurrences, found, strict=True)]
    word = occurrences[0].word
    common.finish(
        {"ranking": options.ranking, "occurrences": results},
        *(line for each, result in zip(occurrences, results, strict=True) for line in _describe(each, result)),
        _(
            "{word}: {results}. Next, find its substitutes throughout a text: {program} substitutes"
            " --file FILE --word {word2}"
        ).format(
            word=word,
            results=counted(len(results), "{number} occurrence", "{number} occurrences"),
            program=program(),
            word2=typed_word(word),
        ),
        bundle=bundle,
    )


def _check_usage(text: str | None, options: SubstituteOptions) -> None:
    if (text is None) == (options.file is None):
        raise click.UsageError(_("Give either a sentence or --file FILE."))
    if (options.word is None) == (options.position is None):
        raise click.UsageError(_("Give either --word WORD or --position N."))
    if options.file is not None and options.word is None:
        raise click.UsageError(_("--position needs a single sentence. With --file, give --word WORD instead."))
    if options.word is not None and not options.word.strip():
        raise click.UsageError(_("--word is empty. Give a word that occurs in the text."))


def _occurrences_in_text(
    embedder: "ElmoEmbedder", text: str, options: SubstituteOptions, *, segmented: bool
) -> "list[TokenInSentence]":
    from elmo_zh.contexts.occurrences import occurrence_at, require_occurrences

    if options.word is None:
        return [occurrence_at(embedder, text, options.position or 0, segmented=segmented)]
    return require_occurrences(embedder, text, options.word, segmented=segmented)


def _occurrences_in_file(
    common: Common, embedder: "ElmoEmbedder", options: SubstituteOptions
) -> "Iterator[TokenInSentence]":
    from elmo_zh.contexts.occurrences import find_occurrences
    from elmo_zh.text.normalise import build_normaliser

    word, is_empty, hints = options.word or "", True, Hints(common.console)
    normalise = str if common.segmented else build_normaliser(embedder.bundle.text or TextConfig())
    normalised = normalise(word)
    with common.opened_texts([options.file or ""]) as texts:
        for text in texts:
            for number, line in enumerate(text.lines_if_text(common.console)):
                parts = list(iter_pieces(line, split=False, longest=LONGEST_SENTENCE, segmented=common.segmented))
                if len(parts) > 1:
                    hints.give("cut lines", describe_cuts(text.name, len(parts) - 1))
                place = text.place(number)
                for start, part, _is_rest in parts:
                    if word in part or normalised in normalise(part):
                        found = find_occurrences(
                            embedder, part, word, segmented=common.segmented, place=place, text_start=start
                        )
                        is_empty = is_empty and not found
                        yield from found
    if is_empty:
        raise CorpusError(
            _("{file}: no line contains the word {word}. Give a word that occurs in the text.").format(
                file=options.file, word=word
            )
        )


def _result(occurrence: "TokenInSentence", found: "Substitutes", *, hide: bool) -> dict[str, Any]:
    best = [each for each in found.best if not (hide and each.word == found.word)]
    own = {} if hide else {"own": _rounded(found.own) if found.own else None}
    return {
        "text": occurrence.text,
        **({"source": occurrence.source} if occurrence.source else {}),
        "line": occurrence.line,
        "start": occurrence.text_start + occurrence.start,
        "end": occurrence.text_start + occurrence.end,
        "text_start": occurrence.text_start,
        "tokens": occurrence.tokens,
        "position": occurrence.position,
        "word": occurrence.word,
        **own,
        "substitutes": [_rounded(each) for each in best],
    }


def _rounded(substitute: "Substitute") -> dict[str, Any]:
    """Return the values rounded to four digits, so that they do not depend on the batch."""
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in asdict(substitute).items()
    }


def _describe(occurrence: "TokenInSentence", result: dict[str, Any]) -> Iterator[str]:
    tokens = [f"[{token}]" if i == occurrence.position else token for i, token in enumerate(occurrence.tokens)]
    yield " ".join(tokens)
    if occurrence.source:
        yield f"{occurrence.source}:{occurrence.line + 1}"
    best, own = result["substitutes"], result.get("own")
    shown = best if own is None or own["rank"] <= len(best) else [*best, own]
    header = [N_("word"), N_("rank"), N_("probability"), N_("forward"), N_("backward")]
    yield from aligned([_cells(each, occurrence.word) for each in shown], header=header)
    if "own" in result and own is None:
        yield _("{word} is outside the model's vocabulary, so it has no rank.").format(word=occurrence.word)
    yield ""


def _cells(substitute: dict[str, Any], word: str) -> Sequence[str]:
    mark = " <" if substitute["word"] == word else ""
    names = ("probability", "forward_probability", "backward_probability")
    figures = [f"{substitute[name]:.2e}" if substitute[name] < 0.0001 else f"{substitute[name]:.4f}" for name in names]
    return [f"{substitute['word']}{mark}", f"{substitute['rank']:,}", *figures]
