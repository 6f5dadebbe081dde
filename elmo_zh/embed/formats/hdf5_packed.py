"""HDF5 with the vectors of all lines in one dataset, and a table of where each line begins.

`vectors` (N, 2P), or (L + 1, N, 2P) for all layers; `line_offsets` int64 (lines + 1): line i has the rows from
line_offsets[i] to line_offsets[i + 1]; `tokens` (N,) and `unknown` (N,); `character_offsets` int32 (N, 2) of raw text;
`line` int64 (lines,) if lines were split: the line of the text that each sentence comes from;
`text` (lines,): the raw line, or sentence, in which HDF5 needs U+FFFD in place of a NUL character.
With pooling the table holds for the tokens only, and `vectors` has one row for each line.
The parts of an unfinished dump are such files too.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.formats import OutputForm
from elmo_zh.embed.line_blocks import Contents, LineBlock, TextBlock
from elmo_zh.hdf5.create import create_hdf5
from elmo_zh.run.sealed import Region

SUFFIX = ".hdf5"

# HDF5 stores a string of variable length with this much around it, and an entry in the dataset.
_TOKEN_BYTES = 50
_TEXT_BYTES = 32
# Measured size of a token in the raw text.
_TOKEN_TEXT_BYTES = 6
_CHUNK_BYTES = 2**18
# Most lines and tokens read at a time.
BLOCK_LINES = 2000
BLOCK_TOKENS = 20_000

Block = TypeVar("Block", bound=TextBlock)


def check() -> None:
    """Do nothing: no further package is needed."""


def estimate_bytes(contents: Contents) -> int:
    """Return the approximate size of the file without compression."""
    return (
        contents.vector_bytes
        + contents.num_tokens * _TOKEN_BYTES
        + contents.num_lines * (16 if contents.has_source_lines else 8)
        + (contents.num_lines * _TEXT_BYTES + contents.num_tokens * _TOKEN_TEXT_BYTES) * contents.has_text
    )


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file."""
    with create_hdf5(path) as file:
        file.create_dataset("vectors", contents.shape, contents.dtype, **_storage(contents, form.compression))
        _create_text(file, contents)
        row = 0
        for block in _write_text(file, blocks):
            if num_rows := block.vectors.shape[-2]:
                file["vectors"][..., row : row + num_rows, :] = block.vectors
            row += num_rows
    return {}


def write_text(path: Path, contents: Contents, blocks: Iterable[TextBlock], *, with_vectors: bool) -> None:
    """Write everything but the values of the vectors.

    Args:
        path: The new file.
        contents: Description of the lines.
        blocks: The lines.
        with_vectors: Create the dataset of the vectors too, for `VectorFile` to fill: it takes up no disk space before.
    """
    with create_hdf5(path) as file:
        if with_vectors:
            allocated = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            allocated.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            file.create_dataset("vectors", contents.shape, contents.dtype, fill_time="never", dcpl=allocated)
        _create_text(file, contents)
        for _ in _write_text(file, blocks):
            pass


