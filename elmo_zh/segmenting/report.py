"""Report the text that the segment stage read, changed and dropped, on screen, in its record and in a report."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning.clean import CLEANING_STEPS, GARBLED
from elmo_zh.corpus.cleaning.line_counts import FoundLines, visible
from elmo_zh.corpus.decoding import UNDECODABLE
from elmo_zh.corpus.layouts import layout_messages
from elmo_zh.corpus.readers.row_texts import num_without_field, other_fields_note
from elmo_zh.corpus.sources import Sources
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.run.tables import code_span, table
from elmo_zh.segmenting.segment_corpus import SegmentCounts, SegmentedCorpus
from elmo_zh.segmenting.shard_task import STEPS

_MAX_FORMS = 8
# No model learns anything from fewer tokens.
_TOO_FEW_TOKENS = 500


def describe_reading(result: SegmentedCorpus, names: Sequence[str], sources: Sources) -> dict[str, Any]:
    """Describe, for the stage record, the text that was read from the named sources, changed, dropped or skipped."""
    for path in sources.passed_over:
        result.passed_over.add("files whose names do not suggest text", str(path))
    for path in sources.outputs:
        result.passed_over.add("elmo-zh outputs", str(path))
    return _describe(result, names)


def _describe(result: SegmentedCorpus, names: Sequence[str]) -> dict[str, Any]:
    lines, dropped_items = result.lines, sum((tally.dropped_items for tally in result.tallies), Counter())
    return {
        "changed": {
            entry.step: {**entry._asdict(), "examples": lines.steps[entry.step].examples}
            for entry in lines.ledger(STEPS)
            if entry.lines
        },
        "dropped": {
            reason: {
                "lines": items,  # or records, or elements
                "characters": result.counts.dropped.get(reason, 0),
                "examples": lines.dropped.get(reason, FoundLines()).examples,
            }
            for reason, items in sorted(dropped_items.items())
        },
        "noticed": {reason: asdict(found) for reason, found in sorted(lines.noticed.items())},
        "sources": {name: tally.described() for name, tally in zip(names, result.tallies, strict=True)},
        "passed_over": result.passed_over.described(),
    }


def report_segmented(result: SegmentedCorpus, names: Sequence[str], config: TextConfig, reporter: Reporter) -> None:
    """Report the text that was read, changed, dropped and written, and warn about anything that users should check."""
    counts = result.counts
    _report_forms(result, reporter)
    for line in result.passed_over.summary_lines():
        reporter.note(line)
    reporter.note(
        f"segment: {counted(counts.characters, 'character')} in {counted(counts.lines, 'line')} of"
        f" {counted(counts.files, 'file')}; {_describe_text(counts)}"
    )
    dropped = ", ".join(f"{reason}: {number:,}" for reason, number in counts.dropped.items())
    if dropped:
        reporter.note(f"Characters kept: {counts.kept_characters:,}. Characters left out: {dropped}.")
    for entry in result.lines.ledger(STEPS):
        if entry.step in CLEANING_STEPS and entry.lines:
            removed = entry.characters_in - entry.characters_out
            lines, characters = counted(entry.lines, "line"), counted(removed, "character")
            reporter.note(f"text.{entry.step} changed {lines} and removed {characters}.")
    for warning in (*_warnings_of_reading(result, names, config), *_warnings_of_text(counts)):
        reporter.warn(warning)


def _describe_text(counts: SegmentCounts) -> str:
    return (
        f"training text: {counted(counts.train_tokens, 'token')} in"
        f" {counted(counts.train_sentences, 'sentence')}; held-out text:"
        f" {counted(counts.heldout_tokens, 'token')} in {counted(counts.heldout_sentences, 'sentence')}."
    )


def _report_forms(result: SegmentedCorpus, reporter: Reporter) -> None:
    forms = sum((tally.forms for tally in result.tallies), Counter())
    if set(forms) <= {("text", "utf-8", "")}:
        return
    for (kind, encoding, name), count in forms.most_common(_MAX_FORMS):
        form = f"{encoding.upper()}, {name}" if name else encoding.upper()
        reporter.note(f"Read {counted(count, 'file')} as {kind} in {form}.")
    if others := sum((tally.other_fields for tally in result.tallies), Counter()):
        reporter.note(other_fields_note(others))


def _warnings_of_reading(result: SegmentedCorpus, names: Sequence[str], config: TextConfig) -> Iterator[str]:
    yield from layout_messages((name, tally.layouts) for name, tally in zip(names, result.tallies, strict=True))
    for name, tally in zip(names, result.tallies, strict=True):
        if (num_without := num_without_field(tally)) > tally.documents:
            yield (
                f"{name}: {num_without:,} of {num_without + tally.documents:,} records lack the field that was read."
                " Specify the right field with --field, or several fields: --field text,content"
            )
            break  # other files are in the report
    if num_undecodable := sum(tally.dropped_items[UNDECODABLE] for tally in result.tallies):
        yield (
            f"Left out because of bytes that cannot be decoded: {counted(num_undecodable, 'line')}. corpus_report.md"
            " in the run folder shows how many characters each source lost. To keep them, use --bad-bytes replace; to"
            " stop at the first such line, --bad-bytes strict."
        )
    if garbled := result.lines.noticed.get(GARBLED):
        advice = "Specify the right encoding (--encoding), or get the original file."
        advice = advice if config.repair_mojibake else "Try --set text.repair_mojibake=true"
        example = f" For example: {garbled.examples[0]} ..." if garbled.examples else ""
        lines = counted(garbled.lines, "line")
        yield f"{lines} may have been decoded with the wrong encoding.{example} {advice}"


def _warnings_of_text(counts: SegmentCounts) -> Iterator[str]:
    if counts.train_tokens < _TOO_FEW_TOKENS:
        text = counted(counts.train_tokens, "token")
        yield f"There is hardly any text to train on: {text}. A good model needs millions."
    if not counts.han_characters:
        yield "This corpus contains no Chinese characters. Check that it is the right corpus."
    if counts.near_copies_heldout:
        yield (
            f"Near copies of {counted(counts.near_copies_heldout, 'paragraph')} of the held-out text are in the"
            " training text, because too little of the corpus is free of near copies. Perplexity will be lower than on"
            " new text."
        )
    if not counts.heldout_sentences:
        yield (
            "No text was held out, so perplexity will not be measured. Unless text.heldout_share is 0, the text is too"
            " short or its lines are too long: put one paragraph on each line, or add more text."
        )


_MOST_SOURCES = 200
_INTRODUCTION = """# What became of the corpus

