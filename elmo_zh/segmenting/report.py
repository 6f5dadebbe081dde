"""Report the text that the segment stage read, changed and dropped, on screen, in its record and in a report."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import GARBLED
from elmo_zh.corpus.counts import FoundLines, visible
from elmo_zh.corpus.encodings import UNDECODABLE
from elmo_zh.corpus.readers.plain import layout_messages
from elmo_zh.corpus.readers.row_texts import num_without_field, other_fields_note
from elmo_zh.corpus.sources import Sources
from elmo_zh.language import N_, _
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
        _("segment: {characters} in {lines} of {files}; {counts}").format(
            characters=counted(counts.characters, "{number} character", "{number} characters"),
            lines=counted(counts.lines, "{number} line", "{number} lines"),
            files=counted(counts.files, "{number} file", "{number} files"),
            counts=_describe_text(counts),
        )
    )
    dropped = ", ".join(f"{_(reason)}: {number:,}" for reason, number in counts.dropped.items())
    if dropped:
        reporter.note(
            _("Characters kept: {kept_characters}. Characters left out: {dropped}.").format(
                kept_characters=f"{counts.kept_characters:,}", dropped=dropped
            )
        )
    for warning in (*_warnings_of_reading(result, names, config), *_warnings_of_text(counts)):
        reporter.warn(warning)


def _describe_text(counts: SegmentCounts) -> str:
    return _(
        "training text: {train_tokens} in {train_sentences}; held-out text: {heldout_tokens} in {heldout_sentences}."
    ).format(
        train_tokens=_tokens(counts.train_tokens),
        train_sentences=counted(counts.train_sentences, "{number} sentence", "{number} sentences"),
        heldout_tokens=_tokens(counts.heldout_tokens),
        heldout_sentences=counted(counts.heldout_sentences, "{number} sentence", "{number} sentences"),
    )


def _tokens(number: int) -> str:
    return counted(number, "{number} token", "{number} tokens")


def _report_forms(result: SegmentedCorpus, reporter: Reporter) -> None:
    forms = sum((tally.forms for tally in result.tallies), Counter())
    if set(forms) <= {("text", "utf-8", "")}:
        return
    for (kind, encoding, name), count in forms.most_common(_MAX_FORMS):
        form = f"{encoding.upper()}, {name}" if name else encoding.upper()
        files = counted(count, "{number} file", "{number} files")
        reporter.note(_("Read {count} as {kind} in {form}.").format(count=files, kind=kind, form=form))
    if others := sum((tally.other_fields for tally in result.tallies), Counter()):
        reporter.note(other_fields_note(others))


def _warnings_of_reading(result: SegmentedCorpus, names: Sequence[str], config: TextConfig) -> Iterator[str]:
    yield from layout_messages((name, tally.layouts) for name, tally in zip(names, result.tallies, strict=True))
    without = [
        (name, number, number + tally.documents)
        for name, tally in zip(names, result.tallies, strict=True)
        if (number := num_without_field(tally)) > tally.documents
    ]
    for name, num_without, number in without[:1]:  # other files are in the report
        yield _(
            "{name}: {num_without} of {value} records lack the field that was read. Specify the right field with"
            " --field, or several fields: --field text,content"
        ).format(name=name, num_without=f"{num_without:,}", value=f"{number:,}")
    if num_undecodable := sum(tally.dropped_items[UNDECODABLE] for tally in result.tallies):
        yield _(
            "Left out because of bytes that cannot be decoded: {num_undecodable}. To keep them, use --bad-bytes"
            " replace; corpus_report.md in the run folder shows how many characters each source lost."
        ).format(num_undecodable=counted(num_undecodable, "{number} line", "{number} lines"))
    if garbled := result.lines.noticed.get(GARBLED):
        yield _("{lines} may have been decoded with the wrong encoding, such as: {examples} ... {advice}").format(
            lines=counted(garbled.lines, "{number} line", "{number} lines"),
            examples=garbled.examples[0],
            advice=_("Specify the right encoding (--encoding), or get the original file.")
            if config.repair_mojibake
            else _("Try --set text.repair_mojibake=true"),
        )


def _warnings_of_text(counts: SegmentCounts) -> Iterator[str]:
    if counts.train_tokens < _TOO_FEW_TOKENS:
        yield _("There is hardly any text to train on: {text}. A good model needs millions.").format(
            text=_tokens(counts.train_tokens)
        )
    if not counts.han_characters:
        yield _("This corpus contains no Chinese characters. Check that it is the right corpus.")
    if counts.near_copies_heldout:
        yield _(
            "Near copies of {near_copies_heldout} of the held-out text are in the training text, because too little of"
            " the corpus is free of near copies. Perplexity will be lower than on new text."
        ).format(near_copies_heldout=counted(counts.near_copies_heldout, "{number} paragraph", "{number} paragraphs"))
    if not counts.heldout_sentences:
        yield _(
            "No text was held out, so perplexity will not be measured. Unless text.heldout_share is 0, the text is too"
            " short or its lines are too long: put one paragraph on each line, or add more text."
        )


_MOST_SOURCES = 200
_INTRODUCTION = N_("""# What became of the corpus

Characters are counted as they were read, without line breaks and before any change. In examples, invisible characters
are written as escapes such as `\\u200b`. Only the first few examples of each kind are shown.""")
_SECTIONS = {
    "changed": N_("What was changed, step by step"),
    "dropped": N_("What was dropped (lines, records or elements)"),
    "noticed": N_("Kept, but worth a look"),
    "passed_over": N_("What was skipped"),
}


def corpus_report(result: SegmentedCorpus, names: Sequence[str]) -> str:
    """Return the figures of `describe_reading` as Markdown; `names` are the sources' names, in order."""
    counts, reading = result.counts, _describe(result, names)
    total = _("{characters} characters read = {kept_characters} kept").format(
        characters=f"{counts.characters:,}", kept_characters=f"{counts.kept_characters:,}"
    )
    paragraphs = [
        _(_INTRODUCTION),
        _("{total} + {values} dropped; {counts}").format(
            total=total, values=f"{sum(counts.dropped.values()):,}", counts=_describe_text(counts)
        ),
        f"## {_('Sources')}",
        table(
            (_("file"), _("read as"), _("documents"), _("characters read"), _("kept"), _("dropped")),
            [_source_row(name, source) for name, source in list(reading["sources"].items())[:_MOST_SOURCES]],
        ),
    ]
    if len(names) > _MOST_SOURCES:
        paragraphs.append(
            _("Files listed only in `stages/segment.json`: {value}.").format(value=f"{len(names) - _MOST_SOURCES:,}")
        )
    for section, title in _SECTIONS.items():
        kinds = reading[section]
        paragraphs += [f"## {_(title)}", *(part for kind in kinds for part in _describe_kind(kind, kinds[kind]))]
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
