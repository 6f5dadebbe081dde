"""The command that finds the usages of a word in an index."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.cli.model_options import (
    index_model_option,
    index_option,
    index_or_own,
    load_embedder_of,
)
from elmo_zh.cli.options import Common, common_options, reads, takes
from elmo_zh.contexts import SenseOptions
from elmo_zh.errors import BundleError
from elmo_zh.invocation import program, typed_word
from elmo_zh.language import N_, _
from elmo_zh.run.reporter import aligned, counted

if TYPE_CHECKING:
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.senses import Senses, Usage
    from elmo_zh.embed.embedder import ElmoEmbedder

# Number of occurrences shown for each usage.
_NUM_LINES = 5


@click.command()
@click.argument("word", metavar="WORD")
@index_option
@takes(SenseOptions, "options")
@index_model_option
@common_options
@reads("embed")
def senses(common: Common, /, word: str, index_path: Path | None, options: SenseOptions) -> None:
    """Find the usages of a word by clustering its occurrences.

    Use it to see whether a model tells the senses of a word apart. For each usage, the command shows its share of the
    occurrences, words used in a similar way, substitutes, and the five occurrences nearest to the centre of the usage,
    with their cosines. docs/contexts.md explains how the number of usages is chosen.

    \b
    Example:
      elmo-zh index my-texts/ --split-sentences --output my.index
      elmo-zh senses 苹果 --index my.index
      elmo-zh senses 苹果 --index my.index --usages 2 --output apple.tsv --picture apple.png
    """
    require_picture(options.picture)
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.index_files import note_type, require_column
    from elmo_zh.contexts.senses import find_senses, usage_counts, usage_substitutes

    index = ContextIndex.load(index_or_own(common, index_path))
    column = require_column(index.columns, options.by, "--by") if options.by else None
    if options.by and column is not None:
        note_type(options.by, column, common.console)
    with common.claimed(options.output, options.picture):
        found = find_senses(
            index, word, layer=options.layer, num_usages=options.num_usages, seed=options.seed, top=options.top
        )
        embedder, substitutes = None, None
        if not options.no_substitutes:
            with _way_out_without_substitutes():
                embedder = load_embedder_of(common, index)
                substitutes = usage_substitutes(embedder, index, found, top=options.top)
        _write(index, found, options)
    if found.layer == 0:
        common.console.note(
            _(
                "In layer 0, a word has the same vector in every sentence, so only the words around it"
                " tell its usages apart. To compare vectors that depend on the whole sentence, choose a"
                " higher layer: --layer 1"
            )
        )
    counts = usage_counts(index, found, column) if column else {}
    _finish(common, index, found, substitutes, embedder, counts, options)


def require_picture(picture: Path | None) -> None:
    """Raise ConfigError unless a picture is a PNG file."""
    from elmo_zh.run.tables import require_suffix

    if picture is not None:
        require_suffix(picture, (".png",), "--picture")


@contextmanager
def _way_out_without_substitutes() -> Iterator[None]:
    """Add to an error about the model a hint that the command also works without it."""
    try:
        yield
    except BundleError as error:
        advice = _("{messages} Or leave out substitutes: --no-substitutes").format(messages=error.messages[-1])
        raise BundleError(*error.messages[:-1], advice) from None


def _write(index: "ContextIndex", found: "Senses", options: SenseOptions) -> None:
    if options.output:
        from elmo_zh.contexts.senses import usage_rows
        from elmo_zh.run.tables import save_rows

        save_rows(usage_rows(index, found, options.by), options.output, ".tsv")
    if options.picture:
        from elmo_zh.pictures.canvas import can_write, save_picture
        from elmo_zh.pictures.usages import usages_figure

        names = [
            (
                _("usage {number}: {share}").format(number=usage.number + 1, share=f"{usage.share:.0%}"),
                " ".join(usage.words[:3]),
            )
            for usage in found.usages
        ]
        count = counted(len(found.usages), "{number} usage", "{number} usages")
        title = f"{found.word}: {count}" if can_write(found.word) else count
        details = [
            _("{labels}, layer {layer}").format(
                labels=counted(len(found.clusters.labels), "{number} occurrence", "{number} occurrences"),
                layer=found.layer,
            ),
            index.path.name,
        ]
        figure = usages_figure(found.clusters.places, found.clusters.labels, names, title, details)
        save_picture(figure, options.picture)


def _finish(
    common: Common,
    index: "ContextIndex",
    found: "Senses",
    substitutes: list[list[str]] | None,
    embedder: "ElmoEmbedder | None",
    counts: Mapping[str, Sequence[int]],
    options: SenseOptions,
) -> None:
    usages = [_result(usage, substitutes) for usage in found.usages]
    choice = found.clusters.choice
    result: dict[str, Any] = {
        "word": found.word,
        "layer": found.layer,
        "occurrences": len(found.clusters.labels),
        "repeated": int(found.is_repeated.sum()),
        "usages": usages,
        "by": counts,
        "choice": None,
    }
    if choice:
        figures = {name: round(getattr(choice, name), 4) for name in ("silhouette", "score")}
        result["choice"] = {"candidate": choice.candidate, **figures}
    written = {"output": options.output, "picture": options.picture}
    result |= {name: str(path) for name, path in written.items() if path}
    common.finish(
        result,
        _summary(found),
        *(line for usage in found.usages for line in _describe(usage, substitutes)),
        "",
        *_share_lines(options.by, counts),
        *(_("Wrote {path}").format(path=path) for path in written.values() if path),
        _("Next, see the occurrences on a map in the browser: {program} explore {path} --word {word}").format(
            program=program(), path=shlex.quote(str(index.path)), word=typed_word(found.word)
        ),
        bundle=embedder.bundle if embedder else None,
    )


def _summary(found: "Senses") -> str:
    occurrences, usages = (
        counted(len(found.clusters.labels), "{number} occurrence", "{number} occurrences"),
        counted(len(found.usages), "{number} usage", "{number} usages"),
    )
    if repeated := int(found.is_repeated.sum()):
        occurrences = _("{occurrences} ({repeated} more in repeated lines)").format(
            occurrences=occurrences, repeated=f"{repeated:,}"
        )
    return _("{word}: {occurrences}, {usages} in layer {layer}.").format(
        word=found.word, occurrences=occurrences, usages=usages, layer=found.layer
    )


def _describe(usage: "Usage", substitutes: list[list[str]] | None) -> list[str]:
    from elmo_zh.contexts.occurrences import keyword_lines

    lines = [
        "",
        _("usage {number}: {share} ({nearest})").format(
            number=usage.number + 1,
            share=f"{usage.share:.1%}",
            nearest=counted(len(usage.nearest), "{number} occurrence", "{number} occurrences"),
        ),
    ]
    if usage.words:
        lines.append(_("used like: {words}").format(words=" ".join(usage.words)))
    if substitutes is not None:
        lines.append(_("substitutes: {substitutes}").format(substitutes=" ".join(substitutes[usage.number])))
    return [*lines, *keyword_lines(usage.nearest[:_NUM_LINES])]


def _share_lines(by: str | None, counts: Mapping[str, Sequence[int]]) -> list[str]:
    """Return a table with the share of each usage for each value of a column; empty without a column."""
    rows = [[value, f"{sum(own):,}", *(f"{each / sum(own):.1%}" for each in own)] for value, own in counts.items()]
    numbers = range(1, len(rows[0]) - 1) if rows else ()
    header = [str(by), N_("occurrences"), *(_("usage {number}").format(number=number) for number in numbers)]
    return [*aligned(rows, header=header), ""] if rows else []


def _result(usage: "Usage", substitutes: list[list[str]] | None) -> dict[str, Any]:
    found = {} if substitutes is None else {"substitutes": substitutes[usage.number]}
    return {
        "share": round(usage.share, 6),
        "occurrences": len(usage.nearest),
        "words": list(usage.words),
        **found,
        "lines": [each.described() for each in usage.nearest[:_NUM_LINES]],
    }