def _storage(contents: Contents, compression: str) -> dict[str, Any]:
    """Return the storage options of the vectors: contiguous, or compressed chunks of whole rows of one layer."""
    if compression == "none" or contents.num_rows == 0:
        return {"fill_time": "never"}
    row_bytes = contents.dimension * np.dtype(contents.dtype).itemsize
    rows = min(contents.num_rows, max(1, _CHUNK_BYTES // row_bytes))
    layers = (1,) * (len(contents.shape) - 2)
    return {"chunks": (*layers, rows, contents.dimension), "compression": compression, "shuffle": True}


def _create_text(file: Any, contents: Contents) -> None:
    attributes = {**contents.attributes, "layout": "packed", "first_line": contents.first_line}
    file.attrs.update(sorted(attributes.items()))
    file.create_dataset("line_offsets", (contents.num_lines + 1,), np.int64)
    file.create_dataset("tokens", (contents.num_tokens,), h5py.string_dtype())
    file.create_dataset("unknown", (contents.num_tokens,), np.bool_)
    if contents.has_offsets:
        file.create_dataset("character_offsets", (contents.num_tokens, 2), np.int32)
    if contents.has_source_lines:
        file.create_dataset("line", (contents.num_lines,), np.int64)
    if contents.has_text:
        file.create_dataset("text", (contents.num_lines,), h5py.string_dtype())


def _write_text(file: Any, blocks: Iterable[Block]) -> Iterator[Block]:
    """Write the lines of each block and pass the block on."""
    line = token = 0
    for block in blocks:
        file["line_offsets"][line + 1 : line + block.num_lines + 1] = block.line_offsets[1:] + token
        if block.source_lines is not None:
            file["line"][line : line + block.num_lines] = block.source_lines
        if block.texts is not None and "text" in file:
            file["text"][line : line + block.num_lines] = np.array(block.texts, object)
        line += block.num_lines
        if block.tokens:
            own = slice(token, token + len(block.tokens))
            file["tokens"][own] = np.array(block.tokens, object)
            file["unknown"][own] = block.unknown
            if block.character_offsets is not None:
                file["character_offsets"][own] = block.character_offsets
        token += len(block.tokens)
        yield block


class VectorFile:
    """The dataset of the vectors in a file of `write_text`, written in place and not through the HDF5 library.

    So nothing but the vectors themselves changes: a process that is killed leaves a file that is still sound HDF5.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with h5py.File(path, "r") as file:
            vectors = file["vectors"]
            self._shape, self._dtype = vectors.shape, vectors.dtype
            # None if there are no rows.
            self._start = vectors.id.get_offset()

    @property
    def region(self) -> Region:
        """The place of all vectors in the file."""
        return Region(self._path, self._start or 0, math.prod(self._shape) * self._dtype.itemsize)

    def write(self, first_row: int, vectors: NDArray[Any]) -> list[Region]:
        """Write consecutive rows in every layer, and wait until they are on the disk.

        Args:
            first_row: Number of the first row.
            vectors: The rows, in the dtype of the file, shape (R, 2P) or (L + 1, R, 2P).

        Returns:
            Where they are in the file.
        """
        if vectors.size == 0:
            return []
        assert vectors.dtype == self._dtype, vectors.dtype
        num_rows, dimension = self._shape[-2:]
        written = []
        with self._path.open("r+b") as file:
            for number, layer in enumerate(vectors if vectors.ndim == 3 else vectors[None]):
                start = self._start + (number * num_rows + first_row) * dimension * self._dtype.itemsize
                file.seek(start)
                file.write(np.ascontiguousarray(layer).data)
                written.append(Region(self._path, start, layer.nbytes))
            file.flush()
            os.fsync(file.fileno())
        return written


def iter_blocks(paths: Iterable[Path]) -> Iterator[LineBlock]:
    """Yield the lines of packed files in order, with their vectors, some thousand tokens at a time."""
    for path in paths:
        with h5py.File(path, "r") as file:
            for start, stop in _iter_spans(file):
                yield _read_vectors(file, start, stop)


def iter_text_blocks(paths: Iterable[Path]) -> Iterator[TextBlock]:
    """Yield the lines of packed files in order, without vectors, some thousand tokens at a time."""
    return chain.from_iterable(map(_iter_text_blocks, paths))


def _iter_spans(file: Any) -> Iterator[tuple[int, int]]:
    """Yield the first line of each block, and the one after its last."""
    num_lines, start = len(file["line_offsets"]) - 1, 0
    while start < num_lines:
        offsets = file["line_offsets"][start : start + BLOCK_LINES + 1]
        stop = start + max(1, int(np.searchsorted(offsets, offsets[0] + BLOCK_TOKENS, side="right")) - 1)
        yield start, stop
        start = stop


def _read_vectors(file: Any, start: int, stop: int) -> LineBlock:
    block = read_lines(file, start, stop)
    is_pooled = "pool" in file.attrs
    first, last = (start, stop) if is_pooled else file["line_offsets"][[start, stop]].tolist()
    return block.with_vectors(file["vectors"][..., first:last, :], is_pooled=is_pooled)


def _iter_text_blocks(path: Path) -> Iterator[TextBlock]:
    with h5py.File(path, "r") as file:
        for start, stop in _iter_spans(file):
            yield read_lines(file, start, stop)


def read_lines(file: Any, start: int, stop: int) -> TextBlock:
    """Read consecutive lines of an open packed file, without vectors.

    Args:
        file: The h5py.File.
        start: The first line, counted from the first one of the file.
        stop: The line after the last.
    """
    offsets = file["line_offsets"][start : stop + 1]
    own = slice(int(offsets[0]), int(offsets[-1]))
    return TextBlock(
        first_line=int(file.attrs["first_line"]) + start,
        line_offsets=offsets - offsets[0],
        tokens=file["tokens"][own].tolist(),
        unknown=file["unknown"][own],
        character_offsets=file["character_offsets"][own] if "character_offsets" in file else None,
        source_lines=file["line"][start:stop] if "line" in file else None,
        texts=file["text"][start:stop].tolist() if "text" in file else None,
    )
