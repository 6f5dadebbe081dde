"""The content of an index: count words, choose occurrences, then write their lines and their vectors."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index_files import (
    COLUMN,
    LINE,
    NORM,
    OCCURRENCE,
    POSTING,
    TOKEN,
    VECTOR,
    WORD,
    ColumnBuilder,
    IndexLayout,
)
from elmo_zh.contexts.index_settings import IndexSettings, Sampler
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats import TextBlock
from elmo_zh.embed.text_tokens import TextTokens
from elmo_zh.run.arrays import ArrayWriter, load_npy, save_npy
from elmo_zh.run.files import write_json
from elmo_zh.run.job import Files, FinishedPart, Step, Work
from elmo_zh.run.reporter import Reporter
from elmo_zh.text.alignment import find_tokens
from elmo_zh.text.windows import iter_windows

# The file in the unfinished index with the numbers of the rows to compute.
KEPT_ROWS = "rows.npy"


class WordNumbers:
    """The distinct tokens of all texts, sorted, with their numbers and counts."""

    def __init__(self, counts: Counter[bytes]) -> None:
        self.spellings = sorted(counts)  # UTF-8 sorts as its code points do
        self.numbers = {word: number for number, word in enumerate(self.spellings)}
        self.words = [word.decode() for word in self.spellings]
        self.counts = np.fromiter(map(counts.__getitem__, self.spellings), np.int64, len(counts))

    def look_up(self, tokens: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the numbers of the given tokens, int64, shape (n,)."""
        return np.fromiter(map(self.numbers.__getitem__, tokens), np.int64, len(tokens))


def count_words(tokens: Iterable[TextTokens], reporter: Reporter) -> WordNumbers:
    """Count the distinct tokens in all texts, reading them from disk block by block."""
    counts = Counter[bytes]()
    with reporter.progress("count", unit="tokens") as progress:
        for block in chain.from_iterable(each.blocks() for each in tokens):
            counts.update(block.tokens)
            progress.update(len(block.tokens))
    return WordNumbers(counts)


def write_index_text(
    layout: IndexLayout,
    tokens: Sequence[TextTokens],
    settings: IndexSettings,
    words: WordNumbers,
    reporter: Reporter,
) -> tuple[dict[str, int], NDArray[np.int64]]:
    """Choose the occurrences and write all files except the vectors; return counts and the lines with occurrences."""
    sampler = Sampler(settings, words.words, words.counts)
    columns = ColumnBuilder()
    with _TextWriter(layout) as writer, reporter.progress("choose", unit="tokens") as progress:
        for source, text in enumerate(tokens):
            for block in text.blocks():
                numbers = words.look_up(block.tokens)
                chosen = sampler.choose(numbers)
                writer.add(source, block, numbers.astype(np.int32), chosen)
                for described in block.columns or [b"{}"] * block.num_lines:
                    columns.add(json.loads(described))
                progress.update(len(block.tokens))
    occurrences = np.load(layout.occurrences, mmap_mode="r", allow_pickle=False)
    num_words = _write_words(layout, words, np.array(occurrences["word"]))
    rows = np.unique(occurrences["line"]).astype(np.int64)
    found = columns.columns()
    codes = np.zeros((writer.num_lines, len(found)), COLUMN)
    for number, column in enumerate(found.values()):
        codes[:, number] = column.codes
    save_npy(layout.columns, codes)
    write_json(layout.column_values, {name: list(column.values) for name, column in found.items()})
    counts = {"words": num_words, "kept_lines": len(rows), "occurrences": len(occurrences), "columns": len(found)}
    return counts, rows


def _write_words(layout: IndexLayout, words: WordNumbers, occurring: NDArray[np.int32]) -> int:
    """Write the words and the postings of each word's occurrences; return the number of words that have any."""
    postings = np.bincount(occurring, minlength=len(words.spellings))
    table = np.zeros(len(words.spellings), WORD)
    table["end"] = np.cumsum([len(word) for word in words.spellings], dtype=np.int64)
    table["count"] = words.counts
    table["postings_end"] = np.cumsum(postings)
    save_npy(layout.words, table)
    layout.word_text.write_bytes(b"".join(words.spellings))
    save_npy(layout.postings, np.argsort(occurring, kind="stable").astype(POSTING))
    return int(np.count_nonzero(postings))


