"""The command that compares the uses of words in two indexes."""

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.bundle.find_bundle import shown_model
from elmo_zh.cli.model_options import IndexPath, refuse_settings_of_the_model
from elmo_zh.cli.options import Common, common_options, takes
from elmo_zh.contexts import DriftOptions
from elmo_zh.invocation import program, typed_word
from elmo_zh.run.reporter import counted, first_ten

if TYPE_CHECKING:
    from elmo_zh.contexts.drift import Drift, WordDrift
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.occurrences import NeighbourLine

# The level at which a change counts as found.
_LEVEL = 0.05


@click.command()
@click.argument("old", type=IndexPath(), metavar="OLD")
@click.argument("new", type=IndexPath(), metavar="NEW")
@takes(DriftOptions, "options")
@common_options
@click.pass_obj
def drift(common: Common, /, old: Path, new: Path, *, options: DriftOptions) -> None:
    """Find words that two texts use differently.

    Use it to compare periods or kinds of text. OLD and NEW are indexes that one model has made. The words that changed
    most come first, each with the old and new lines that show it best, and the cosine of each line to the mean of the
    other text. p is the share of random divisions of the word's occurrences into two groups at least as far apart as
    the texts; q is the expected share of false discoveries among the words with this p or a smaller one.
    docs/contexts.md describes the columns.

    \b
    Example:
      elmo-zh index data/sample/stories.txt --split-sentences --output old.index
      elmo-zh index data/sample/news.txt --split-sentences --output new.index
      elmo-zh drift old.index new.index --output drift.tsv
      elmo-zh drift old.index new.index --vectors runs/old/word2vec.txt runs/new/word2vec.txt
    """
    common.resolve()
    refuse_settings_of_the_model(common, "drift")
    from elmo_zh.contexts.drift import measure_drift, moved_lines, save_drift
    from elmo_zh.contexts.drift_statistics import procrustes_distances
    from elmo_zh.contexts.index import ContextIndex
    from elmo_zh.contexts.index_settings import load_word_list
    from elmo_zh.run.files import claimed_output

    indexes = ContextIndex.load(old), ContextIndex.load(new)
    with ExitStack() as stack:
        if options.output:
            stack.enter_context(claimed_output(options.output, (), Path.is_file, force=common.force))
        words = load_word_list(options.words) if options.words else None
        distances = procrustes_distances(*options.vectors) if options.vectors else {}
        found = measure_drift(
            *indexes,
            layer=options.layer,
            min_count=options.min_count,
            words=words,
            by=options.by,
            permutations=options.permutations,
            seed=options.seed,
            reporter=common.console,
        ).with_procrustes(distances)
        if options.output:
            save_drift(options.output, found)
    _report(common, found, indexes, words, options)
    shown = found.words[: options.top]
    lines = [moved_lines(*indexes, each.word, found.layer, options.lines) for each in shown]
    _finish(common, found, list(zip(shown, lines, strict=True)), (old, new), options.output)


def _report(
    common: Common,
    found: "Drift",
    indexes: tuple["ContextIndex", "ContextIndex"],
    words: frozenset[str] | None,
    options: DriftOptions,
) -> None:
    """Say what was compared; warn of equal texts, of words of --words left out, and of tests that cannot succeed."""
    model = shown_model(Path(indexes[0].model["path"]))
    common.console.note(
        f"Model of both indexes: {model}. {counted(len(found.words), 'word')} compared of {found.num_shared:,} in both,"
        f" layer {found.layer}; {sum(each.q < _LEVEL for each in found.words):,} with q below {_LEVEL}."
    )
    if _texts_of(indexes[0]) == _texts_of(indexes[1]):
        common.console.warn("Both indexes are of the same text, so no word can have changed. Give those of two texts.")
    if missing := sorted((words or frozenset()) - {each.word for each in found.words}):
        common.console.warn(
            f"{counted(len(missing), 'word')} of --words not compared: {first_ten(missing)}. Each must be in"
            f" {options.min_count} different sentences of both indexes (--min-count)."
        )
    least = 1 / (options.permutations + 1)
    if any(each.p <= least for each in found.words) and all(each.q >= _LEVEL for each in found.words):
        common.console.warn(
            f"{counted(options.permutations, 'permutation')} are too few for {counted(len(found.words), 'word')}:"
            f" no q can fall below {_LEVEL} here. Use --permutations {round(len(found.words) / _LEVEL) + 1}"
        )


def _texts_of(index: "ContextIndex") -> list[dict[str, Any]]:
    """Return the digest of each text and what was read of it, such as its field, but not its name."""
    return [{name: value for name, value in text.items() if name != "name"} for text in index.info["texts"]]


def _finish(
    common: Common,
    found: "Drift",
    shown: "list[tuple[WordDrift, tuple[list[NeighbourLine], list[NeighbourLine]]]]",
    indexes: tuple[Path, Path],
    output: Path | None,
) -> None:
    from dataclasses import asdict

    from elmo_zh.contexts.drift import moved_line_rows, table_lines

    lines = table_lines([word for word, _ in shown])
    for word, (old, new) in shown:
        if old or new:
            lines += ["", word.word, *moved_line_rows(old, new)]
    lines.append("")
    if output:
        lines.append(f"{counted(len(found.words), 'word')}: {output}")
    first = typed_word(shown[0][0].word)
    lines.append(f"Next: {program()} neighbours {first} --in SENTENCE --index {shlex.quote(str(indexes[1]))}")
    results = [
        {
            **{name: round(value, 6) if isinstance(value, float) else value for name, value in asdict(word).items()},
            "old_lines": [each.described() for each in old],
            "new_lines": [each.described() for each in new],
        }
        for word, (old, new) in shown
    ]
    common.finish(
        {
            "layer": found.layer,
            "by": found.by,
            "compared_words": len(found.words),
            "shared_words": found.num_shared,
            "changed_words": sum(each.q < _LEVEL for each in found.words),
            "words": results,
            "output": str(output) if output else None,
        },
        *lines,
    )
