"""RUN/corpus_report.md: a report for people of what became of a corpus, safe whatever text the corpus contains."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.examples import visible
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.run.markdown import code_span, spelled, table
from elmo_zh.run.reporter import counted
from elmo_zh.segmenting.corpus_preparation import STEPS
from elmo_zh.segmenting.segment_corpus import SegmentedCorpus

_MOST_SOURCES = 200
_INTRODUCTION = """# What became of the corpus

Characters are counted as they were read, without line ends and before any change. In examples, invisible characters are
written as escapes such as `\\u200b`; there are at most five examples of each kind, the first in the corpus."""


def corpus_report(result: SegmentedCorpus, names: Sequence[str], config: TextConfig) -> str:
    """Return the report as Markdown; the sources have these names, in their order."""
    dropped_items = sum((tally.dropped_items for tally in result.tallies), Counter())
    paragraphs = [
        _INTRODUCTION,
        *_total_section(result, dropped_items),
        *_sources_section(result.tallies, names),
        *_changes_section(result, config),
        *_drops_section(result, dropped_items),
        *_notices_section(result),
        *_passed_over_section(result.passed_over),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _total_section(result: SegmentedCorpus, dropped_items: Counter[str]) -> Iterator[str]:
    counts = result.counts
    yield "## In all"
    yield (
        f"{counts.characters:,} characters read = {counts.kept_characters:,} kept"
        f" + {sum(counts.dropped.values()):,} dropped"
    )
    rows = [
        ("kept", counts.lines - sum(found.lines for found in result.lines.dropped.values()), counts.kept_characters)
    ]
    rows += [
        (_escaped(reason), items, counts.dropped.get(reason, 0)) for reason, items in sorted(dropped_items.items())
    ]
    yield table(("", "lines, records or elements", "characters"), rows)
    yield (
        f"The corpus has {counted(counts.files, 'file')} with {counted(counts.documents, 'document')} in"
        f" {counted(counts.lines, 'line')}. The kept text became"
        f" {counted(result.lines.normalised_characters, 'character')} of normalised text:"
        f" {counted(counts.train_tokens, 'token')} in {counted(counts.train_sentences, 'sentence')} to train on,"
        f" {counts.heldout_tokens:,} in {counts.heldout_sentences:,} held out."
    )


def _sources_section(tallies: Sequence[Tally], names: Sequence[str]) -> Iterator[str]:
    yield "## Sources"
    rows = [
        (
            code_span(visible(name)),
            ", ".join(_forms(tally)),
            tally.documents,
            tally.characters,
            tally.kept_characters,
            "; ".join(f"{_escaped(reason)} {number:,}" for reason, number in sorted(tally.dropped.items()) if number),
        )
        for name, tally in zip(names[:_MOST_SOURCES], tallies, strict=False)
    ]
    yield table(("file", "read as", "documents", "characters read", "kept", "dropped"), rows)
    if len(names) > _MOST_SOURCES:
        yield f"The other {len(names) - _MOST_SOURCES:,} files are in `stages/segment.json`."


def _forms(tally: Tally) -> Iterator[str]:
    for (kind, encoding, field), count in sorted(tally.forms.items()):
        yield (
            f"{kind} in {encoding}"
            + (f" ({code_span(visible(field))})" if field else "")
            + (f" x {count}" if count > 1 else "")
        )


def _changes_section(result: SegmentedCorpus, config: TextConfig) -> Iterator[str]:
    yield "## What was changed"
    yield "All kept text goes through these steps, one after another."
    rows = [
        (f"`text.{entry.step} = {spelled(getattr(config, entry.step))}`", *entry[1:])
        for entry in result.lines.ledger(STEPS)
    ]
    yield table(("setting", "lines changed", "characters in", "characters out"), rows)
    for step in STEPS:
        if step in result.lines.steps:
            yield f"### {step}"
            examples = result.lines.steps[step].examples
            yield "\n".join(f"- {code_span(before)} became {code_span(after)}" for before, after in examples)


def _drops_section(result: SegmentedCorpus, dropped_items: Counter[str]) -> Iterator[str]:
    yield "## What was dropped"
    if not dropped_items:
        yield "Nothing."
    for reason, items in sorted(dropped_items.items()):
        yield f"### {_escaped(reason)}"
        yield f"{items:,} with {result.counts.dropped.get(reason, 0):,} characters."
        if reason in result.lines.dropped:
            yield from _list(result.lines.dropped[reason].examples)


def _notices_section(result: SegmentedCorpus) -> Iterator[str]:
    for reason, found in sorted(result.lines.noticed.items()):
        yield f"## Kept, but worth a look: {_escaped(reason)}"
        yield f"{found.lines:,} with {found.characters:,} characters."
        yield from _list(found.examples)


def _passed_over_section(passed_over: PassedOver) -> Iterator[str]:
    if passed_over.counts:
        yield "## What was passed over"
    for reason, count in sorted(passed_over.counts.items()):
        yield f"### {_escaped(reason)}"
        yield f"{count:,}, such as"
        yield from _list(visible(name) for name in passed_over.names[reason])


def _list(examples: Iterable[str]) -> Iterator[str]:
    if lines := [f"- {code_span(example)}" for example in examples]:
        yield "\n".join(lines)


def _escaped(text: str) -> str:
    """Return a text escaped for headings and cells: some reasons contain names of fields and columns."""
    return re.sub(r"([\\`*_\[\]<>#~&])", r"\\\1", visible(text))
