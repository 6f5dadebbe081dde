"""Build an index of occurrences: vectors of words in their sentences, stored on disk for similarity search.

The tokens of all texts are written first, in the form that `embed` uses. Then the occurrences are chosen
(`index_text`), the model reads the lines that contain one, and the vectors are joined. `contexts.index_files` lists the
files.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_arguments, check_strings
from elmo_zh.config import TextConfig
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts import index_files as layout
from elmo_zh.contexts.index_files import Kind
from elmo_zh.contexts.index_text import (
    IndexSettings,
    WordNumbers,
    describe_missing_words,
    form_words,
    indexed_layers,
    word_former,
    write_index_text,
)
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.input_texts import InputText, input_text, opened_inputs
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.text_tokens import TextTokens, TokenCounts, Tokeniser, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.arrays import ArrayWriter, load_npy, save_npy
from elmo_zh.run.files import file_digest, folder_bytes, link_or_copy, require_disk_space, write_json
from elmo_zh.run.job import Files, FinishedPart, Step, Work, run_job
from elmo_zh.run.outputs import write_mark, written_as
from elmo_zh.run.reporter import Hints, Reporter, SilentReporter, counted, first_ten
from elmo_zh.text.sentences import LONGEST_SENTENCE, WINDOW_ITEMS, describe_cuts, iter_windows

# Bytes of an occurrence besides its vectors: itself, its posting, and its share of a line.
_OTHER_BYTES = 100
# The folder with the files that the step `choose` writes.
_FILES = "files"


class _ReadText(NamedTuple):
    text: InputText
    digest: str
    tokens: TextTokens

    def described(self) -> dict[str, Any]:
        """Return the entry of the text in index.json."""
        members = {"members": msgspec.to_builtins(self.text.members)} if self.text.members else {}
        lines = self.tokens.counts.lines
        return {"name": self.text.name, "digest": self.digest, "lines": lines, **self.text.reading, **members}


@dataclass(frozen=True, kw_only=True)
class IndexReport:
    """The folder, counts and size of a finished index, and any requested words that do not occur as tokens."""

    path: Path
    counts: dict[str, int]
    num_bytes: int
    missing_words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class IndexJob:
    """Writes an index of the words in texts.

    Memory grows with the number of lines, columns, distinct words and chosen occurrences.
    """

    embedder: ElmoEmbedder
    texts: Sequence[InputText]
    output: Path
    settings: IndexSettings
    part_lines: int = WINDOW_ITEMS

    def __post_init__(self) -> None:
        """Raise ElmoZhError if the embedder is stateful, or if `split_sentences` does not suit the model."""
        if self.embedder.is_stateful:
            raise ElmoZhError(
                _(
                    "The vectors in an index must not depend on previous sentences. Use an embedder that is"
                    " not stateful."
                )
            )
        if self.settings.options.split_sentences:
            require_sentences(self.embedder.bundle)

    @property
    def valuable(self) -> Sequence[str]:
        """The step that computes vectors; none if a command makes the index for its own use."""
        return () if self.settings.made_by else ("index",)

    @property
    def inputs(self) -> list[Path]:
        """The texts and the model."""
        return [*(text.source.path for text in self.texts), self.embedder.bundle.path]

    def may_replace(self, path: Path) -> bool:
        """Return whether a path is an index; raise OutputError if an index contains other files."""
        return written_as("index")(path)

    @cached_property
    def _described_texts(self) -> list[dict[str, Any]]:
        return [text.described() for text in self.texts]

    @property
    def _tokeniser(self) -> Tokeniser:
        return Tokeniser(
            embedder=self.embedder,
            segmented=self.settings.segmented,
            split=self.settings.options.split_sentences,
            longest=LONGEST_SENTENCE,
            part_lines=self.part_lines,
        )

    def made_from(self) -> dict[str, Any]:
        """Return everything that the index depends on."""
        about = {"settings": self.settings.described(), "texts": self._described_texts}
        return {"format": layout.INDEX_FORMAT, **self._tokeniser.described(), **about}

    def make(self, path: Path, work: Work) -> IndexReport:
        """Write the tokens, choose the occurrences, compute their vectors, and write the index; return a report."""
        read = self._write_all_tokens(work)
        choose: Step[list[_ReadText]] = Step(
            name="choose", compute=lambda read, files: self._choose(read, files, work.reporter), in_order=True
        )
        [chosen] = work.run(choose, [read])
        info = chosen.value()
        self._make_room(info["counts"], work)
        parts = compute_vectors(self.embedder, work, chosen.file(_FILES), self.settings.layers, self.part_lines)
        path.mkdir()
        for file in chosen.file(_FILES).iterdir():
            link_or_copy(file, path / file.name)
        kinds = layout.index_files(info["counts"], self.settings.layers, self.embedder.dimension)
        write_vectors(path, kinds, parts)
        files = [path / name for name in (*kinds, layout.USER_DICTIONARY) if name in kinds or (path / name).exists()]
        sizes = {file.name: file.stat().st_size for file in files}
        write_json(
            path / layout.INFO, {**info, "bytes": sizes, "digests": {file.name: file_digest(file) for file in files}}
        )
        texts = {text["name"]: text["digest"] for text in info["texts"]}
        write_mark(path, "index", layout.INDEX_FORMAT, {"model": info["model"]["model_digest"], "texts": texts})
        return IndexReport(
            path=self.output,
            counts=info["counts"],
            num_bytes=sum(sizes.values()) + (path / layout.INFO).stat().st_size,
            missing_words=tuple(info["missing_words"]),
        )

    def _write_all_tokens(self, work: Work) -> list[_ReadText]:
        """Write the tokens of the texts, and return the texts read; skip non-text files found in folders."""
        read, hints = [], Hints(work.reporter)
        for number, (text, about) in enumerate(zip(self.texts, self._described_texts, strict=True)):
            own_work = work.within(f"text-{number:05d}")
            try:
                tokens = self._tokeniser.write(text, own_work)
            except UnsuitableError as error:
                own_work.remove()
                text.skip(error, work.reporter)
                continue
            if tokens.counts.cut_lines:
                hints.give("cut lines", describe_cuts(text.name, tokens.counts.cut_lines))
            read.append(_ReadText(text, about["digest"], tokens))
        if not read:
            raise CorpusError.no_text(first_ten([text.name for text in self.texts]))
        return read

    def _choose(self, read: list[_ReadText], files: Files, reporter: Reporter) -> dict[str, Any]:
        """Choose the occurrences, and write all data files except the vectors and their norms.

        Return the content of index.json, except the sizes and digests of files.
        """
        tokens = [text.tokens for text in read]
        words = WordNumbers(tokens, reporter)
        counts = TokenCounts()
        for text_tokens in tokens:
            counts.add(text_tokens.counts)
        if line := describe_unknown_rate(
            self.embedder.bundle, counts.tokens, counts.unknown_tokens, self._unknown_words(words)
        ):
            reporter.warn(line)
        with files.folder(_FILES) as folder:
            written = write_index_text(folder, tokens, self.settings, words, reporter)
            self._require_words(written, words)
            written = {**counts.reported(), **written, "distinct_words": len(words.numbers)}
            if not counts.backed_off_tokens:
                written.pop("backed_off_tokens", None)
            if dictionary := self.embedder.user_dictionary:
                copyfile(dictionary, folder / layout.USER_DICTIONARY)
        missing = sorted(word for word in self.settings.words or () if word.encode() not in words.numbers)
        return {
            "format": layout.INDEX_FORMAT,
            "model": {"path": str(self.embedder.bundle.path), **self.embedder.identity()},
            "dimension": self.embedder.dimension,
            "settings": self.settings.described(),
            "texts": [text.described() for text in read],
            "counts": written,
            "missing_words": missing,
        }

    def _unknown_words(self, words: WordNumbers) -> dict[str, int]:
        spelled = words.words
        unknown = np.flatnonzero(self.embedder.find_unknown(spelled)).tolist()
        return {spelled[number]: int(words.counts[number]) for number in unknown}

    def _require_words(self, counts: dict[str, int], words: WordNumbers) -> None:
        """Raise CorpusError if there is no occurrence to index."""
        if counts["occurrences"]:
            return
        raise CorpusError(
            _(
                "{names}: no word to index among {numbers}. Lower --min-count, use more text, or write the words in"
                " --words FILE as the segmenter splits them."
            ).format(
                names=first_ten([text.name for text in self.texts]),
                numbers=counted(int(words.counts.sum()), "{number} token", "{number} tokens"),
            )
        )

    def _make_room(self, counts: dict[str, int], work: Work) -> None:
        """Raise OutputError if there is too little disk space."""
        vector_bytes = self.embedder.dimension * layout.VECTOR.itemsize * len(self.settings.layers)
        # The vectors are written in parts and then joined.
        needed = counts["occurrences"] * (2 * vector_bytes + _OTHER_BYTES) - folder_bytes(work.path / "index")
        advice = "--layers top, --max-per-word 100, --min-count 10"
        require_disk_space(self.output, max(0, needed), advice=advice)


class _Task(NamedTuple):
    """Lines of tokens, and the positions of the chosen tokens: for line i, places[edges[i]:edges[i + 1]]."""

    lines: list[list[str]]
    places: NDArray[np.int32]
    edges: NDArray[np.int64]


def compute_vectors(
    embedder: ElmoEmbedder, work: Work, folder: Path, layers: Sequence[int], part_lines: int
) -> list[FinishedPart]:
    """Compute the vectors of the chosen occurrences, and return them as parts of up to `part_lines` lines."""
    occurrences = np.load(folder / "occurrences.npy", mmap_mode="r", allow_pickle=False)
    rows = np.unique(occurrences["line"])
    step = Step(
        name="index", compute=_OccurrenceVectors(embedder, tuple(layers)), unit="lines", size=int, total=len(rows)
    )
    done = work.finished(step.name)
    rows_left = rows[sum(part.value() for part in done) :]
    return [*done, *work.run(step, _iter_tasks(folder, rows_left, part_lines), after=done)]


def write_vectors(path: Path, kinds: Mapping[str, Kind | None], parts: Iterable[FinishedPart]) -> None:
    """Join the vectors of all parts, and write their norms."""
    with ExitStack() as stack:
        vector_files, norm_files = (
            [
                ArrayWriter(stack.enter_context((path / name).open("wb")), kind[0], *kind[1])
                for name, kind in kinds.items()
                if kind and name.startswith(start)
            ]
            for start in ("layer-", "norms-")
        )
        for part in parts:
            vectors = load_npy(part.file("npy"))
            for vector_file, norm_file, layer_vectors in zip(vector_files, norm_files, vectors, strict=True):
                vector_file.append(layer_vectors)
                norm_file.append(np.sqrt(np.square(layer_vectors, dtype=np.float64).sum(axis=1)).astype(layout.NORM))


def _iter_tasks(folder: Path, rows: NDArray[np.int64], part_lines: int) -> Iterator[_Task]:
    """Yield the tokens of the lines numbered `rows`, in parts, with the positions of the chosen tokens."""
    words, lines, tokens, occurrences = (
        np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        for name in ("words", "lines", "tokens", "occurrences")
    )
    spelled = (folder / "words.utf8").read_bytes()
    spellings = [spelled[start:end].decode() for start, end in pairwise([0, *words["end"].tolist()])]
    ends = np.concatenate([lines["tokens_end"], [0]])  # the line before the first one ends at 0
    token_lists = (
        [spellings[word] for word in tokens["word"][ends[row - 1] : ends[row]].tolist()] for row in rows.tolist()
    )
    first_line = 0
    for window in iter_windows(token_lists, len, most_items=part_lines):
        numbers = rows[first_line : first_line + len(window)]
        edges = np.searchsorted(occurrences["line"], [*numbers, numbers[-1] + 1])
        first, last = int(edges[0]), int(edges[-1])
        yield _Task(window, np.array(occurrences["token"][first:last]), edges - first)
        first_line += len(window)


@dataclass(frozen=True)
class _OccurrenceVectors:
    embedder: ElmoEmbedder
    layers: tuple[int, ...]

    def __call__(self, task: _Task, files: Files) -> int:
        """Write the vectors of the selected tokens, float16, shape (layers, n, 2P); return the number of lines."""
        selected = np.empty((len(self.layers), len(task.places), self.embedder.dimension), layout.VECTOR)
        vectors = self.embedder.compute_vectors(task.lines)
        for activations, (start, end) in zip(vectors, pairwise(task.edges.tolist()), strict=True):
            for layer_vectors, layer in zip(selected, self.layers, strict=True):
                layer_vectors[start:end] = activations[layer, task.places[start:end]]
        with files.file("npy") as path:
            save_npy(path, selected)
        return len(task.lines)


def build_index(
    embedder: ElmoEmbedder,
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    output: object,
    options: IndexOptions,
    layers: object,
    words: object,
    *,
    segmented: bool,
    force: bool,
    reporter: Reporter | None,
) -> None:
    """Write an index as `elmo-zh index` does; `ContextIndex.build` describes the arguments and the errors."""
    if segmented and options.split_sentences:
        raise ValueError("build: segmented text has one sentence per line already; leave out split_sentences")
    check_arguments("build", IndexOptions, **vars(options))
    wanted = None
    if words is not None:
        wanted = form_words(check_strings(words, "build", "words"), word_former(embedder, segmented=segmented))
    numbers = indexed_layers(layers, embedder.num_layers, "build")
    settings = IndexSettings(layers=numbers, words=wanted, segmented=segmented, options=options)
    reporter = reporter or SilentReporter(partial(warnings.warn, stacklevel=2))
    names = [str(paths)] if isinstance(paths, str | PathLike) else [*map(str, paths)]
    with opened_inputs(names, reporter) as sources:
        texts = [
            input_text(source, TextConfig(), segmented=segmented, from_name=options.from_name)
            for source in sources.sources
        ]
        job = IndexJob(embedder=embedder, texts=texts, output=Path(str(output)), settings=settings)
        report = run_job(job, force=force, reporter=reporter)
    if report.missing_words:
        reporter.warn(describe_missing_words(report.missing_words, "words"))
