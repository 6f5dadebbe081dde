"""HDF5 with the vectors of all lines in one dataset, and a table of the start of each line.

`vectors` (N, 2P), or (L + 1, N, 2P) for all layers; `line_offsets` int64 (lines + 1): line i has the rows from
line_offsets[i] to line_offsets[i + 1]; `tokens` (N,) and `unknown` (N,); `character_offsets` int32 (N, 2), for raw
text. With one vector per line the table applies to the tokens only. Parts of unfinished outputs and shards are such
files too.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_zh.embed.blocks import Contents, LineBlock
from elmo_zh.embed.formats import OutputForm
from elmo_zh.hdf5 import create_hdf5

SUFFIX = ".hdf5"

# Measured size of a token: HDF5 stores a variable-length string with overhead, and an entry in the dataset.
_TOKEN_BYTES = 50
_CHUNK_BYTES = 2**18
# Most lines and tokens read at a time.
BLOCK_LINES = 2000
BLOCK_TOKENS = 20_000


def check() -> None:
    """Do nothing: no further package is needed."""


def estimate_bytes(contents: Contents) -> int:
    """Return the approximate size of the file without compression."""
    return contents.vector_bytes + contents.num_tokens * _TOKEN_BYTES + contents.num_lines * 8


def write(
    path: Path,
    contents: Contents,
    blocks: Iterator[LineBlock],
    form: OutputForm,
    extra: Mapping[str, Any] | None = None,
) -> Mapping[str, int]:
    """Write the file, with further datasets if `extra` has any."""
    with create_hdf5(path) as file:
        file.attrs.update({**contents.attributes, "layout": "packed", "first_line": contents.first_line})
        file.create_dataset("vectors", contents.shape, contents.dtype, **_storage(contents, form.compression))
        file.create_dataset("line_offsets", (contents.num_lines + 1,), np.int64)
        file.create_dataset("tokens", (contents.num_tokens,), h5py.string_dtype())
        file.create_dataset("unknown", (contents.num_tokens,), np.bool_)
        if contents.has_offsets:
            file.create_dataset("character_offsets", (contents.num_tokens, 2), np.int32)
        _write_blocks(file, blocks)
        for name, array in (extra or {}).items():
            file.create_dataset(name, data=array)
    return {}


def _storage(contents: Contents, compression: str) -> dict[str, Any]:
    """Return the storage options of the vectors: contiguous, or compressed chunks of whole rows of one layer."""
    if compression == "none" or contents.num_rows == 0:
        return {"fill_time": "never"}
    row_bytes = contents.dimension * np.dtype(contents.dtype).itemsize
    rows = min(contents.num_rows, max(1, _CHUNK_BYTES // row_bytes))
    layers = (1,) * (len(contents.shape) - 2)
    return {"chunks": (*layers, rows, contents.dimension), "compression": compression, "shuffle": True}


def _write_blocks(file: Any, blocks: Iterator[LineBlock]) -> None:
    line = token = 0
    for block in blocks:
        rows = (line, line + block.num_lines) if block.is_pooled else (token, token + len(block.tokens))
        file["line_offsets"][line + 1 : line + block.num_lines + 1] = block.line_offsets[1:] + token
        line += block.num_lines
        if rows[1] > rows[0]:
            file["vectors"][..., slice(*rows), :] = block.vectors
        if block.tokens:
            own = slice(token, token + len(block.tokens))
            file["tokens"][own] = np.array(block.tokens, object)
            file["unknown"][own] = block.unknown
            if block.character_offsets is not None:
                file["character_offsets"][own] = block.character_offsets
        token += len(block.tokens)


def iter_blocks(paths: list[Path]) -> Iterator[LineBlock]:
    """Yield the lines of packed files in order, some thousands of tokens at a time."""
    return chain.from_iterable(map(_iter_file_blocks, paths))


def _iter_file_blocks(path: Path) -> Iterator[LineBlock]:
    with h5py.File(path, "r") as file:
        first_line, is_pooled = int(file.attrs["first_line"]), "pool" in file.attrs
        num_lines = len(file["line_offsets"]) - 1
        start = 0
        while start < num_lines:
            offsets = file["line_offsets"][start : start + BLOCK_LINES + 1]
            count = max(1, int(np.searchsorted(offsets, offsets[0] + BLOCK_TOKENS, side="right")) - 1)
            offsets = offsets[: count + 1]
            own = slice(int(offsets[0]), int(offsets[-1]))
            rows = slice(start, start + count) if is_pooled else own
            yield LineBlock(
                first_line=first_line + start,
                line_offsets=offsets - offsets[0],
                tokens=file["tokens"][own].tolist(),
                unknown=file["unknown"][own],
                character_offsets=file["character_offsets"][own] if "character_offsets" in file else None,
                vectors=file["vectors"][..., rows, :],
                is_pooled=is_pooled,
            )
            start += count
