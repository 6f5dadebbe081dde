"""HDF5 with one dataset per line ("0", "1", ...); groups "tokens" and "offsets" hold those of each line.

If lines were split, there is one dataset per sentence, and `line` int64 holds the line that each one comes from.
"""

import json
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo_zh.embed.formats import OutputForm
from elmo_zh.embed.formats.hdf5_bytes import LineFile
from elmo_zh.embed.line_blocks import Contents, LineBlock
from elmo_zh.hdf5.foreign_file import has_attributes

SUFFIX = ".hdf5"

# Measured size of a dataset without its numbers, for tokens of ordinary length.
_DATASET_BYTES = 300
# Strings are padded to one length; if that takes more than this because of one long word, they get variable length.
_PADDED_BYTES = 65_536


def check() -> None:
    """Do nothing: no further package is needed."""


def estimate_bytes(contents: Contents) -> int:
    """Return the approximate size of the file."""
    return contents.vector_bytes + contents.num_lines * _DATASET_BYTES * (3 if contents.has_offsets else 2)


def is_output(path: Path) -> bool:
    """Return whether a file was written by embed, in either layout of HDF5."""
    return path.is_file() and has_attributes(path, {"layers", "segmenter"})


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file. The index of sentences, if wanted, is held in memory."""
    index: dict[str, str] = {}
    vectors, tokens, offsets, source_lines = array("Q"), array("Q"), array("Q"), array("q")
    with LineFile(path) as file:
        for block in blocks:
            if block.source_lines is not None:
                source_lines.frombytes(block.source_lines.tobytes())
            for line, own in block.iter_lines():
                words = block.tokens[own]
                file.add_array(vectors, block.line_vectors(line, own))
                file.add_tokens(tokens, words, _PADDED_BYTES)
                if block.character_offsets is not None:
                    file.add_array(offsets, block.character_offsets[own])
                if form.sentence_index:
                    index[b" ".join(words).decode()] = str(line)
        groups = {"tokens": file.add_group(tokens)}
        if contents.has_offsets:
            groups["offsets"] = file.add_group(offsets)
        file.finish(file.add_group(vectors, groups))
    # Through a Python file object, so that a full disk raises an error instead of crashing.
    with path.open("r+b") as raw, h5py.File(raw, "r+") as whole:
        whole.attrs.update(sorted(contents.attributes.items()))
        if contents.has_source_lines:
            whole.create_dataset("line", data=np.array(source_lines, np.int64))
        if form.sentence_index:
            _write_sentence_index(whole, index)
    return {}


def _write_sentence_index(file: Any, index: Mapping[str, str]) -> None:
    """Add AllenNLP's dataset: a JSON object from sentence to line; of equal sentences it keeps the last."""
    file.create_dataset("sentence_to_index", data=[json.dumps(index, ensure_ascii=False)], dtype=h5py.string_dtype())
