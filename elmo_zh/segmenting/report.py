"""Report the text that the segment stage read, changed and dropped, on screen, in its record and in a report."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any

from elmo_zh.config import CORPUS, TextConfig
from elmo_zh.corpus.cleaning.clean import CLEANING_STEPS, GARBLED
from elmo_zh.corpus.cleaning.line_counts import visible
from elmo_zh.corpus.decoding import UNDECODABLE
from elmo_zh.corpus.readers.record_texts import num_without_field, other_fields_note
from elmo_zh.corpus.sources import Sources
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.invocation import train_option
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.tables import code_span, spelled, table
from elmo_zh.segmenting.segment_corpus import SegmentedCorpus
from elmo_zh.segmenting.shard_task import STEPS

_MAX_FORMS = 8
# No model learns anything from fewer tokens.
_TOO_FEW_TOKENS = 500


def reading_settings(config: TextConfig) -> dict[str, Any]:
    """Return the reading and cleaning settings that are not at their defaults, so that older records stay valid."""
    defaults = {f.name: f.default for f in fields(config)}
    return {name: getattr(config, name) for name in CORPUS if getattr(config, name) != defaults[name]}


def describe_reading(result: SegmentedCorpus, names: Sequence[str], sources: Sources) -> dict[str, Any]:
    """Describe, for the stage record, the text that was read from the named sources, changed, dropped or skipped."""
    passed_over, lines = result.passed_over, result.lines
    for path in sources.passed_over:
        passed_over.add("files whose names do not suggest text", str(path))
    for path in sources.outputs:
        passed_over.add("elmo-zh outputs", str(path))
    return {
        "changed": {
            entry.step: {**entry._asdict(), "examples": lines.steps[entry.step].examples}
            for entry in lines.ledger(STEPS)
            if entry.lines
        },
        "dropped": {reason: asdict(found) for reason, found in sorted(lines.dropped.items())},
        "noticed": {reason: asdict(found) for reason, found in sorted(lines.noticed.items())},
        "sources": {name: tally.described() for name, tally in zip(names, result.tallies, strict=True)},
        "passed_over": passed_over.described(),
    }


def report_segmented(result: SegmentedCorpus, names: Sequence[str], config: TextConfig, reporter: Reporter) -> None:
    """Report the text that was read, changed, dropped and written, and warn about anything that users should check."""
    counts = result.counts
    _report_forms(result, reporter)
    for line in result.passed_over.summary_lines():
        reporter.note(line)
    reporter.note(
        f"segment: {counted(counts.characters, 'character')} in {counted(counts.lines, 'line')} of"
        f" {counted(counts.files, 'file')}; training text: {counted(counts.train_tokens, 'token')} in"
        f" {counted(counts.train_sentences, 'sentence')}; held-out text:"
        f" {counted(counts.heldout_tokens, 'token')} in {counted(counts.heldout_sentences, 'sentence')}."
    )
    if counts.near_copies_trained:
        reporter.note(
            f"Text with near copies ({counted(counts.near_copies_trained, 'paragraph')}) was not held out, so that the"
            " held-out text is new to the model."
        )
    dropped = ", ".join(f"{reason}: {number:,}" for reason, number in counts.dropped.items())
    if dropped:
        reporter.note(f"Characters kept: {counts.kept_characters:,}. Characters left out: {dropped}.")
    for entry in result.lines.ledger(STEPS):
        if entry.step in CLEANING_STEPS and entry.lines:
            removed = entry.characters_in - entry.characters_out
            lines, characters = counted(entry.lines, "line"), counted(removed, "character")
            reporter.note(f"text.{entry.step} changed {lines} and removed {characters}.")
    _warn_of_fields(result, names, reporter)
    _warn(result, config, reporter)


def _report_forms(result: SegmentedCorpus, reporter: Reporter) -> None:
    forms = sum((tally.forms for tally in result.tallies), Counter())
    if set(forms) <= {("text", "utf-8", "")}:
        return
    for (kind, encoding, name), count in forms.most_common(_MAX_FORMS):
        form = f"{encoding.upper()}, {name}" if name else encoding.upper()
        reporter.note(f"Read {counted(count, 'file')} as {kind} in {form}.")
    if len(forms) > _MAX_FORMS:
        reporter.note(
            "Files in other formats or encodings were read too; stages/segment.json in the run folder lists them all."
        )
    if others := sum((tally.other_fields for tally in result.tallies), Counter()):
        reporter.note(other_fields_note(others))


def _warn_of_fields(result: SegmentedCorpus, names: Sequence[str], reporter: Reporter) -> None:
    lacking = {
        name: (num_without, num_without + tally.documents)
        for name, tally in zip(names, result.tallies, strict=True)
        if (num_without := num_without_field(tally)) > tally.documents
    }
    for name, (num_without, total) in list(lacking.items())[:1]:
        others = f" The same goes for {counted(len(lacking) - 1, 'other file')}." if len(lacking) > 1 else ""
        reporter.warn(
            f"{name}: {num_without:,} of {total:,} records lack the field that was read.{others} Specify the right"
            " field with --field, or several fields: --field text,content"
        )


def _warn(result: SegmentedCorpus, config: TextConfig, reporter: Reporter) -> None:
    counts = result.counts
    num_undecodable = sum(tally.dropped_items[UNDECODABLE] for tally in result.tallies)
    if num_undecodable:
        reporter.warn(
            f"Left out because of bytes that cannot be decoded: {counted(num_undecodable, 'line')}. corpus_report.md"
            " in the run folder shows how many characters each source lost. To stop at the first such line, use"
            f" --bad-bytes strict. To keep such lines: {train_option('--bad-bytes', 'replace')}"
        )
    if GARBLED in result.lines.noticed:
        found = result.lines.noticed[GARBLED]
        advice = "Specify the right encoding (--encoding), or get the original file."
        advice = advice if config.repair_mojibake else "Try --set text.repair_mojibake=true"
        example = f" For example: {found.examples[0]} ..." if found.examples else ""
        lines = counted(found.lines, "line")
        reporter.warn(f"{lines} may have been decoded with the wrong encoding.{example} {advice}")
    if counts.train_tokens < _TOO_FEW_TOKENS:
        reporter.warn(
            f"There is hardly any text to train on: {counted(counts.train_tokens, 'token')}. A good model needs"
            " millions."
        )
    if not counts.han_characters:
        reporter.warn("This corpus contains no Chinese characters. Check that it is the right corpus.")
    if counts.near_copies_heldout:
        reporter.warn(
            f"Near copies of {counted(counts.near_copies_heldout, 'paragraph')} of the held-out text are in the"
            " training text, because too little of the corpus is free of near copies. Perplexity will be lower than on"
            " new text."
        )
    if not counts.heldout_sentences:
        reporter.warn(
            "No text was held out, so perplexity will not be measured. Unless text.heldout_share is 0, the text is too"
            " short or its lines are too long: put one paragraph on each line, or add more text."
        )


_MOST_SOURCES = 200
_INTRODUCTION = """# What became of the corpus

