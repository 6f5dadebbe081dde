"""Compute the vectors of a whole file in parts, so that an interrupted dump resumes where it stopped."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_choice
from elmo_zh.choices import LAYERS
from elmo_zh.corpus.sources import Stamp
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import Contents, LineBlock, OutputForm, TextBlock, check_form, choose_writer, is_output
from elmo_zh.embed.jobs import Job
from elmo_zh.embed.reduction import Reduction
from elmo_zh.embed.text_tokens import TextTokens, TokenCounts, hint_at_long_lines, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.engine.engine import Engine, Shared, ThisProcess
from elmo_zh.errors import OptionError
from elmo_zh.language import translate
from elmo_zh.run.arrays import ArrayWork, load_arrays, load_npy, save_arrays, save_npy
from elmo_zh.run.disk_space import require_disk_space
from elmo_zh.run.files import atomic_path, claimed_output, file_digest, written_once
from elmo_zh.run.reporter import Hints, Progress, Reporter, counted, format_bytes
from elmo_zh.run.work_folder import PartTask, Region, WorkFolder, part_name
from elmo_zh.vocabulary.vocabulary import BoundedCounts

_REPORTED_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class DumpSettings(Reduction):
    """The settings that determine the vectors, whatever form they are written in."""

    segmented: bool  # Tokens are split at U+0020 and looked up as they are; else lines are normalised and segmented
    dtype: str
    stateful: bool = False  # The LSTM state is carried from line to line
    # Lines are split into sentences as in training, and each sentence has its own vectors.
    split_sentences: bool = False

    def check(self, embedder: ElmoEmbedder) -> None:
        """Raise OptionError or BundleError if settings contradict each other or the model."""
        check_choice(self.layers, (*LAYERS, *range(embedder.num_layers)), "embed", "--layers", OptionError)
        if (self.layers == "mix") != (self.mix_weights is not None):
            raise OptionError(
                "--layers mix and --mix-weights FILE go together: give both or neither. FILE is JSON with the weights"
                ' that a task has learned, such as {"scalar_parameters": [0.1, 0.9, 0.2], "gamma": 1.0}.'
            )
        if self.split_sentences:
            require_sentences(embedder.bundle)


@dataclass(frozen=True, kw_only=True)
class DumpReport:
    """The counts to report once an output is finished."""

    output: Path
    counts: TokenCounts
    unknown_words: Mapping[str, int]  # The most frequent words outside the vocabulary, each with its count
    extra: Mapping[str, int]  # Counts specific to the output format


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
    """Write the vectors of every line of a text, resuming unless `force`; all texts can share one `hints`."""
    form = form or OutputForm()
    settings.check(embedder)
    check_form(form, layers=settings.layers, pool=settings.pool)
    inputs = [job.text.source.path, embedder.bundle.path]
    with claimed_output(job.output, inputs, partial(is_output, form=form), force=force):
        dump = _Dump(embedder, job, settings, form, reporter)
        stamp = dump.open(force=force)
        try:
            report = dump.run(stamp, hints or Hints(reporter), engine or ThisProcess())
            dump.folder.remove()
        finally:
            if not dump.tokens.paths():
                dump.folder.remove()
    return report


class _Dump:
    """A dump in progress. Its work folder keeps the tokens of each part in `text-*` and the vectors in `part-*`."""

    def __init__(
        self, embedder: ElmoEmbedder, job: Job, settings: DumpSettings, form: OutputForm, reporter: Reporter
    ) -> None:
        self._embedder, self._job, self._settings, self._form = embedder, job, settings, form
        self._reporter = reporter
        self.folder = WorkFolder.of(job.output)
        self.tokens = TextTokens(self.folder)

    def open(self, *, force: bool) -> Stamp:
        """Open the work folder, and return the stamp of the text, taken just before the digest in the manifest."""
        text = self._job.text
        stamp = Stamp.of(text.source)
        reading = {"reading": text.reading} if text.reading else {}
        digest = file_digest(text.source.path)
        manifest = {"source_digest": digest, **self._embedder.identity(), **asdict(self._settings), **reading}
        self.folder.open(manifest, force=force, refusal="an unfinished output for a different text, model or settings")
        return stamp

    def run(self, stamp: Stamp, hints: Hints, engine: Engine) -> DumpReport:
        """Write the output, reusing the finished parts in the work folder."""
        settings = self._settings
        counts = self.tokens.write(
            self._embedder,
            self._job.text,
            segmented=settings.segmented,
            split=settings.split_sentences,
            stamp=stamp,
            reporter=self._reporter,
        )
        contents = self._describe(counts)
        unknown = _count_unknown_words(self.tokens.blocks()) if counts.unknown_tokens else Counter[str]()
        self._hint(counts, unknown, hints)
        self._check_disk_space(counts, contents)
        self._write_vectors(contents, engine)
        extra = self._join(contents)
        unknown_words = dict(unknown.most_common(_REPORTED_WORDS))
        return DumpReport(output=self._job.output, counts=counts, unknown_words=unknown_words, extra=extra)

    def _describe(self, counts: TokenCounts) -> Contents:
        settings = self._settings
        return Contents(
            attributes=self._attributes(),
            num_lines=counts.lines,
            num_tokens=counts.tokens,
            num_layers=self._embedder.num_layers if settings.layers == "all" else None,
            dimension=self._embedder.dimension,
            dtype=settings.dtype,
            is_pooled=settings.pool != "none",
            has_offsets=not settings.segmented,
            has_source_lines=settings.split_sentences,
        )

    def _attributes(self) -> dict[str, Any]:
        """Return the root attributes of the output, with precision and `unknown` only if they are unusual."""
        settings = self._settings
        segmenter = "as given"
        if not settings.segmented:
            segmenter = json.dumps(self._embedder.bundle.info["segmenter"], ensure_ascii=False)
        usual = {"precision": "float32", "unknown": "unk"}
        chosen: dict[str, Any] = {
            name: value for name, value in self._embedder.identity().items() if usual.get(name) != value
        }
        chosen |= {name: True for name in ("stateful", "split_sentences") if getattr(settings, name)}
        if settings.pool != "none":
            chosen["pool"] = settings.pool
        if settings.mix_weights is not None:
            chosen["mix_weights"] = np.array(settings.mix_weights)
        return {**chosen, "layers": settings.layers, "dtype": settings.dtype, "segmenter": segmenter}

    def _hint(self, counts: TokenCounts, unknown: Counter[str], hints: Hints) -> None:
        text = self._job.text
        if not counts.lines:
            self._reporter.warn(f"{text.name} is empty, so its output contains no vectors.")
        hint_at_long_lines(text, counts, hints)
        line = describe_unknown_rate(self._embedder.bundle, counts.tokens, counts.unknown_tokens, unknown)
        if line:
            hints.give("unknown words", f"{text.name}: {line}")

    def _check_disk_space(self, counts: TokenCounts, contents: Contents) -> None:
        """Report the size of the text and of its vectors; raise OutputError if there is not enough disk space."""
        settings = self._settings
        unit = "sentence" if settings.split_sentences else "line"
        written_bytes = sum(path.stat().st_size for path in self.folder.path.glob("part-*.npy"))
        missing_bytes = max(0, contents.vector_bytes - written_bytes)
        needed_bytes = missing_bytes + choose_writer(self._form).estimate_bytes(contents)
        output, is_exact = self._job.output, self._form.has_known_size
        advice = "--layers average, --dtype float16, --pool mean"
        space = require_disk_space(output, needed_bytes, is_exact=is_exact, reporter=self._reporter, advice=advice)
        pool = "" if settings.pool == "none" else f", {settings.pool} of each {translate(unit)}"
        layers = translate(settings.layers)
        self._reporter.note(
            f"{self._job.text.name} contains {counted(counts.lines, unit)} and {counted(counts.tokens, 'token')};"
            f" the vectors take {format_bytes(contents.vector_bytes)} ({layers}, {settings.dtype}{pool}), {space}"
        )

    def _write_vectors(self, contents: Contents, engine: Engine) -> None:
        """Compute the vectors of all parts that lack them, and write one file per part."""
        done = self.folder.finished_lines(reporter=self._reporter)
        num_done = sum(done.values())
        if done:
            self._reporter.note(f"Resuming: {num_done:,} of {counted(contents.num_lines, 'line')} are finished.")
        if self._settings.stateful:
            self._embedder.reset_state()
            if done:
                self._embedder.restore_state(load_arrays(self.folder.path / f"{list(done)[-1]}.npz"))
        work = LineVectors(self._embedder, contents, self._settings)
        with self._reporter.progress("embed", unit="lines", total=contents.num_lines, initial=num_done) as progress:
            started, num_tokens = time.monotonic(), 0
            tasks = self._iter_tasks(self.tokens.paths()[len(done) :])
            for block, vectors in self.folder.compute(engine, work, tasks):
                self._finish_part(block, vectors)
                num_tokens += len(block.tokens)
                progress.update(block.num_lines, **{"tokens/s": num_tokens / (time.monotonic() - started)})

    @staticmethod
    def _iter_tasks(paths: Sequence[Path]) -> "Iterator[PartTask[Lines, TextBlock]]":
        for block in map(TextBlock.load, paths):
            lines = [[token.decode() for token in block.tokens[own]] for _, own in block.iter_lines()]
            yield PartTask(f"computed-{block.first_line:012d}", lines, block)

    def _finish_part(self, block: TextBlock, vectors: NDArray[Any]) -> None:
        path = self._vectors_path(block)
        with written_once(path) as unfinished:
            save_npy(unfinished, vectors)
        written = [Region.whole(path)]
        if self._settings.stateful:
            state_path = path.with_suffix(".npz")
            with written_once(state_path) as unfinished:
                save_arrays(unfinished, self._embedder.state_arrays())
            written.append(Region.whole(state_path))
        self.folder.finish_lines(block.first_line, block.num_lines, written)

    def _vectors_path(self, block: TextBlock) -> Path:
        return self.folder.path / f"{part_name(block.first_line)}.npy"

    def _join(self, contents: Contents) -> Mapping[str, int]:
        """Write the output from the parts, completely or not at all; return counts specific to its format."""
        with (
            atomic_path(self._job.output) as unfinished,
            self._reporter.progress("join", unit="lines", total=contents.num_lines) as progress,
        ):
            blocks = self._iter_blocks(contents, progress)
            return choose_writer(self._form).write(unfinished, contents, blocks, self._form)

    def _iter_blocks(self, contents: Contents, progress: Progress) -> Iterator[LineBlock]:
        for block in self.tokens.blocks():
            yield block.with_vectors(load_npy(self._vectors_path(block)), is_pooled=contents.is_pooled)
            progress.update(block.num_lines)


Lines = Sequence[Sequence[str]]


class LineVectors(ArrayWork):
    """Computes the vectors of tokenised lines, here or on workers, in the dtype and shape of an output."""

    def __init__(self, embedder: ElmoEmbedder, contents: Contents, reduction: Reduction) -> None:
        self._embedder = Shared((embedder,))
        self._contents, self._reduction = contents, reduction

    def compute(self, lines: Lines) -> NDArray[Any]:
        """Return the vectors of lines, shape (L + 1, R, 2P) for all layers, otherwise (R, 2P)."""
        contents = replace(self._contents, num_lines=len(lines), num_tokens=sum(map(len, lines)))
        vectors = np.empty(contents.shape, contents.dtype)
        spans = pairwise(accumulate(map(len, lines), initial=0))
        with self._embedder.used() as (embedder,):
            for index, (activations, span) in enumerate(zip(embedder.compute_vectors(lines), spans, strict=True)):
                vectors[..., index if contents.is_pooled else slice(*span), :] = self._reduction.apply(activations)
        return vectors


def _count_unknown_words(blocks: Iterator[TextBlock]) -> Counter[str]:
    """Count the unknown words in a text; if there are too many to keep, the rarer half is dropped."""
    unknown = BoundedCounts[bytes]()
    for block in blocks:
        unknown.add(compress(block.tokens, block.unknown))
    return Counter({word.decode(): count for word, count in unknown.counts.items()})