Characters are counted as they were read, without line breaks and before any change. In examples, invisible characters
are written as escapes such as `\\u200b`. Only the first few examples of each kind are shown."""
_SECTIONS = {
    "changed": "What was changed, step by step",
    "dropped": "What was dropped (lines, records or elements)",
    "noticed": "Kept, but worth a look",
    "passed_over": "What was skipped",
}


def corpus_report(result: SegmentedCorpus, names: Sequence[str]) -> str:
    """Return the figures of `describe_reading` as Markdown; `names` are the sources' names, in order."""
    counts, reading = result.counts, _describe(result, names)
    total = f"{counts.characters:,} characters read = {counts.kept_characters:,} kept"
    paragraphs = [
        _INTRODUCTION,
        f"{total} + {sum(counts.dropped.values()):,} dropped; {_describe_text(counts)}",
        "## Sources",
        table(
            ("file", "read as", "documents", "characters read", "kept", "dropped"),
            [_source_row(name, source) for name, source in list(reading["sources"].items())[:_MOST_SOURCES]],
        ),
    ]
    if len(names) > _MOST_SOURCES:
        paragraphs.append(f"Files listed only in `stages/segment.json`: {len(names) - _MOST_SOURCES:,}.")
    for section, title in _SECTIONS.items():
        kinds = reading[section]
        paragraphs += [f"## {title}", *(part for kind in kinds for part in _describe_kind(kind, kinds[kind]))]
    return "\n\n".join(paragraphs) + "\n"


def _source_row(name: str, source: Mapping[str, Any]) -> tuple[Any, ...]:
    forms = ", ".join(
        f"{form['format']} in {form['encoding']}" + (f" ({_code(form['field'])})" if "field" in form else "")
        for form in source["read_as"]
    )
    dropped = "; ".join(f"{_escaped(reason)} {number['characters']:,}" for reason, number in source["dropped"].items())
    return _code(name), forms, source["documents"], source["characters"], source["kept_characters"], dropped


def _describe_kind(kind: str, figures: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {_escaped(kind)}"
    numbers = {name.replace("_", " "): value for name, value in figures.items() if isinstance(value, int)}
    yield "; ".join(f"{name}: {value:,}" for name, value in numbers.items())
    # Examples are visible already; names are not.
    examples = figures.get("examples") or [visible(name) for name in figures.get("names", [])]
    if examples:
        pairs = ([example] if isinstance(example, str) else example for example in examples)
        yield "\n".join("- " + " became ".join(map(code_span, pair)) for pair in pairs)


def _code(text: str) -> str:
    return code_span(visible(text))


def _escaped(text: str) -> str:
    """Escape a text for headings and cells, since some reasons contain names of fields and columns."""
    return re.sub(r"([\\`*_\[\]<>#~&])", r"\\\1", visible(text))
