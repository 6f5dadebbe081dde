"""Vectors in Apache Parquet, for table software and viewers.

One row per line, or per sentence if lines were split, with the columns line, text, tokens, offsets (for raw text), and
vectors or, if there are several layers, one column for each, such as layer_0.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from elmo_zh.embed.formats import Contents, LineBlock


def write_parquet(path: Path, contents: Contents, blocks: Iterator[LineBlock]) -> None:
    """Write the file, one row group per block."""
    # A block without lines gives the types.
    nothing = _columns(_empty_block(contents), contents)
    plain = {
        key: value.tolist() if isinstance(value, np.generic | np.ndarray) else value
        for key, value in sorted(contents.attributes.items())
    }
    attributes = {key: value if isinstance(value, str) else json.dumps(value) for key, value in plain.items()}
    schema = pa.schema([(name, column.type) for name, column in nothing.items()], metadata=attributes)
    # Vectors hardly compress, and dictionary encoding does not help numbers.
    compression = {name: "none" if name in _vector_columns(contents) else "snappy" for name in schema.names}
    with (
        path.open("wb") as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression=compression, use_dictionary=["tokens"]) as writer,
    ):
        for block in blocks:
            writer.write_batch(pa.record_batch(list(_columns(block, contents).values()), schema=schema))


def _vector_columns(contents: Contents) -> list[str]:
    return [f"layer_{number}" for number in contents.layers] or ["vectors"]


def _empty_block(contents: Contents) -> LineBlock:
    return LineBlock(
        first_line=0,
        line_offsets=np.zeros(1, np.int64),
        tokens=[],
        unknown=np.zeros(0, np.bool_),
        character_offsets=np.zeros((0, 2), np.int32) if contents.has_offsets else None,
        source_lines=None,
        texts=[],
        vectors=np.zeros(replace(contents, num_lines=0, num_tokens=0).shape, contents.dtype),
        is_pooled=contents.is_pooled,
    )


def _columns(block: LineBlock, contents: Contents) -> dict[str, Any]:
    starts = pa.array(block.line_offsets.astype(np.int32))
    numbers = block.source_lines
    if numbers is None:
        numbers = np.arange(block.first_line, block.first_line + block.num_lines, dtype=np.int64)
    columns = {"line": pa.array(numbers), "text": _strings(block.texts)}
    columns["tokens"] = pa.ListArray.from_arrays(starts, _strings(block.tokens))
    if block.character_offsets is not None:
        columns["offsets"] = pa.ListArray.from_arrays(starts, _fixed(block.character_offsets))
    layers = list(block.vectors) if contents.layers else [block.vectors]
    for name, layer in zip(_vector_columns(contents), layers, strict=True):
        columns[name] = _fixed(layer) if block.is_pooled else pa.ListArray.from_arrays(starts, _fixed(layer))
    return columns


def _strings(values: list[bytes]) -> Any:
    return pa.array([value.decode() for value in values], pa.string())


def _fixed(rows: NDArray[Any]) -> Any:
    """Return rows of numbers as lists of equal length."""
    flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, rows.shape[-1])