class _TextWriter:
    def __init__(self, layout: IndexLayout) -> None:
        self._layout, self._stack = layout, ExitStack()
        self._num_bytes = 0

    def __enter__(self) -> "_TextWriter":
        self._text = self._stack.enter_context(self._layout.line_text.open("wb"))
        self._lines = self._array(self._layout.lines, LINE)
        self._tokens = self._array(self._layout.tokens, TOKEN)
        self._occurrences = self._array(self._layout.occurrences, OCCURRENCE)
        return self

    def __exit__(self, *_: object) -> None:
        for array in (self._lines, self._tokens, self._occurrences):
            array.finish()
        self._stack.close()

    @property
    def num_lines(self) -> int:
        return self._lines.num_rows

    def _array(self, path: Path, dtype: np.dtype[Any]) -> ArrayWriter:
        return ArrayWriter(self._stack.enter_context(path.open("wb")), dtype)

    def add(self, source: int, block: TextBlock, words: NDArray[np.int32], chosen: NDArray[np.bool_]) -> None:
        """Write the lines of a block, their tokens, and the chosen occurrences."""
        tokens = np.zeros(len(words), TOKEN)
        tokens["word"] = words
        spans = _spans(block)
        tokens["start"], tokens["end"] = spans[:, 0], spans[:, 1]
        places = np.flatnonzero(chosen)
        line_of_token = np.searchsorted(block.line_offsets, places, side="right") - 1
        found = np.zeros(len(places), OCCURRENCE)
        found["line"] = self._lines.num_rows + line_of_token
        found["token"] = places - block.line_offsets[line_of_token]
        for name in TOKEN.names or ():
            found[name] = tokens[name][places]
        lines = np.zeros(block.num_lines, LINE)
        lines["end"] = self._num_bytes + np.cumsum([len(text) for text in block.texts], dtype=np.int64)
        lines["source"] = source
        lines["number"] = (
            np.arange(block.num_lines) + block.first_line if block.source_lines is None else block.source_lines
        )
        lines["start"] = 0 if block.starts is None else block.starts
        lines["tokens_end"] = self._tokens.num_rows + block.line_offsets[1:]
        self._text.write(b"".join(block.texts))
        self._num_bytes += sum(map(len, block.texts))
        self._lines.append(lines)
        self._tokens.append(tokens)
        self._occurrences.append(found)


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
    """Lines of tokens, the positions of n chosen tokens in their lines, and the first chosen token of each line."""

    lines: list[list[str]]
    places: NDArray[np.int32]
    edges: NDArray[np.int64]


def compute_vectors(
    embedder: ElmoEmbedder,
    work: Work,
    layout: IndexLayout,
    tokens: Sequence[TextTokens],
    layers: Sequence[int],
    part_lines: int,
) -> list[FinishedPart]:
    """Compute the vectors of the chosen occurrences, in the selected layers, in parts of lines with an occurrence."""
    rows = load_npy(layout.path / KEPT_ROWS)
    step = Step(
        name="index", compute=_OccurrenceVectors(embedder, tuple(layers)), unit="lines", size=int, total=len(rows)
    )
    done = work.finished(step.name)
    rows_left = rows[sum(part.value() for part in done) :]
    tasks = _iter_tasks(layout, _iter_tokens(tokens, rows_left), rows_left, part_lines)
    return [*done, *work.run(step, tasks, after=done)]


def write_vectors(
    layout: IndexLayout,
    arrays: Mapping[Path, tuple[np.dtype[Any], tuple[int, ...]]],
    layers: Sequence[int],
    parts: Iterable[FinishedPart],
) -> None:
    """Join the vectors of all parts, and write their norms."""
    with ExitStack() as stack:
        vector_files, norm_files = (
            [ArrayWriter(stack.enter_context(path.open("wb")), arrays[path][0], *arrays[path][1]) for path in paths]
            for paths in (map(layout.vectors, layers), map(layout.norms, layers))
        )
        for part in parts:
            vectors = load_npy(part.file("npy"))
            for vector_file, norm_file, layer_vectors in zip(vector_files, norm_files, vectors, strict=True):
                vector_file.append(layer_vectors)
                norm_file.append(np.sqrt(np.square(layer_vectors, dtype=np.float64).sum(axis=1)).astype(NORM))


def _iter_tasks(
    layout: IndexLayout, token_lists: Iterable[list[str]], rows: NDArray[np.int64], part_lines: int
) -> Iterator[_Task]:
    """Yield the lines in parts; `rows` are their numbers."""
    occurrences = np.load(layout.occurrences, mmap_mode="r", allow_pickle=False)
    first_line = 0
    for lines in iter_windows(token_lists, len, most_items=part_lines):
        numbers = rows[first_line : first_line + len(lines)]
        edges = np.searchsorted(occurrences["line"], [*numbers, numbers[-1] + 1])
        first, last = int(edges[0]), int(edges[-1])
        yield _Task(lines, np.array(occurrences["token"][first:last]), edges - first)
        first_line += len(lines)


@dataclass(frozen=True)
class _OccurrenceVectors:
    embedder: ElmoEmbedder
    layers: tuple[int, ...]

    def __call__(self, task: _Task, files: Files) -> int:
        """Write the vectors of the selected tokens, float16, shape (layers, n, 2P); return the number of lines."""
        found = np.empty((len(self.layers), len(task.places), self.embedder.dimension), VECTOR)
        vectors = self.embedder.compute_vectors(task.lines)
        for activations, (start, end) in zip(vectors, pairwise(task.edges.tolist()), strict=True):
            for layer_vectors, layer in zip(found, self.layers, strict=True):
                layer_vectors[start:end] = activations[layer, task.places[start:end]]
        with files.file("npy") as path:
            save_npy(path, found)
        return len(task.lines)


def _iter_tokens(tokens: Iterable[TextTokens], rows: NDArray[np.int64]) -> Iterator[list[str]]:
    """Yield the tokens of each row; `rows` are in ascending order and counted across all texts."""
    first_row = 0
    for each in tokens:
        for block in each.blocks():
            start, end = np.searchsorted(rows, (first_row, first_row + block.num_lines)).tolist()
            for row in (rows[start:end] - first_row).tolist():
                own = slice(*block.line_offsets[row : row + 2].tolist())
                yield [token.decode() for token in block.tokens[own]]
            first_row += block.num_lines
