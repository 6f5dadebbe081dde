"""Build an index of occurrences: vectors of words in their sentences, stored on disk for similarity search.

The tokens of all texts are written first, as `embed` keeps them; then the occurrences are chosen, which fixes their
number; then the model reads the lines that contain one; and at the end the vectors are joined. `contexts.index_files`
lists the files.
"""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain, pairwise
from os import PathLike
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elmo_zh.checks import check_arguments, check_layers, check_strings
from elmo_zh.config import TextConfig
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts import index_files as layout
from elmo_zh.contexts.index_files import ColumnBuilder, Kind
from elmo_zh.corpus.content import UnsuitableError
from elmo_zh.corpus.input_texts import InputText, input_text, opened_inputs
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.text_tokens import TextBlock, TextTokens, TokenCounts, Tokeniser, require_sentences
from elmo_zh.embed.unknown_rate import describe_unknown_rate
from elmo_zh.errors import CorpusError, ElmoZhError
from elmo_zh.language import _
from elmo_zh.run.arrays import ArrayWriter, load_npy, save_npy
from elmo_zh.run.files import file_digest, folder_bytes, link_or_copy, require_disk_space, write_json
from elmo_zh.run.job import Files, FinishedPart, Step, Work, run_job
from elmo_zh.run.outputs import write_mark, written_as
from elmo_zh.run.reporter import Hints, Reporter, SilentReporter, counted, first_ten
from elmo_zh.text.preparation import find_tokens
from elmo_zh.text.sentences import LONGEST_SENTENCE, WINDOW_ITEMS, describe_cuts, iter_windows
from elmo_zh.vocabulary.vocabulary import is_word