Characters are counted as they were read, without line breaks and before any change. In examples, invisible characters
are written as escapes such as `\\u200b`. Only the first few examples of each kind are shown."""


def corpus_report(result: SegmentedCorpus, names: Sequence[str], config: TextConfig) -> str:
    """Return the report as Markdown; `names` are the sources' names, in order."""
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
    yield "## The whole corpus"
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
        f" {counted(counts.lines, 'line')}. After normalisation, the kept text has"
        f" {counted(result.lines.normalised_characters, 'character')}. Training text:"
        f" {counted(counts.train_tokens, 'token')} in {counted(counts.train_sentences, 'sentence')}. Held-out text:"
        f" {counted(counts.heldout_tokens, 'token')} in {counted(counts.heldout_sentences, 'sentence')}."
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
        yield f"Files listed only in `stages/segment.json`: {len(names) - _MOST_SOURCES:,}."


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
        yield f"Lines, records or elements: {items:,}. Characters: {result.counts.dropped.get(reason, 0):,}."
        if reason in result.lines.dropped:
            yield from _list(result.lines.dropped[reason].examples)


def _notices_section(result: SegmentedCorpus) -> Iterator[str]:
    for reason, found in sorted(result.lines.noticed.items()):
        yield f"## Kept, but worth a look: {_escaped(reason)}"
        yield f"Lines: {found.lines:,}. Characters: {found.characters:,}."
        yield from _list(found.examples)


def _passed_over_section(passed_over: PassedOver) -> Iterator[str]:
    if passed_over.counts:
        yield "## What was skipped"
    for reason, count in sorted(passed_over.counts.items()):
        yield f"### {_escaped(reason)}"
        yield f"Number: {count:,}. Examples:"
        yield from _list(visible(name) for name in passed_over.names[reason])


def _list(examples: Iterable[str]) -> Iterator[str]:
    if lines := [f"- {code_span(example)}" for example in examples]:
        yield "\n".join(lines)


def _escaped(text: str) -> str:
    """Escape a text for headings and cells, since some reasons contain names of fields and columns."""
    return re.sub(r"([\\`*_\[\]<>#~&])", r"\\\1", visible(text))
