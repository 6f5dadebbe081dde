"""Vectors of a whole file, in parts, so that a dump that was stopped goes on where it stopped."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.corpus.files import iter_lines
from elmo_zh.embed.blocks import Contents, LineBlock
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import OutputForm, choose_writer, hdf5_packed
from elmo_zh.embed.join import DumpReport, check_form, claimed_output, join_files
from elmo_zh.embed.reduction import Reduction, check_layers
from elmo_zh.embed.shards import Shard
from elmo_zh.embed.survey import Survey, check_room, survey_text
from elmo_zh.embed.unfinished import DumpCounts, Parts
from elmo_zh.errors import CorpusError, OutputError
from elmo_zh.run.files import file_digest
from elmo_zh.run.reporter import Progress, Reporter, format_bytes
from elmo_zh.text.alignment import TokenisedLine

# A part ends after so many lines or tokens: little is lost, few files are joined, and memory stays bounded.
PART_LINES = 2000
PART_TOKENS = 20_000


@dataclass(frozen=True, kw_only=True)
class DumpSettings:
    """How a file becomes vectors, whatever the form in which they are written.

    Attributes:
        segmented: Tokens are split at U+0020 and looked up as they are; else lines are normalised and segmented.
        layers: all, average, top, mix or a number.
        dtype: float32 or float16.
        pool: none, or what makes one vector of a line's: mean, max, first-last.
        mix_weights: The weight of each layer, for layers = mix.
        stateful: The state is carried from line to line.
    """

    segmented: bool
    layers: str
    dtype: str
    pool: str = "none"
    mix_weights: tuple[float, ...] | None = None
    stateful: bool = False

    @property
    def reduction(self) -> Reduction:
        """What is kept of the activations."""
        return Reduction(layers=self.layers, pool=self.pool, mix_weights=self.mix_weights)


def dump_vectors(
    embedder: ElmoEmbedder,
    source: Path,
    output: Path,
    settings: DumpSettings,
    form: OutputForm | None = None,
    *,
    shard: Shard | None = None,
    force: bool,
    reporter: Reporter,
    name: str = "",
) -> DumpReport:
    """Write the vectors of each line of a text file.

    Args:
        embedder: The model.
        source: One sentence a line, UTF-8, plain or compressed.
        output: Where, complete or not there at all; of a shard the name is that of the whole.
        settings: How lines become vectors.
        form: What to write; default HDF5 with one dataset a line. A shard is packed HDF5, whatever it says.
        shard: The share of the lines to take; default all.
        force: Replace an existing output, and do not continue an unfinished one.
        reporter: Where to tell.
        name: What to call the text where it is told of; default its path.

    Raises:
        ElmoZhError: For choices that do not go together.
        OutputError: If the output exists or does not fit on its disk; if an unfinished one is of another text, model
            or settings.
        CorpusError: If the text cannot be read.
    """
    form = form or OutputForm()
    check_layers(settings.layers, embedder.num_layers)
    if (settings.layers == "mix") != (settings.mix_weights is not None):
        raise OutputError("--layers mix and --mix-weights FILE go together: give both or neither.")
    if shard is not None:
        if settings.stateful:
            raise OutputError("--stateful reads a file from its first line on, so it cannot go with --shard.")
        form, output = OutputForm(layout="packed"), shard.output(output)
    check_form(form, layers=settings.layers, pool=settings.pool)
    with claimed_output(output, force=force):
        survey = survey_text(embedder, source, segmented=settings.segmented)
        lines = shard.lines(survey.lines) if shard else range(survey.lines)
        manifest = {"source_digest": file_digest(source), **_describe_model(embedder), **asdict(settings)}
        place = {"shard": [shard.number, shard.count]} if shard else {}
        work = _Dump(embedder, source, settings, Parts.of(output), lines)
        work.parts.open({**manifest, **place}, force=force)
        try:
            work.go_on()
            told = _check_room(work, output, survey.share(len(lines)), form, reporter)
            reporter.note(f"{name or source}: {told}")
            work.write_parts(reporter)
            contents = work.contents(num_lines=work.counts.lines, num_tokens=work.counts.tokens)
            if shard:
                described = shard.attributes(manifest, survey.lines, asdict(work.counts))
                contents = contents.with_attributes(described)
            report = join_files(work.parts.finished(), output, contents, work.counts, form, reporter)
            work.parts.remove()
        finally:
            work.parts.remove(if_empty=True)
    return report


def _check_room(work: "_Dump", output: Path, survey: Survey, form: OutputForm, reporter: Reporter) -> str:
    """Return what there is to do and how much room that needs, for people; an error if there is not enough."""
    contents = work.contents(num_lines=survey.lines, num_tokens=survey.tokens)
    of_parts = max(0, hdf5_packed.estimate_bytes(contents) - work.parts.finished_bytes())
    needed = of_parts + choose_writer(form).estimate_bytes(contents)
    room = check_room(output, needed, is_exact=not survey.sampled_lines, reporter=reporter)
    pool = "" if work.settings.pool == "none" else f", {work.settings.pool} of each line"
    kind = f"{work.settings.layers}, {work.settings.dtype}{pool}"
    return f"{survey.describe()}; {format_bytes(contents.vector_bytes)} of vectors ({kind}), {room}"


@dataclass
class _Dump:
    """A dump at work.

    Attributes:
        embedder: The model.
        source: The text.
        settings: How lines become vectors.
        parts: What is finished.
        lines: Which lines of the text are wanted.
        counts: What the finished parts hold.
    """

    embedder: ElmoEmbedder
    source: Path
    settings: DumpSettings
    parts: Parts
    lines: range
    counts: DumpCounts = field(default_factory=DumpCounts)

    def go_on(self) -> None:
        """Take up where the finished parts end."""
        self.counts = self.parts.counts()
        if self.settings.stateful:
            self.embedder.reset_state()
            if state := self.parts.state():
                self.embedder.restore_state(state)

    def contents(self, *, num_lines: int, num_tokens: int, first_line: int | None = None) -> Contents:
        """Return the description of so many lines of this dump."""
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
        )

    def _attributes(self) -> dict[str, Any]:
        segmenter = json.dumps(self.embedder.bundle.info["segmenter"], ensure_ascii=False)
        chosen: dict[str, Any] = {"stateful": True} if self.settings.stateful else {}
        usual = {"precision": "float32", "unknown": "unk"}
        chosen |= {name: way for name, way in _describe_model(self.embedder).items() if usual.get(name) != way}
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

    def write_parts(self, reporter: Reporter) -> None:
        """Embed all lines that are not in finished parts.

        Raises:
            CorpusError: If the text has changed since it was looked through.
        """
        with reporter.progress("embed", unit="lines", total=len(self.lines), initial=self.counts.lines) as progress:
            started, tokens_before = time.monotonic(), self.counts.tokens
            for lines in self._iter_part_lines():
                self._write_part(lines)
                _tell(progress, len(lines), (self.counts.tokens - tokens_before) / (time.monotonic() - started))
        if self.counts.lines != len(self.lines):
            raise CorpusError(f"{self.source} has changed while it was read. Type the same command again.")

    def _iter_part_lines(self) -> Iterator[list[TokenisedLine]]:
        """Yield the lines that are left, as many at a time as make a part."""
        part: list[TokenisedLine] = []
        num_tokens = 0
        first = self.lines.start + self.counts.lines
        for number, text in enumerate(islice(iter_lines(self.source), first, self.lines.stop), start=first + 1):
            line = self.embedder.prepare(text, segmented=self.settings.segmented)
            if "\0" in text and any("\0" in token for token in line.tokens):
                raise CorpusError(
                    f"{self.source}: line {number} holds a NUL character, which HDF5 cannot store. Remove it."
                )
            part.append(line)
            num_tokens += len(line.tokens)
            if len(part) >= PART_LINES or num_tokens >= PART_TOKENS:
                yield part
                part, num_tokens = [], 0
        if part:
            yield part

    def _write_part(self, lines: list[TokenisedLine]) -> None:
        block = self._embed(lines)
        tokens = [token for line in lines for token in line.tokens]
        added = DumpCounts(
            lines=len(lines),
            empty_lines=sum(not line.tokens for line in lines),
            tokens=len(tokens),
            unknown_tokens=int(block.unknown.sum()),
            cut_tokens=self.embedder.count_cut(tokens),
        )
        contents = self.contents(num_lines=len(lines), num_tokens=len(tokens), first_line=block.first_line)
        state = self.embedder.state_arrays() if self.settings.stateful else {}
        self.counts.add(added)
        self.parts.write(block, contents, self.counts, state)

    def _embed(self, lines: list[TokenisedLine]) -> LineBlock:
        offsets = np.cumsum([0, *(len(line.tokens) for line in lines)], dtype=np.int64)
        tokens = [token for line in lines for token in line.tokens]
        contents = self.contents(num_lines=len(lines), num_tokens=len(tokens))
        vectors = np.empty(contents.shape, self.settings.dtype)
        reduction = self.settings.reduction
        for index, activations in enumerate(self.embedder.embed_tokens([line.tokens for line in lines])):
            own = index if contents.is_pooled else slice(offsets[index], offsets[index + 1])
            vectors[..., own, :] = reduction.apply(activations)
        return LineBlock(
            first_line=self.lines.start + self.counts.lines,
            line_offsets=offsets,
            tokens=[token.encode() for token in tokens],
            unknown=self.embedder.find_unknown(tokens),
            character_offsets=np.concatenate([line.offsets for line in lines]) if contents.has_offsets else None,
            vectors=vectors,
            is_pooled=contents.is_pooled,
        )


def _describe_model(embedder: ElmoEmbedder) -> dict[str, str]:
    """Return which model computes, and how."""
    return {
        "model_digest": embedder.bundle.digest,
        "precision": embedder.precision,
        "unknown": embedder.unknown,
    }


def _tell(progress: Progress, num_lines: int, tokens_per_second: float) -> None:
    progress.update(num_lines, **{"tokens/s": tokens_per_second})
