"""Apache Parquet, one row per line: line, tokens, offsets (raw text), and vectors, or layer_0, layer_1, ... for all."""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.formats import OutputForm
from elmo_zh.embed.line_blocks import Contents, LineBlock
from elmo_zh.errors import OutputError
from elmo_zh.extras import install_line

SUFFIX = ".parquet"

_FIRST_BYTES = b"PAR1"


def check() -> None:
    """Raise OutputError if pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise OutputError(
            "--format parquet needs the package pyarrow. Choose another --format, or install it with:"
            f" {install_line('parquet')}"
        )


def estimate_bytes(contents: Contents) -> int:
    """Return the approximate size of the file."""
    return contents.vector_bytes + contents.num_tokens * 12


def is_output(path: Path) -> bool:
    """Return whether a file was written by this module; without pyarrow, whether it is any Parquet file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if file.read(len(_FIRST_BYTES)) != _FIRST_BYTES:
            return False
    if importlib.util.find_spec("pyarrow") is None:
        return True
    import pyarrow.parquet

    try:
        attributes = pyarrow.parquet.read_schema(path).metadata or {}
    except (OSError, ValueError):
        return False
    return b"layers" in attributes and b"segmenter" in attributes


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file, one row group per block."""
    import pyarrow.parquet

    schema = _schema(contents)
    small = [name for name in schema.names if not name.startswith(("vectors", "layer_"))]
    # Vectors hardly compress, and dictionary encoding does not help numbers.
    compression = {name: "snappy" if name in small else "none" for name in schema.names}
    with (
        path.open("wb") as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression=compression, use_dictionary=["tokens"]) as writer,
    ):
        for block in blocks:
            writer.write_batch(pyarrow.record_batch(_columns(block, contents), schema=schema))
    return {}


def _vector_columns(contents: Contents) -> list[str]:
    return ["vectors"] if contents.num_layers is None else [f"layer_{n}" for n in range(contents.num_layers)]


def _schema(contents: Contents) -> Any:
    import pyarrow as pa

    vector = pa.list_(pa.float16() if contents.dtype == "float16" else pa.float32(), contents.dimension)
    fields = [("line", pa.int64()), ("tokens", pa.list_(pa.string()))]
    if contents.has_offsets:
        fields.append(("offsets", pa.list_(pa.list_(pa.int32(), 2))))
    fields += [(name, vector if contents.is_pooled else pa.list_(vector)) for name in _vector_columns(contents)]
    attributes = {key: value if isinstance(value, str) else json.dumps(value) for key, value in _plain(contents)}
    return pa.schema(fields, metadata=attributes)


def _plain(contents: Contents) -> Iterator[tuple[str, Any]]:
    for key, value in sorted(contents.attributes.items()):
        yield key, value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _columns(block: LineBlock, contents: Contents) -> list[Any]:
    import pyarrow as pa

    offsets = pa.array(block.line_offsets.astype(np.int32))

    def fixed(rows: NDArray[Any]) -> Any:
        flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, rows.shape[-1])

    def by_line(values: Any) -> Any:
        return pa.ListArray.from_arrays(offsets, values)

    numbers = np.arange(block.first_line, block.first_line + block.num_lines, dtype=np.int64)
    lines = pa.array(numbers if block.source_lines is None else block.source_lines)
    columns = [lines, by_line(pa.array([token.decode() for token in block.tokens], pa.string()))]
    if block.character_offsets is not None:
        columns.append(by_line(fixed(block.character_offsets)))
    layers = [block.vectors] if contents.num_layers is None else list(block.vectors)
    columns += [fixed(layer) if block.is_pooled else by_line(fixed(layer)) for layer in layers]
    return columns
