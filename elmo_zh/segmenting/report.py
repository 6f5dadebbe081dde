"""Report the text that the segment stage read and dropped, on screen and in its record."""

from collections.abc import Iterator, Sequence
from typing import Any

from elmo_zh.corpus.cleaning import GARBLED
from elmo_zh.corpus.counts import READING, reasons_line, skipped_lines
from elmo_zh.corpus.encodings import UNDECODABLE
from elmo_zh.corpus.packing import NO_TEXT_NAMES
from elmo_zh.corpus.readers.plain import layout_messages
from elmo_zh.corpus.readers.row_texts import WITHOUT_FIELD, other_fields_note
from elmo_zh.corpus.sources import OUTPUTS, Sources
from elmo_zh.language import _
from elmo_zh.run.reporter import Reporter, counted
from elmo_zh.segmenting.segment_corpus import SegmentedCorpus

_MAX_FORMS = 8


def describe_reading(result: SegmentedCorpus, names: Sequence[str], sources: Sources) -> dict[str, Any]:
    """Describe, for the stage record, the text that was read from the named sources, cleaned, dropped or skipped."""
    total = result.total
    for path in sources.passed_over:
        total.pass_over(NO_TEXT_NAMES, str(path))
    for path in sources.outputs:
        total.pass_over(OUTPUTS, str(path))
    found = {
        name: {
            kind: {"count": found.count, "characters": found.characters, "examples": found.examples}
            for kind, found in sorted(getattr(total, name).items())
        }
        for name in ("dropped", "noticed", "passed_over")
    }
    described = {name: tally.described() for name, tally in zip(names, result.tallies, strict=True)}
    return {**found, "sources": described}


def report_segmented(result: SegmentedCorpus, names: Sequence[str], reporter: Reporter) -> None:
    """Report the text that was read, dropped and written, and warn about anything that users should check."""
    counts = result.counts
    _report_forms(result, reporter)
    for line in skipped_lines(result.total.passed_over):
        reporter.note(line)
    reporter.note(
        _(
            "segment: {lines} from {files} (characters: {characters:,}); training text: {train_tokens} in"
            " {train_sentences}; held-out text: {heldout_tokens} in {heldout_sentences}."
        ).format(
            characters=counts.characters,
            lines=counted(counts.lines, "{number} line", "{number} lines"),
            files=counted(counts.files, "{number} file", "{number} files"),
            train_tokens=counted(counts.train_tokens, "{number} token", "{number} tokens"),
            train_sentences=counted(counts.train_sentences, "{number} sentence", "{number} sentences"),
            heldout_tokens=counted(counts.heldout_tokens, "{number} token", "{number} tokens"),
            heldout_sentences=counted(counts.heldout_sentences, "{number} sentence", "{number} sentences"),
        )
    )
    if counts.dropped:
        reporter.note(
            _("Characters kept: {kept_characters}. Characters left out: {dropped}.").format(
                kept_characters=f"{counts.kept_characters:,}", dropped=reasons_line(counts.dropped)
            )
        )
    for warning in _warnings(result, names):
        reporter.warn(warning)


def _report_forms(result: SegmentedCorpus, reporter: Reporter) -> None:
    forms = sorted(result.total.read_as, key=lambda form: -form.files)
    if {form.key() for form in forms} <= {("text", "utf-8", "")}:
        return
    for form in forms[:_MAX_FORMS]:
        files = counted(form.files, "{number} file", "{number} files")
        reporter.note(_(READING).format(name=files, kinds=form.described()))
    if result.total.other_fields:
        reporter.note(other_fields_note(result.total.other_fields))


def _warnings(result: SegmentedCorpus, names: Sequence[str]) -> Iterator[str]:
    yield from layout_messages((name, tally.layouts) for name, tally in zip(names, result.tallies, strict=True))
    without = [
        (name, number)
        for name, tally in zip(names, result.tallies, strict=True)
        if (number := tally.num_dropped(WITHOUT_FIELD)) > tally.lines
    ]
    for name, number in without[:1]:  # other files are in the record
        yield _(
            "{name}: most records ({number:,}) lack the field that was read. Specify the right field with --field, or"
            " several fields: --field text,content"
        ).format(name=name, number=number)
    if num_undecodable := result.total.num_dropped(UNDECODABLE):
        yield _(
            "Left out because of bytes that cannot be decoded: {num_undecodable}. To keep them, use --bad-bytes replace"
        ).format(num_undecodable=counted(num_undecodable, "{number} line", "{number} lines"))
    if garbled := result.total.noticed.get(GARBLED):
        yield _(
            "{lines}, such as '{example}', may have been decoded with the wrong encoding. Specify the right encoding"
            " (--encoding), get the original file, or repair this one, for example with ftfy."
        ).format(lines=counted(garbled.count, "{number} line", "{number} lines"), example=garbled.examples[0])
    counts = result.counts
    if counts.near_copies_heldout:
        yield _(
            "Held-out paragraphs that have near copies in the corpus: {number:,}. There is too little text without near"
            " copies. Perplexity may be lower than on new text."
        ).format(number=counts.near_copies_heldout)
    if not counts.heldout_sentences:
        yield _(
            "No text was held out, so perplexity will not be measured. Unless text.heldout_share is 0, the text is too"
            " short or its lines are too long: put one paragraph on each line, or add more text."
        )
