"""JSON lines for people to read; numbers are rounded to six decimals."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm

SUFFIX = ".jsonl"

# The start of each line.
_FIRST_BYTES = b'{"line": '
_DIGITS = 6
# Measured size of a number with its sign, comma and space.
_NUMBER_BYTES = 11


def estimate_bytes(contents: Contents) -> int:
    """Return the approximate size of the file."""
    return contents.vector_bytes // np.dtype(contents.dtype).itemsize * _NUMBER_BYTES + contents.num_tokens * 30


def is_output(path: Path) -> bool:
    """Return whether a file was written by this module."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES and b'"tokens": [' in file.read(64)


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file, one JSON object per line of the text."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for block in blocks:
            for line, own in block.iter_lines():
                number = line if block.source_lines is None else int(block.source_lines[line - block.first_line])
                row: dict[str, Any] = {"line": number, "tokens": [token.decode() for token in block.tokens[own]]}
                if block.character_offsets is not None:
                    row["offsets"] = block.character_offsets[own].tolist()
                row["vectors"] = np.round(block.line_vectors(line, own).astype(np.float64), _DIGITS).tolist()
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {}
