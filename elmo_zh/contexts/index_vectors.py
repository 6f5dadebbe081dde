"""The second half of an index: the lines that hold a chosen occurrence are computed, and their vectors written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.layout import NORM, VECTOR
from elmo_zh.contexts.unfinished_index import IndexParts, RowFile
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.formats.hdf5_packed import iter_text_blocks
from elmo_zh.run.reporter import Reporter

# A part ends after so many lines or tokens: little is lost by an interruption, and memory stays bounded.
PART_LINES = 2000
PART_TOKENS = 20_000


def write_vectors(
    embedder: ElmoEmbedder, parts: IndexParts, num_texts: int, layers: Sequence[int], reporter: Reporter
) -> None:
    """Compute the kept lines that have no vectors yet, and write the vectors of their occurrences.

    Args:
        embedder: The model.
        parts: The unfinished index, complete but for vectors.
        num_texts: Number of texts.
        layers: Numbers of the layers to keep.
        reporter: Receives the progress.
    """
    if parts.remove_damaged():
        reporter.warn(f"Some vectors in {parts.path} are damaged, so they are computed again.")
    done = parts.num_finished_lines()
    rows = np.load(parts.rows, allow_pickle=False)
    occurrences = np.load(parts.layout.occurrences, mmap_mode="r", allow_pickle=False)
    files = [(RowFile(parts.layout.vectors(layer)), RowFile(parts.layout.norms(layer))) for layer in layers]
    with reporter.progress("index", unit="lines", total=len(rows), initial=done) as progress:
        for lines in _in_parts(_iter_tokens(parts, num_texts, rows[done:])):
            edges = np.searchsorted(occurrences["line"], np.arange(done, done + len(lines) + 1))
            first, last = int(edges[0]), int(edges[-1])
            vectors = _compute(embedder, lines, layers, occurrences["token"][first:last], edges - first)
            written = []
            for (vector_file, norm_file), layer_vectors in zip(files, vectors, strict=True):
                written.append(vector_file.write(first, layer_vectors))
                written.append(norm_file.write(first, _norms(layer_vectors)))
            parts.finish_part(done, len(lines), written)
            done += len(lines)
            progress.update(len(lines))


def _norms(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the norms of vectors as they are stored, float32, shape (n,)."""
    return np.asarray(np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1)), NORM)


def _compute(
    embedder: ElmoEmbedder,
    lines: Sequence[list[str]],
    layers: Sequence[int],
    places: NDArray[np.int32],
    edges: NDArray[np.int64],
) -> NDArray[np.float16]:
    """Return the vectors of chosen tokens of lines, float16, shape (layers, n, 2P).

    Args:
        embedder: The model.
        lines: The tokens of each line.
        layers: Numbers of the layers.
        places: The places of the n chosen tokens in their lines, int32, shape (n,).
        edges: Where the chosen tokens of each line begin among these, and their end, int64, shape (lines + 1,).
    """
    found = np.empty((len(layers), len(places), embedder.dimension), VECTOR)
    for activations, (start, end) in zip(embedder.compute_vectors(lines), pairwise(edges.tolist()), strict=True):
        for layer_vectors, layer in zip(found, layers, strict=True):
            layer_vectors[start:end] = activations[layer, places[start:end]]
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
        for path in parts.text(number).text_files():
            with h5py.File(path, "r") as file:
                num_rows = len(file["line_offsets"]) - 1
            start, end = np.searchsorted(rows, (first_row, first_row + num_rows)).tolist()
            if end > start:
                yield from _read_rows(path, rows[start:end] - first_row)
            first_row += num_rows


def _read_rows(path: Path, rows: NDArray[np.int64]) -> Iterator[list[str]]:
    """Yield the tokens of ascending rows of a file of tokens."""
    first_row = 0
    for block in iter_text_blocks([path]):
        own = rows[slice(*np.searchsorted(rows, (first_row, first_row + block.num_lines)))] - first_row
        for start, end in zip(block.line_offsets[own].tolist(), block.line_offsets[own + 1].tolist(), strict=True):
            yield [token.decode() for token in block.tokens[start:end]]
        first_row += block.num_lines
