"""The second half of an index: the lines that hold a chosen occurrence are computed, and their vectors written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.layout import NORM, VECTOR
from elmo_zh.contexts.unfinished_index import IndexParts
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.engine.engine import Engine
from elmo_zh.engine.loaded_once import LoadedOnce
from elmo_zh.run.arrays import ArrayWork, RowFile, load_npy
from elmo_zh.run.in_order import PartTask, compute_in_order
from elmo_zh.run.reporter import Reporter
from elmo_zh.run.resumable import computed_part

# A part ends after so many lines or tokens: little is lost by an interruption, and memory stays bounded.
PART_LINES = 2000
PART_TOKENS = 20_000


class _Task(NamedTuple):
    """Lines of tokens, the places of n chosen ones in their lines, and where those of each line begin among these."""

    lines: list[list[str]]
    places: NDArray[np.int32]
    edges: NDArray[np.int64]


class _Part(NamedTuple):
    """The kept lines of a part, and its first occurrence."""

    first_line: int
    num_lines: int
    first_occurrence: int


def write_vectors(
    embedder: ElmoEmbedder,
    parts: IndexParts,
    num_texts: int,
    layers: Sequence[int],
    engine: Engine,
    reporter: Reporter,
) -> None:
    """Compute the kept lines that have no vectors yet, and write the vectors of their occurrences.

    Args:
        embedder: The model.
        parts: The unfinished index, complete but for vectors.
        num_texts: Number of texts.
        layers: Numbers of the layers to keep.
        engine: Runs the computation.
        reporter: Receives the progress.
    """
    if parts.remove_damaged():
        reporter.warn(f"Some vectors in {parts.path} are damaged, so they are computed again.")
    done = parts.num_finished_lines()
    rows = load_npy(parts.rows)
    files = [(RowFile(parts.layout.vectors(layer)), RowFile(parts.layout.norms(layer))) for layer in layers]
    with reporter.progress("index", unit="lines", total=len(rows), initial=done) as progress:
        lines = _in_parts(_iter_tokens(parts, num_texts, rows[done:]))
        work = _OccurrenceVectors(embedder, layers)
        for part, vectors in compute_in_order(engine, work, _iter_tasks(parts, lines, done), parts.path):
            written = []
            for (vector_file, norm_file), layer_vectors in zip(files, vectors, strict=True):
                written.append(vector_file.write(part.first_occurrence, layer_vectors))
                written.append(norm_file.write(part.first_occurrence, _norms(layer_vectors)))
            parts.finish_part(part.first_line, part.num_lines, written)
            progress.update(part.num_lines)


def _iter_tasks(
    parts: IndexParts, parts_of_lines: Iterable[list[list[str]]], first_line: int
) -> Iterator[PartTask[_Task, _Part]]:
    """Yield the parts of lines from a kept line on, with their chosen occurrences."""
    occurrences = np.load(parts.layout.occurrences, mmap_mode="r", allow_pickle=False)
    for lines in parts_of_lines:
        edges = np.searchsorted(occurrences["line"], np.arange(first_line, first_line + len(lines) + 1))
        first, last = int(edges[0]), int(edges[-1])
        yield PartTask(
            name=computed_part(first_line, len(lines)),
            task=_Task(lines, np.array(occurrences["token"][first:last]), edges - first),
            kept=_Part(first_line, len(lines), first),
        )
        first_line += len(lines)


def _norms(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the norms of vectors as they are stored, float32, shape (n,)."""
    return np.asarray(np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1)), NORM)


class _OccurrenceVectors(ArrayWork):
    """Computes the vectors of chosen tokens of lines, in some layers."""

    def __init__(self, embedder: ElmoEmbedder, layers: Sequence[int]) -> None:
        self._embedder, self._layers = LoadedOnce(embedder), layers

    def compute(self, task: _Task) -> NDArray[np.float16]:
        """Return the vectors of the chosen tokens, float16, shape (layers, n, 2P)."""
        with self._embedder.used() as (embedder,):
            found = np.empty((len(self._layers), len(task.places), embedder.dimension), VECTOR)
            vectors = embedder.compute_vectors(task.lines)
            for activations, (start, end) in zip(vectors, pairwise(task.edges.tolist()), strict=True):
                for layer_vectors, layer in zip(found, self._layers, strict=True):
                    layer_vectors[start:end] = activations[layer, task.places[start:end]]
        return found


def _in_parts(lines: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Yield lines of tokens, as many at a time as make a part."""
    part: list[list[str]] = []
    num_tokens = 0
    for tokens in lines:
        part.append(tokens)
        num_tokens += len(tokens)
        if len(part) >= PART_LINES or num_tokens >= PART_TOKENS:
            yield part
            part, num_tokens = [], 0
    if part:
        yield part


def _iter_tokens(parts: IndexParts, num_texts: int, rows: NDArray[np.int64]) -> Iterator[list[str]]:
    """Yield the tokens of rows, whose numbers, counted through all texts, ascend."""
    first_row = 0
    for number in range(num_texts):
        for block in parts.text(number).blocks():
            start, end = np.searchsorted(rows, (first_row, first_row + block.num_lines)).tolist()
            for row in (rows[start:end] - first_row).tolist():
                own = slice(*block.line_offsets[row : row + 2].tolist())
                yield [token.decode() for token in block.tokens[own]]
            first_row += block.num_lines