# Bytes of an occurrence besides its vectors: itself, its posting, and its share of a line.
_OTHER_BYTES = 100
# The folder with the files that the step `choose` writes.
_FILES = "files"
_HASHED_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """The settings that, together with the texts and the model, determine the content of an index."""

    layers: tuple[int, ...]  # ascending
    words: frozenset[str] | None = None  # None for all that reach min_count, except punctuation
    segmented: bool = False
    options: IndexOptions = field(default_factory=IndexOptions)
    made_by: str = ""  # the command that made the index for its own use; "" for `index`

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values, with the number and digest of the words instead of a list."""
        words: Any = None
        if self.words is not None:
            digest = sha256("\n".join(sorted(self.words)).encode()).hexdigest()
            words = {"count": len(self.words), "digest": f"sha256:{digest}"}
        shared = {name: getattr(self.options, name) for name in ("split_sentences", "min_count", "max_per_word")}
        settings = {"layers": list(self.layers), "segmented": self.segmented, **shared, "words": words}
        return {**settings, "seed": self.options.seed, **({"made_by": self.made_by} if self.made_by else {})}

    def wants(self, word: str, count: int) -> bool:
        """Return whether a word with this many occurrences goes into the index."""
        if self.words is not None:
            return word in self.words
        # Without punctuation and symbols: nobody looks for the neighbours of a comma, and nearly every line has one.
        return count >= self.options.min_count and is_word(word)


def indexed_layers(
    layers: object, num_layers: int, call: str, name: str = "layers", kind: type[Exception] = ValueError
) -> tuple[int, ...]:
    """Return layer numbers, ascending; an index keeps whole layers, so their mean and their mix are refused."""
    checked = check_layers(layers, num_layers, call, name, among=("all", "top"), kind=kind)
    return tuple(sorted(checked.numbers(num_layers)))


def load_word_list(path: Path, normalise: Callable[[str], str] = str) -> frozenset[str]:
    """Read and normalise a file with one word per line; raise CorpusError if it has no words."""
    words = form_words(iter_lines(path), normalise)
    if not words:
        raise CorpusError(_("{path} contains no words. Give a file with one word per line.").format(path=path))
    return words


def form_words(words: Iterable[str], normalise: Callable[[str], str]) -> frozenset[str]:
    """Strip white space around words, normalise them, and drop empty ones."""
    return frozenset(normalise(word.strip()) for word in words) - {""}


def word_former(embedder: "ElmoEmbedder", *, segmented: bool) -> Callable[[str], str]:
    """Return the function that maps a word to its form in prepared text; for segmented text, it changes nothing."""
    return str if segmented else (lambda word: "".join(embedder.tokens(word)))


def describe_missing_words(words: Sequence[str], argument: str) -> str:
    """Return a warning that counts the words given by `argument` that do not occur, and lists the first ten."""
    return _("The tokens of the text do not include {words} from {argument}: {words2}").format(
        words=counted(len(words), "{number} word", "{number} words"), argument=argument, words2=first_ten(words)
    )


class Sampler:
    """Chooses the occurrences to index, block by block: all, or a sample for frequent words (`sample_places`)."""

    def __init__(self, settings: IndexSettings, words: Sequence[str], counts: NDArray[np.int64]) -> None:
        """Draw samples for W distinct words; `counts` has the number of occurrences of each word, int64, shape (W,)."""
        pairs = zip(words, counts.tolist(), strict=True)
        is_wanted = np.array([settings.wants(word, count) for word, count in pairs], np.bool_)
        seed, most = settings.options.seed, settings.options.max_per_word or np.inf
        self._is_whole = is_wanted & (counts <= most)
        self._seen = np.zeros(len(words), np.int64)
        sampled = [
            self._keys(sample_places(words[number], seed, int(counts[number]), int(most)), number)
            for number in np.flatnonzero(is_wanted & (counts > most)).tolist()
        ]
        self._sampled = np.sort(np.concatenate([*sampled, [np.iinfo(np.int64).max]]))

    def choose(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the chosen tokens among the next ones, given as word numbers; bool, shape (n,)."""
        keys = self._keys(self._seen[numbers] + _earlier_equals(numbers), numbers)
        self._seen += np.bincount(numbers, minlength=len(self._seen))
        is_sampled = self._sampled[np.searchsorted(self._sampled, keys)] == keys
        return np.asarray(self._is_whole[numbers] | is_sampled)

    def _keys(self, running: NDArray[np.int64], numbers: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """Combine the running number of an occurrence of a word with the word's number."""
        return running * len(self._seen) + numbers


def sample_places(word: str, seed: int, count: int, size: int) -> NDArray[np.int64]:
    """Sample a word's occurrences; return their running numbers in random order. Adding text changes few of them.

    The sample has the occurrences with the smallest hashes of seed, word and running number.
    """
    generator = np.random.PCG64([seed, *word.encode()])
    places, hashes = np.empty(0, np.int64), np.empty(0, np.uint64)
    for start in range(0, count, _HASHED_AT_ONCE):
        block = np.arange(start, min(start + _HASHED_AT_ONCE, count))
        places, hashes = np.append(places, block), np.append(hashes, generator.random_raw(len(block)))
        kept = np.argsort(hashes, kind="stable")[:size]
        places, hashes = places[kept], hashes[kept]
    return places


def _earlier_equals(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each number, how many equal numbers come before it, int64, shape (n,)."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    earlier = np.empty(len(numbers), np.int64)
    earlier[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return earlier


class WordNumbers:
    """The distinct tokens of all texts, sorted, with their numbers and counts; texts are read block by block."""

    def __init__(self, tokens: Iterable[TextTokens], reporter: Reporter) -> None:
        counts = Counter[bytes]()
        with reporter.progress("count", unit="tokens") as progress:
            for block in chain.from_iterable(text.blocks() for text in tokens):
                counts.update(block.tokens)
                progress.update(len(block.tokens))
        self.spellings = sorted(counts)  # UTF-8 sorts as its code points do
        self.numbers = {word: number for number, word in enumerate(self.spellings)}
        self.words = [word.decode() for word in self.spellings]
        self.counts = np.fromiter(map(counts.__getitem__, self.spellings), np.int64, len(counts))

    def look_up(self, tokens: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the numbers of the given tokens, int64, shape (n,)."""
        return np.fromiter(map(self.numbers.__getitem__, tokens), np.int64, len(tokens))


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

    Memory grows with the number of distinct words, and by about 20 bytes for each chosen occurrence.
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
        """The vectors, unless a command makes the index for itself."""
        return () if self.settings.made_by else ("index",)

    @property
    def inputs(self) -> list[Path]:
        """The texts and the model."""
        return [*(text.source.path for text in self.texts), self.embedder.bundle.path]

    def may_replace(self, path: Path) -> bool:
        """Return whether a path is an index without other files."""
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
        """Write the tokens of the texts, choose the occurrences, compute their vectors, and write the index."""
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
        """Write the tokens of the texts; skip non-text files found in folders."""
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
        """Choose the occurrences and write everything except the vectors; return the content of index.json."""
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
                "{names}: no word to index among {numbers}. Lower --min-count, give more text, or write the words of"
                " --words as the segmenter splits them."
            ).format(
                names=", ".join(text.name for text in self.texts[:3]),
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


def write_index_text(
    folder: Path, tokens: Sequence[TextTokens], settings: IndexSettings, words: WordNumbers, reporter: Reporter
) -> dict[str, int]:
    """Choose the occurrences and write all files except the vectors; return counts."""
    sampler, builder, num_bytes = Sampler(settings, words.words, words.counts), ColumnBuilder(), 0
    with ExitStack() as stack, reporter.progress("choose", unit="tokens") as progress:
        line_text = stack.enter_context((folder / "lines.utf8").open("wb"))
        writers = [
            ArrayWriter(stack.enter_context((folder / name).open("wb")), dtype)
            for name, dtype in (
                ("lines.npy", layout.LINE),
                ("tokens.npy", layout.TOKEN),
                ("occurrences.npy", layout.OCCURRENCE),
            )
        ]
        for source, text in enumerate(tokens):
            for block in text.blocks():
                numbers = words.look_up(block.tokens)
                arrays = _arrays_of(block, numbers, sampler.choose(numbers))
                lines, _tokens, occurrences = arrays
                occurrences["line"] += writers[0].num_rows
                lines["source"] = source
                lines["end"] += num_bytes
                lines["tokens_end"] += writers[1].num_rows
                for writer, array in zip(writers, arrays, strict=True):
                    writer.append(array)
                num_bytes += line_text.write(b"".join(block.texts))
                for described in block.columns or [b"{}"] * block.num_lines:
                    builder.add(json.loads(described))
                progress.update(len(block.tokens))
        for writer in writers:
            writer.finish()
    occurrences = np.load(folder / "occurrences.npy", mmap_mode="r", allow_pickle=False)
    num_words = _write_words(folder, words, np.array(occurrences["word"]))
    columns = builder.columns()
    codes = np.zeros((writers[0].num_rows, len(columns)), layout.COLUMN)
    for number, column in enumerate(columns.values()):
        codes[:, number] = column.codes
    save_npy(folder / "columns.npy", codes)
    write_json(folder / "columns.json", {name: list(column.values) for name, column in columns.items()})
    kept_lines = len(np.unique(occurrences["line"]))
    return {"words": num_words, "kept_lines": kept_lines, "occurrences": len(occurrences), "columns": len(columns)}


def _write_words(folder: Path, words: WordNumbers, occurring: NDArray[np.int32]) -> int:
    """Write the words and the postings of each word's occurrences; return the number of words that have any."""
    postings = np.bincount(occurring, minlength=len(words.spellings))
    table = np.zeros(len(words.spellings), layout.WORD)
    table["end"] = np.cumsum([len(word) for word in words.spellings], dtype=np.int64)
    table["count"] = words.counts
    table["postings_end"] = np.cumsum(postings)
    save_npy(folder / "words.npy", table)
    (folder / "words.utf8").write_bytes(b"".join(words.spellings))
    save_npy(folder / "postings.npy", np.argsort(occurring, kind="stable").astype(layout.POSTING))
    return int(np.count_nonzero(postings))


def _arrays_of(
    block: TextBlock, numbers: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void]]:
    """Return the lines of a block, their tokens, and the chosen occurrences, counted from the start of the block."""
    tokens = np.zeros(len(numbers), layout.TOKEN)
    tokens["word"], spans = numbers, _spans(block)
    tokens["start"], tokens["end"] = spans[:, 0], spans[:, 1]
    places = np.flatnonzero(chosen)
    occurrences = np.zeros(len(places), layout.OCCURRENCE)
    occurrences["line"] = np.searchsorted(block.line_offsets, places, side="right") - 1
    occurrences["token"] = places - block.line_offsets[occurrences["line"]]
    for name in layout.TOKEN.names or ():
        occurrences[name] = tokens[name][places]
    lines = np.zeros(block.num_lines, layout.LINE)
    lines["end"] = np.cumsum([len(text) for text in block.texts], dtype=np.int64)
    lines["number"] = (
        np.arange(block.num_lines) + block.first_line if block.source_lines is None else block.source_lines
    )
    lines["start"] = 0 if block.starts is None else block.starts
    lines["tokens_end"] = block.line_offsets[1:]
    return lines, tokens, occurrences


def _spans(block: TextBlock) -> NDArray[np.int32]:
    """Return the start and end of each token within its line, int32, shape (N, 2)."""
    if block.character_offsets is None:
        lines = zip(block.iter_lines(), block.texts, strict=True)
        spans = (find_tokens(text.decode(), [each.decode() for each in block.tokens[own]]) for (_, own), text in lines)
        return np.concatenate([np.empty((0, 2), np.int32), *spans])
    if block.starts is None:
        return block.character_offsets
    return np.asarray(block.character_offsets - block.starts.repeat(np.diff(block.line_offsets))[:, None])


class _Task(NamedTuple):
    """Lines of tokens, the places of their n chosen tokens, and the index of each line's first one of these, then n."""

    lines: list[list[str]]
    places: NDArray[np.int32]
    edges: NDArray[np.int64]


def compute_vectors(
    embedder: ElmoEmbedder, work: Work, folder: Path, layers: Sequence[int], part_lines: int
) -> list[FinishedPart]:
    """Compute the chosen occurrences' vectors in the selected layers, in parts of up to `part_lines` lines."""
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
    """Yield the tokens of lines, given by number, and the chosen tokens among them, in parts."""
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
