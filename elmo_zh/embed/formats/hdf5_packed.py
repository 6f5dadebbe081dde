"""HDF5 with the vectors of all lines in one dataset, and a table of where each line starts.

`vectors` (N, 2P), or (k, N, 2P) for k layers; `line_offsets` int64 (lines + 1): line i has the rows from
line_offsets[i] to line_offsets[i + 1]; `tokens` (N,) and `unknown` (N,); `character_offsets` int32 (N, 2), raw text
only; `line` int64 (lines,), the line that each sentence comes from, if lines were split; `text` (lines,), the raw line
or sentence, with U+FFFD in place of NUL, which HDF5 cannot store. With pooling, the table applies to the tokens only,
and `vectors` has one row for each line.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm
from elmo_zh.hdf5.create import create_hdf5

SUFFIX = ".hdf5"

_CHUNK_BYTES = 2**18


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file, copying each block into the datasets that all blocks share."""
    with create_hdf5(path) as file:
        file.create_dataset("vectors", contents.shape, contents.dtype, **_storage(contents, form.compression))
        _create_text(file, contents)
        line = token = row = 0
        for block in blocks:
            _write_text(file, block, line, token)
            if num_rows := block.vectors.shape[-2]:
                file["vectors"][..., row : row + num_rows, :] = block.vectors
            line, token, row = line + block.num_lines, token + len(block.tokens), row + num_rows
    return {}


def _storage(contents: Contents, compression: str) -> dict[str, Any]:
    """Return the storage options for the vectors: contiguous, or compressed in chunks of whole rows of one layer."""
    if compression == "none" or contents.num_rows == 0:
        return {"fill_time": "never"}
    row_bytes = contents.dimension * np.dtype(contents.dtype).itemsize
    rows = min(contents.num_rows, max(1, _CHUNK_BYTES // row_bytes))
    layers = (1,) * (len(contents.shape) - 2)
    return {"chunks": (*layers, rows, contents.dimension), "compression": compression, "shuffle": True}


def _create_text(file: Any, contents: Contents) -> None:
    attributes = {**contents.attributes, "layout": "packed", "first_line": 0}
    file.attrs.update(sorted(attributes.items()))
    file.create_dataset("line_offsets", (contents.num_lines + 1,), np.int64)
    file.create_dataset("tokens", (contents.num_tokens,), h5py.string_dtype())
    file.create_dataset("unknown", (contents.num_tokens,), np.bool_)
    if contents.has_offsets:
        file.create_dataset("character_offsets", (contents.num_tokens, 2), np.int32)
    if contents.has_source_lines:
        file.create_dataset("line", (contents.num_lines,), np.int64)
    file.create_dataset("text", (contents.num_lines,), h5py.string_dtype())


def _write_text(file: Any, block: LineBlock, line: int, token: int) -> None:
    """Write everything except the vectors for a block that starts at this line and token."""
    lines = slice(line, line + block.num_lines)
    file["line_offsets"][line + 1 : lines.stop + 1] = block.line_offsets[1:] + token
    # HDF5 cannot store NUL.
    file["text"][lines] = np.array([text.replace(b"\0", "\ufffd".encode()) for text in block.texts], object)
    if block.source_lines is not None:
        file["line"][lines] = block.source_lines
    if block.tokens:
        own = slice(token, token + len(block.tokens))
        file["tokens"][own] = np.array(block.tokens, object)
        file["unknown"][own] = block.unknown
        if block.character_offsets is not None:
            file["character_offsets"][own] = block.character_offsets
