"""Write the vectors of a whole text: its tokens and then their vectors to the work folder, then both to the output."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.checks import check_layers
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import Source, Sources
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import Contents, LineBlock, check_format, choose_writer, is_output
from elmo_zh.embed.reduction import Reduction
from elmo_zh.embed.text_tokens import TextTokens, TokenCounts, Tokeniser, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.errors import OptionError, OutputError
from elmo_zh.language import _
from elmo_zh.run.arrays import load_arrays, load_npy, save_arrays, save_npy
from elmo_zh.run.files import folder_bytes, require_disk_space
from elmo_zh.run.job import Files, FinishedPart, Step, Work
from elmo_zh.run.reporter import Hints, Progress, Reporter, counted, format_bytes
from elmo_zh.text.sentences import WINDOW_ITEMS
from elmo_zh.vocabulary.vocabulary import BoundedCounts

_REPORTED_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class DumpSettings(Reduction):
    """The settings that affect the vectors themselves, not the format of the output."""

    segmented: bool  # Lines are already segmented (`split_segmented`); else they are normalised and segmented
    dtype: str
    stateful: bool = False  # The LSTM state is carried from line to line
    # Lines are split into sentences as in training, and each sentence has its own vectors.
    split_sentences: bool = False

    def check(self, embedder: ElmoEmbedder) -> None:
        """Raise OptionError or BundleError if settings contradict each other or the model."""
        check_layers(self.layers, embedder.num_layers, "embed", "--layers", kind=OptionError)
        if (self.layers == "mix") != (self.mix_weights is not None):
            pair = ("--layers mix", "--mix-weights FILE")
            raise OptionError.needs(*(pair if self.layers == "mix" else reversed(pair)))
        if self.split_sentences:
            require_sentences(embedder.bundle)


@dataclass(frozen=True, kw_only=True)
class DumpReport:
    """The counts to report once an output is finished."""

    counts: TokenCounts
    unknown_words: Mapping[str, int]  # The most frequent words outside the vocabulary, each with its count


@dataclass(frozen=True, kw_only=True)
class DumpJob:
    """Writes the vectors of a text."""

    embedder: ElmoEmbedder
    text: InputText
    output: Path
    settings: DumpSettings
    output_format: str = "hdf5"  # A name in `elmo_zh.choices.OUTPUT_FORMATS`
    sentence_index: bool = False  # Add AllenNLP's sentence_to_index to HDF5
    hints: Hints | None = None  # shared by the jobs of several texts
    part_lines: int = WINDOW_ITEMS

    valuable = ("embed",)

    def __post_init__(self) -> None:
        """Check settings and format; raise the errors of `DumpSettings.check` and `check_format`."""
        self.settings.check(self.embedder)
        check_format(self.output_format, sentence_index=self.sentence_index)

    @property
    def inputs(self) -> list[Path]:
        """The paths of the text and of the model."""
        return [self.text.source.path, self.embedder.bundle.path]

    def may_replace(self, path: Path) -> bool:
        """Return whether a path is an empty file or holds vectors."""
        return is_output(path)

    @property
    def _tokeniser(self) -> Tokeniser:
        segmented, split = self.settings.segmented, self.settings.split_sentences
        return Tokeniser(embedder=self.embedder, segmented=segmented, split=split, part_lines=self.part_lines)

    def made_from(self) -> dict[str, Any]:
        """Return what the vectors depend on; the output format may change before an interrupted job resumes."""
        text = {name: value for name, value in self.text.described().items() if name != "name"}
        return {**text, **self._tokeniser.described(), **asdict(self.settings)}

    def make(self, path: Path, work: Work) -> DumpReport:
        """Split the text into tokens, compute their vectors, and write both; return the counts."""
        tokens = self._tokeniser.write(self.text, work)
        contents = self._describe(tokens.counts)
        unknown = BoundedCounts[bytes]()  # if there are too many to keep, the rarer half is dropped
        if tokens.counts.unknown_tokens:
            for block in tokens.blocks():
                unknown.add(compress(block.tokens, block.unknown))
        unknown_words = Counter({word.decode(): count for word, count in unknown.counts.items()})
        self._hint(tokens.counts, unknown_words, work.reporter)
        self._check_disk_space(tokens.counts, contents, work)
        vectors = self._compute(tokens, contents, work)
        with work.reporter.progress("embed", unit="lines", total=contents.num_lines) as progress:
            blocks = self._iter_blocks(tokens, vectors, progress)
            choose_writer(self.output_format)(path, contents, blocks)
        return DumpReport(counts=tokens.counts, unknown_words=dict(unknown_words.most_common(_REPORTED_WORDS)))

    def _iter_blocks(
        self, tokens: TextTokens, vectors: Sequence[FinishedPart], progress: Progress
    ) -> Iterator[LineBlock]:
        for block, part in zip(tokens.blocks(), vectors, strict=True):
            is_pooled = self.settings.pool != "none"
            yield LineBlock(**vars(block), vectors=load_npy(part.file("npy")), is_pooled=is_pooled)
            progress.update(block.num_lines)

    def _describe(self, counts: TokenCounts) -> Contents:
        settings = self.settings
        return Contents(
            attributes=self._attributes(),
            num_lines=counts.lines,
            num_tokens=counts.tokens,
            layers=settings.layers.stacked(self.embedder.num_layers),
            dimension=self.embedder.dimension,
            dtype=settings.dtype,
            is_pooled=settings.pool != "none",
            has_offsets=not settings.segmented,
            has_source_lines=settings.split_sentences,
            has_sentence_index=self.sentence_index,
        )

    def _attributes(self) -> dict[str, Any]:
        """Return the root attributes of the output; precision is left out if float32, and `unknown` if unk."""
        settings = self.settings
        segmenter = "as given"
        if not settings.segmented:
            segmenter = json.dumps(self.embedder.bundle.info["segmenter"], ensure_ascii=False)
        usual = {"precision": "float32", "unknown": "unk"}
        unusual: dict[str, Any] = {
            name: value for name, value in self.embedder.identity().items() if usual.get(name) != value
        }
        unusual |= {name: True for name in ("stateful", "split_sentences") if getattr(settings, name)}
        if settings.pool != "none":
            unusual["pool"] = settings.pool
        if settings.mix_weights is not None:
            unusual["mix_weights"] = np.array(settings.mix_weights)
        return {**unusual, "layers": str(settings.layers), "dtype": settings.dtype, "segmenter": segmenter}

    def _hint(self, counts: TokenCounts, unknown: Counter[str], reporter: Reporter) -> None:
        name, hints = self.text.name, self.hints or Hints(reporter)
        if not counts.lines:
            reporter.warn(_("{name} is empty, so its output contains no vectors.").format(name=name))
        if line := describe_unknown_rate(self.embedder.bundle, counts.tokens, counts.unknown_tokens, unknown):
            hints.give("unknown words", f"{name}: {line}")

    def _check_disk_space(self, counts: TokenCounts, contents: Contents, work: Work) -> None:
        """Raise OutputError if there is not enough disk space; else report the sizes of the text and its vectors."""
        # Vectors are written in parts and then joined.
        missing_bytes = 2 * contents.vector_bytes - folder_bytes(work.path / "embed")
        advice = "--layers average, --dtype float16, --pool mean"
        require_disk_space(self.output, max(0, missing_bytes), advice=advice)
        if self.settings.split_sentences:
            lines = counted(counts.lines, "{number} sentence", "{number} sentences")
        else:
            lines = counted(counts.lines, "{number} line", "{number} lines")
        work.reporter.note(
            _("{name} contains {lines} and {tokens}; the vectors take {vector_bytes}.").format(
                name=self.text.name,
                lines=lines,
                tokens=counted(counts.tokens, "{number} token", "{number} tokens"),
                vector_bytes=format_bytes(contents.vector_bytes),
            )
        )

    def _compute(self, tokens: TextTokens, contents: Contents, work: Work) -> list[FinishedPart]:
        """Compute the vectors of the parts that lack them; return all parts."""
        done = work.finished("embed")
        if self.settings.stateful:
            self.embedder.reset_state()
            if done:
                self.embedder.restore_state(load_arrays(done[-1].file("npz")))
        step = Step(
            name="embed",
            compute=LineVectors(self.embedder, contents, self.settings),
            unit="tokens",
            size=int,
            total=contents.num_tokens,
            in_order=self.settings.stateful,
        )
        parts = (
            [[token.decode() for token in block.tokens[span]] for _, span in block.iter_lines()]
            for block in TextTokens(tokens.parts[len(done) :], tokens.counts).blocks()
        )
        return [*done, *work.run(step, parts, after=done)]


@dataclass(frozen=True)
class LineVectors:
    """Computes the vectors of tokenised lines in the dtype and shape of an output."""

    embedder: ElmoEmbedder
    contents: Contents
    settings: DumpSettings

    def __call__(self, lines: Sequence[Sequence[str]], files: Files) -> int:
        """Write the vectors of lines, shaped as in `LineBlock`, and any carried state; return the number of tokens."""
        num_tokens = sum(map(len, lines))
        contents = replace(self.contents, num_lines=len(lines), num_tokens=num_tokens)
        vectors = np.empty(contents.shape, contents.dtype)
        spans = pairwise(accumulate(map(len, lines), initial=0))
        for index, (activations, span) in enumerate(zip(self.embedder.compute_vectors(lines), spans, strict=True)):
            vectors[..., index if contents.is_pooled else slice(*span), :] = self.settings.apply(activations)
        with files.file("npy") as path:
            save_npy(path, vectors)
        if self.settings.stateful:
            with files.file("npz") as path:
                save_arrays(path, self.embedder.state_arrays())
        return num_tokens


@dataclass(frozen=True)
class Target:
    """One text to embed, and the path of its output."""

    text: InputText
    output: Path


def is_single(arguments: Sequence[str]) -> bool:
    """Return whether the only argument is a file or standard input; --output then names its output."""
    return len(arguments) == 1 and (arguments[0] == "-" or Path(arguments[0]).is_file())


def plan_targets(
    arguments: Sequence[str], sources: Sources, output: Path | None, suffix: str, config: TextConfig, *, segmented: bool
) -> list[Target]:
    """Plan an output for each text; by default beside the text or, for standard input, in the current folder."""
    if is_single(arguments):
        [source] = sources.sources
        default = source.path.with_name(source.file_name + suffix) if source.is_local else Path(f"embeddings{suffix}")
        return [Target(input_text(source, config, segmented=segmented), output or default)]
    if output is not None and output.exists() and not output.is_dir():
        raise OutputError(
            _("{output} is a file. For several texts or a folder, --output must be a folder.").format(output=output)
        )
    targets: dict[Path, Target] = {}
    for source in sources.sources:
        target = _place(source, arguments, output)
        target = target.with_name(source.file_name + suffix)
        text = input_text(source, config, segmented=segmented)
        other = targets.setdefault(target.absolute(), Target(text, target)).text.source
        if other is not source:
            raise OutputError(
                _(
                    "The outputs for {name} and {name2} would both be written to {target}. Specify the folder"
                    " that contains both files, or embed each file separately, with its own --output."
                ).format(name=other.name, name2=source.name, target=target)
            )
    return list(targets.values())


def _place(source: Source, arguments: Sequence[str], output: Path | None) -> Path:
    """Return a source's path or, with `output`, its path there, which keeps the subfolders of a folder argument."""
    if output is None:
        return source.path
    folders = [Path(argument) for argument in arguments if Path(argument).is_dir()]
    inside = next((folder for folder in folders if folder in source.path.parents), None)
    return output / (source.path.relative_to(inside) if inside else source.path.name)
