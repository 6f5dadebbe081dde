"""The vectors of a whole file, written in parts, so that an interrupted dump resumes where it stopped."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from elmo_zh.checks import check_choice
from elmo_zh.choices import LAYERS
from elmo_zh.embed.dump_settings import DumpSettings
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import OutputForm, choose_writer, hdf5_packed, is_output
from elmo_zh.embed.jobs import Job
from elmo_zh.embed.join import (
    DumpReport,
    check_form,
    count_unknown_words,
    finish_packed,
    is_plain_packed,
    join_blocks,
)
from elmo_zh.embed.line_blocks import Contents
from elmo_zh.embed.prepare import count_text, describe_model, open_parts, write_packed, write_text_files
from elmo_zh.embed.rows import require_sentences
from elmo_zh.embed.survey import Survey
from elmo_zh.embed.unfinished import DumpCounts, Parts
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.embed.vector_work import Lines, LineVectors
from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.errors import OptionError
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.in_order import PartTask, compute_in_order
from elmo_zh.run.reporter import Hints, Reporter, counted, format_bytes
from elmo_zh.run.resumable import claimed_output, computed_part

# A part ends after so many lines or tokens: little is lost by an interruption, and memory stays bounded.
PART_LINES = 2000
PART_TOKENS = 20_000


def dump_vectors(
    embedder: ElmoEmbedder,
    job: Job,
    settings: DumpSettings,
    form: OutputForm | None = None,
    *,
    force: bool,
    reporter: Reporter,
    hints: Hints | None = None,
    engine: Engine | None = None,
) -> DumpReport:
    """Write the vectors of each line of a text.

    The lines of the text are read twice: to count them, and for their tokens. A resumed dump reads only the bytes of
    the file, for their digest, if it has all tokens already.

    Args:
        embedder: The model.
        job: The text, and the path of its output, where nothing or a complete output is.
        settings: How lines become vectors.
        form: The form of the output; default HDF5 with one dataset per line.
        force: Replace an existing output, and do not resume an unfinished one.
        reporter: Receives messages and progress.
        hints: Receives advice on the text; one object for all texts of a command.
        engine: Runs the computation of the vectors; default this process.

    Raises:
        OptionError: If the settings do not go together.
        OutputError: If the output exists or does not fit on its disk; if an unfinished one is of another text, model
            or settings.
        CorpusError: If the text cannot be read.
    """
    output, form = job.output, form or OutputForm()
    _check_settings(embedder, settings)
    check_form(form, layers=settings.layers, pool=settings.pool)
    with claimed_output(
        output, [job.text.source.path, *job.also_read, embedder.bundle.path], partial(is_output, form=form), force=force
    ):
        dump = _Dump(embedder, job, settings, form, output)
        dump.open(force=force, reporter=reporter)
        hints = hints or Hints(reporter)
        dump.hint_at_long_lines(hints)
        try:
            dump.check_disk_space(reporter)
            dump.prepare(reporter)
            dump.hint_at_unknown_words(hints)
            dump.write_vectors(engine or ThisProcess(), reporter)
            report = dump.finish(reporter)
            dump.parts.remove()
        finally:
            dump.parts.remove(if_empty=True)
    return report


def _check_settings(embedder: ElmoEmbedder, settings: DumpSettings) -> None:
    """Raise OptionError for settings that do not go together, with the model or with each other."""
    check_choice(settings.layers, (*LAYERS, *range(embedder.num_layers)), "embed", "--layers", OptionError)
    if (settings.layers == "mix") != (settings.mix_weights is not None):
        raise OptionError(
            "--layers mix and --mix-weights FILE go together: give both or neither. FILE is JSON with the weights that"
            ' a task has learned, such as {"scalar_parameters": [0.1, 0.9, 0.2], "gamma": 1.0}.'
        )
    if settings.split_sentences:
        require_sentences(embedder.bundle)


class _Part(NamedTuple):
    """The lines of a part, and the row of their first vector."""

    first_row: int
    first_line: int
    num_lines: int
    num_tokens: int


@dataclass
class _Dump:
    """A dump in progress.

    Attributes:
        embedder: The model.
        job: The text.
        settings: How lines become vectors.
        form: The form of the output.
        output: The path of the output.
        survey: The size of the whole text.
        counts: The counts of the lines of this dump, once they are known.
    """

    embedder: ElmoEmbedder
    job: Job
    settings: DumpSettings
    form: OutputForm
    output: Path
    survey: Survey = field(init=False)
    counts: DumpCounts = field(init=False)

    @property
    def parts(self) -> Parts:
        """The folder of the unfinished output."""
        return Parts.of(self.output)

    @property
    def lines(self) -> range:
        """The lines of the text."""
        return range(self.survey.lines)

    def open(self, *, force: bool, reporter: Reporter) -> None:
        """Find out the size of the text, and open the folder of the unfinished output."""
        self.survey = open_parts(
            self.parts,
            self.embedder,
            self.job.text,
            self._identity(),
            segmented=self.settings.segmented,
            split=self.settings.split_sentences,
            force=force,
            reporter=reporter,
        )
        if not self.survey.lines:
            reporter.warn(f"{self.job.text.name} is empty, so its output holds no vectors.")

    def _identity(self) -> dict[str, Any]:
        """Return what the vectors depend on, besides the bytes of the text."""
        reading = {"reading": self.job.text.reading} if self.job.text.reading else {}
        return {**describe_model(self.embedder), **self.settings.described(), **reading}

    def hint_at_long_lines(self, hints: Hints) -> None:
        """Say once if lines are much longer than the sentences that the model was trained on."""
        if advice := self.survey.describe_long(self.job.text.name):
            hints.give("long lines", advice)

    def check_disk_space(self, reporter: Reporter) -> None:
        """Report the size of the text and of its vectors.

        Raises:
            OutputError: If the disk has not enough space.
        """
        survey = self.survey
        contents = self.describe(num_lines=survey.lines, num_tokens=survey.tokens)
        needed = max(0, hdf5_packed.estimate_bytes(contents) - self.parts.disk_bytes())
        if not is_plain_packed(self.form):
            needed += choose_writer(self.form).estimate_bytes(contents)
        is_exact = not survey.sampled_lines and self.form.has_known_size
        advice = "--layers average, --dtype float16, --pool mean"
        space = require_disk_space(self.output, needed, is_exact=is_exact, reporter=reporter, advice=advice)
        pool = "" if self.settings.pool == "none" else f", {self.settings.pool} of each line"
        kind = f"{self.settings.layers}, {self.settings.dtype}{pool}"
        size = format_bytes(contents.vector_bytes)
        unit = "sentence" if self.settings.split_sentences else "line"
        reporter.note(f"{self.job.text.name}: {survey.describe(unit)}; {size} of vectors ({kind}), {space}")

    def describe(self, *, num_lines: int, num_tokens: int, first_line: int | None = None) -> Contents:
        """Return the description of consecutive lines of this dump, by default from its first line on."""
        return Contents(
            attributes=self._attributes(),
            first_line=self.lines.start if first_line is None else first_line,
            num_lines=num_lines,
            num_tokens=num_tokens,
            num_layers=self.embedder.num_layers if self.settings.layers == "all" else None,
            dimension=self.embedder.dimension,
            dtype=self.settings.dtype,
            is_pooled=self.settings.pool != "none",
            has_offsets=not self.settings.segmented,
            has_source_lines=self.settings.split_sentences,
            has_text=True,
        )

    def _attributes(self) -> dict[str, Any]:
        segmenter = json.dumps(self.embedder.bundle.info["segmenter"], ensure_ascii=False)
        chosen: dict[str, Any] = {"stateful": True} if self.settings.stateful else {}
        if self.settings.split_sentences:
            chosen["split_sentences"] = True
        usual = {"precision": "float32", "unknown": "unk"}
        chosen |= {name: value for name, value in describe_model(self.embedder).items() if usual.get(name) != value}
        if self.settings.pool != "none":
            chosen["pool"] = self.settings.pool
        if self.settings.mix_weights is not None:
            chosen["mix_weights"] = np.array(self.settings.mix_weights)
        return {
            **chosen,
            "layers": self.settings.layers,
            "dtype": self.settings.dtype,
            "segmenter": "as given" if self.settings.segmented else segmenter,
        }

    def _contents(self) -> Contents:
        """Return the description of all lines of this dump."""
        contents = self.describe(num_lines=self.counts.lines, num_tokens=self.counts.tokens)
        return contents.with_text(self.parts.have_text())

    def prepare(self, reporter: Reporter) -> None:
        """Write the packed file of all lines, without their vectors, unless it exists."""
        if counts := self.parts.counts():
            self.counts = counts
            if self.parts.remove_damaged():
                reporter.warn(f"Some vectors in {self.parts.path} are damaged, so they are computed again.")
            done = self.parts.num_finished_lines()
            reporter.note(f"Resuming: {done:,} of {counted(counts.lines, 'line')} are finished.")
            return
        write_text_files(self.embedder, self.job.text, self.lines, self.parts, self.describe, reporter)
        self.counts = count_text(self.parts)
        write_packed(self.parts, self._contents(), self.counts)

    def hint_at_unknown_words(self, hints: Hints) -> None:
        """Say once if far more words are unknown than in training, before any vector is computed."""
        line = describe_unknown_rate(
            self.embedder.bundle,
            self.counts.tokens,
            self.counts.unknown_tokens,
            lambda: count_unknown_words(self.parts.packed),
            segmented=self.settings.segmented,
        )
        if line:
            hints.give("unknown words", f"{self.job.text.name}: {line}")

    def write_vectors(self, engine: Engine, reporter: Reporter) -> None:
        """Embed all lines that have no vectors yet, and write their vectors into the packed file."""
        done = self.parts.num_finished_lines()
        if self.settings.stateful:
            self.embedder.reset_state()
            if state := self.parts.state():
                self.embedder.restore_state(state)
        vectors = hdf5_packed.VectorFile(self.parts.packed)
        contents = self.describe(num_lines=self.counts.lines, num_tokens=self.counts.tokens)
        work = LineVectors(self.embedder, contents, self.settings.reduction)
        with reporter.progress("embed", unit="lines", total=self.counts.lines, initial=done) as progress:
            started, num_tokens = time.monotonic(), 0
            for part, computed in compute_in_order(engine, work, self._iter_tasks(done), self.parts.path):
                written = vectors.write(part.first_row, computed)
                state = self.embedder.state_arrays() if self.settings.stateful else {}
                self.parts.finish_part(part.first_line, part.num_lines, written, state)
                num_tokens += part.num_tokens
                progress.update(part.num_lines, **{"tokens/s": num_tokens / (time.monotonic() - started)})

    def _iter_tasks(self, start: int) -> Iterator[PartTask[Lines, _Part]]:
        """Yield the lines from index `start` on, as many at a time as make a part, and the file closed between them."""
        while start < self.counts.lines:
            with h5py.File(self.parts.packed, "r") as file:
                offsets = file["line_offsets"][start : start + PART_LINES + 1]
                # The line that reaches the number of tokens is the last one.
                num_lines = min(int(np.searchsorted(offsets, offsets[0] + PART_TOKENS)), len(offsets) - 1)
                block = hdf5_packed.read_lines(file, start, start + num_lines)
            tokens = [token.decode() for token in block.tokens]
            first_row = start if self.settings.pool != "none" else int(offsets[0])
            yield PartTask(
                name=computed_part(block.first_line, num_lines),
                task=[tokens[own] for _, own in block.iter_lines()],
                kept=_Part(first_row, block.first_line, num_lines, len(tokens)),
            )
            start += num_lines

    def finish(self, reporter: Reporter) -> DumpReport:
        """Make the output of the packed file: that file itself, or one in another form."""
        if is_plain_packed(self.form):
            return finish_packed(self.parts.packed, self.output, self.counts)
        blocks = hdf5_packed.iter_blocks([self.parts.packed])
        return join_blocks(blocks, self.output, self._contents(), self.counts, self.form, reporter)
