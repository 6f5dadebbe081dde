"""HDF5 with one dataset a line: "0", "1", ..., and each line's tokens and offsets in groups of their own."""

import json
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py

from elmo_zh.embed.blocks import Contents, LineBlock
from elmo_zh.embed.formats import OutputForm
from elmo_zh.embed.formats.hdf5_bytes import LineFile

# What a dataset has beside its numbers, tokens of ordinary length included; measured.
_DATASET_BYTES = 300
# Strings of one length, padded: where one long word would make them larger than this, each gets its own length.
_PADDED_BYTES = 65_536


def check() -> None:
    """Nothing more is needed."""


def estimate_bytes(contents: Contents) -> int:
    """Return about how large the file will be."""
    return contents.vector_bytes + contents.num_lines * _DATASET_BYTES * (3 if contents.has_offsets else 2)


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file. The index of sentences, where asked for, is held in memory as a whole."""
    index: dict[str, str] = {}
    vectors, tokens, offsets = array("Q"), array("Q"), array("Q")
    with LineFile(path) as file:
        for block in blocks:
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
    # Through a Python file, so that a full disk is an error and not a crash.
    with path.open("r+b") as raw, h5py.File(raw, "r+") as whole:
        whole.attrs.update(contents.attributes)
        if form.sentence_index:
            _write_sentence_index(whole, index)
    return {}


def _write_sentence_index(file: Any, index: Mapping[str, str]) -> None:
    """Add AllenNLP's dataset: a JSON object from sentence to line, of which it keeps the last of equal ones."""
    file.create_dataset("sentence_to_index", data=[json.dumps(index, ensure_ascii=False)], dtype=h5py.string_dtype())
