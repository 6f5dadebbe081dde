"""What the segment stage tells and records of the files that it read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from elmo_zh.config import CORPUS, TextConfig
from elmo_zh.corpus.cleaning.clean import CLEANING_STEPS, GARBLED
from elmo_zh.corpus.decoding import UNDECODABLE
from elmo_zh.run.reporter import Reporter
from elmo_zh.segmenting.preparation import STEPS
from elmo_zh.segmenting.segment import SegmentedCorpus

_MOST_TOLD = 8


def reading_settings(config: TextConfig) -> dict[str, Any]:
    """Return the settings of reading and cleaning that are not the defaults, so that older records stay good."""
    defaults = {f.name: f.default for f in fields(config)}
    return {name: getattr(config, name) for name in CORPUS if getattr(config, name) != defaults[name]}


def describe_reading(done: SegmentedCorpus, names: Sequence[str], other_names: Sequence[Path]) -> dict[str, Any]:
    """Return what was read of each source, changed, dropped and passed over, as the stage record has it.

    Args:
        done: The counts.
        names: Of the sources, in their order.
        other_names: Files of folders that are no text by their names.
    """
    passed_over, lines = done.passed_over, done.lines
    for path in other_names:
        passed_over.add("files that are no text by their names", str(path))
    return {
        "changed": {
            entry.step: {**entry._asdict(), "examples": lines.steps[entry.step].examples}
            for entry in lines.ledger(STEPS)
            if entry.lines
        },
        "dropped": {reason: asdict(found) for reason, found in sorted(lines.dropped.items())},
        "noticed": {reason: asdict(found) for reason, found in sorted(lines.noticed.items())},
        "sources": {name: tally.described() for name, tally in zip(names, done.tallies, strict=True)},
        "passed_over": passed_over.described(),
    }


def report_segmented(done: SegmentedCorpus, config: TextConfig, reporter: Reporter) -> None:
    """Tell what was read, changed, dropped and written, and what the user should look at."""
    counts = done.counts
    _report_forms(done, reporter)
    for line in done.passed_over.summary_lines():
        reporter.note(line)
    reporter.note(
        f"segment: {counts.characters:,} characters in {counts.lines:,} lines of {counts.files} files;"
        f" {counts.train_tokens:,} tokens in {counts.train_sentences:,} sentences to train on,"
        f" {counts.heldout_tokens:,} in {counts.heldout_sentences:,} held out."
    )
    dropped = ", ".join(f"{reason} {number:,}" for reason, number in counts.dropped.items())
    if dropped:
        reporter.note(f"Of the characters {counts.kept_characters:,} were kept; left out were {dropped}.")
    for entry in done.lines.ledger(STEPS):
        if entry.step in CLEANING_STEPS and entry.lines:
            less = entry.characters_in - entry.characters_out
            reporter.note(f"text.{entry.step} changed {entry.lines:,} lines, {less:,} characters less.")
    _warn(done, config, reporter)


def _report_forms(done: SegmentedCorpus, reporter: Reporter) -> None:
    """Tell as what the files were read, unless all were plain UTF-8."""
    forms = sum((tally.forms for tally in done.tallies), Counter())
    if set(forms) <= {("text", "utf-8", "")}:
        return
    for (kind, encoding, name), count in forms.most_common(_MOST_TOLD):
        where = f", {name}" if name else ""
        reporter.note(f"Read {count:,} {'files' if count > 1 else 'file'} as {kind} in {encoding.upper()}{where}.")
    if len(forms) > _MOST_TOLD:
        reporter.note(f"Read others in {len(forms) - _MOST_TOLD} more ways; the stage record has all of them.")


def _warn(done: SegmentedCorpus, config: TextConfig, reporter: Reporter) -> None:
    counts = done.counts
    num_undecodable = sum(tally.dropped_items[UNDECODABLE] for tally in done.tallies)
    if num_undecodable:
        reporter.warn(
            f"{num_undecodable:,} lines were left out since they have bytes that do not decode. See them with"
            " --bad-bytes strict, or keep them with --bad-bytes replace."
        )
    if GARBLED in done.lines.noticed:
        found = done.lines.noticed[GARBLED]
        advice = "They are not repaired." if config.repair_mojibake else "Try --set text.repair_mojibake=true"
        reporter.warn(f"{found.lines:,} lines look as if they were decoded wrongly: {found.examples[0]} ... {advice}")
    if not counts.han_characters:
        reporter.warn("There is not one Chinese character in this corpus. Is it the right one?")
    if not counts.heldout_sentences:
        reporter.warn(
            "No text could be held out (too little of it, or only very long lines), so perplexity will not be"
            " measured. Put one paragraph a line, or give more text."
        )
