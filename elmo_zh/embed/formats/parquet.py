"""Apache Parquet, for table software and viewers.

One row per line: line, text, tokens, offsets (raw text), and vectors, or layer_0, layer_1, ... for all layers. By
token, one row per token: line, place, token, start and end (raw text), unknown, text, and the same vectors.
"""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm
from elmo_zh.errors import OutputError
from elmo_zh.invocation import install_line
from elmo_zh.language import _

SUFFIX = ".parquet"

# Rows of tokens refer to their lines by numbers in a dictionary, which Parquet gives up if it exceeds this limit.
_DICTIONARY_BYTES = 2**30


def check() -> None:
    """Raise OutputError if pyarrow is not installed."""
    if importlib.util.find_spec("pyarrow") is None:
        raise OutputError(
            _(
                "--format parquet needs the package pyarrow. Choose another --format, or install pyarrow with: {value}"
            ).format(value=install_line("parquet"))
        )


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file, one row group per block."""
    import pyarrow.parquet

    columns = _token_columns if form.by_token else _line_columns
    # A block without lines gives the types.
    nothing = columns(_empty_block(contents), contents)
    attributes = {key: value if isinstance(value, str) else json.dumps(value) for key, value in _plain(contents)}
    schema = pyarrow.schema([(name, column.type) for name, column in nothing.items()], metadata=attributes)
    # Vectors hardly compress, and dictionary encoding does not help numbers.
    compression = {name: "none" if name in _vector_columns(contents) else "snappy" for name in schema.names}
    with (
        path.open("wb") as file,
        pyarrow.parquet.ParquetWriter(
            file,
            schema,
            compression=compression,
            use_dictionary=["token", "text"] if form.by_token else ["tokens"],
            dictionary_pagesize_limit=_DICTIONARY_BYTES if form.by_token else None,
        ) as writer,
    ):
        for block in blocks:
            writer.write_batch(pyarrow.record_batch(list(columns(block, contents).values()), schema=schema))
    return {}


def _vector_columns(contents: Contents) -> list[str]:
    return [f"layer_{number}" for number in contents.layers] or ["vectors"]


def _plain(contents: Contents) -> Iterator[tuple[str, Any]]:
    for key, value in sorted(contents.attributes.items()):
        yield key, value.tolist() if isinstance(value, np.generic | np.ndarray) else value


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


def _line_columns(block: LineBlock, contents: Contents) -> dict[str, Any]:
    import pyarrow as pa

    offsets = pa.array(block.line_offsets.astype(np.int32))

    def by_line(values: Any) -> Any:
        return pa.ListArray.from_arrays(offsets, values)

    columns = {"line": pa.array(_line_numbers(block))}
    columns["text"] = _strings(block.texts)
    columns["tokens"] = by_line(_strings(block.tokens))
    if block.character_offsets is not None:
        columns["offsets"] = by_line(_fixed(block.character_offsets))
    vectors = {name: _fixed(layer) for name, layer in _layers(block, contents).items()}
    return columns | (vectors if block.is_pooled else {name: by_line(layer) for name, layer in vectors.items()})


def _token_columns(block: LineBlock, contents: Contents) -> dict[str, Any]:
    """Return the columns of a table with one row per token; each line's text is stored once."""
    import pyarrow as pa

    line_of_token = np.repeat(np.arange(block.num_lines, dtype=np.int32), np.diff(block.line_offsets))
    columns = {
        "line": pa.array(_line_numbers(block)[line_of_token]),
        "place": pa.array(np.arange(len(block.tokens)) - block.line_offsets[line_of_token], pa.int32()),
        "token": _strings(block.tokens),
        "unknown": pa.array(block.unknown),
    }
    if block.character_offsets is not None:
        for name, places in zip(("start", "end"), block.character_offsets.T, strict=True):
            columns[name] = pa.array(places)
    columns["text"] = pa.DictionaryArray.from_arrays(pa.array(line_of_token), _strings(block.texts))
    return columns | {name: _fixed(layer) for name, layer in _layers(block, contents).items()}


def _line_numbers(block: LineBlock) -> NDArray[np.int64]:
    """Return the number of each line in the text, int64, shape (lines,)."""
    if block.source_lines is not None:
        return block.source_lines
    return np.arange(block.first_line, block.first_line + block.num_lines, dtype=np.int64)


def _layers(block: LineBlock, contents: Contents) -> dict[str, NDArray[Any]]:
    """Return the vectors of each layer, shape (R, 2P), by column name."""
    layers = list(block.vectors) if contents.layers else [block.vectors]
    return dict(zip(_vector_columns(contents), layers, strict=True))


def _strings(values: list[bytes]) -> Any:
    import pyarrow as pa

    return pa.array([value.decode() for value in values], pa.string())


def _fixed(rows: NDArray[Any]) -> Any:
    """Return rows of numbers as lists of equal length."""
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(rows).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, rows.shape[-1])
