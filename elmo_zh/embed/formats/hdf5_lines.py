"""HDF5 with one dataset a line: "0", "1", ..., and each line's tokens and offsets in groups of their own.

Made by HDF5's own calls with property lists that are made once: h5py's convenient ones take four times as long, and
a million lines are three million datasets. Tokens are strings of one length a line, which lie in the dataset's header.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

from elmo_zh.embed.blocks import Contents, LineBlock
from elmo_zh.embed.formats import OutputForm
from elmo_zh.hdf5 import create_hdf5

# What HDF5 writes beside the numbers of a dataset, tokens of ordinary length included; measured.
_DATASET_BYTES = 420
# Up to this size data lie in the header, which saves a write; HDF5 allows 64 KiB.
_COMPACT_BYTES = 2048
# Strings of one length, padded: where one long word would make them larger than this, each gets its own length.
_PADDED_BYTES = 65_536


def check() -> None:
    """Nothing more is needed."""


def estimate_bytes(contents: Contents) -> int:
    """Return about how large the file will be."""
    return contents.vector_bytes + contents.num_lines * _DATASET_BYTES * (3 if contents.has_offsets else 2)


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file. The index of sentences, where asked for, is the one thing that grows in memory."""
    index: dict[str, str] = {}
    # Large blocks of metadata: fewer, larger writes.
    with create_hdf5(path, meta_block_size=2**20) as file:
        file.attrs.update(contents.attributes)
        vectors, tokens = _Datasets(file), _TokenDatasets(file.create_group("tokens"))
        offsets = _Datasets(file.create_group("offsets")) if contents.has_offsets else None
        for block in blocks:
            # Line by line, so that the file's bytes do not depend on where one block ends and the next begins.
            for line, own in block.iter_lines():
                words = block.tokens[own]
                vectors.add(line, block.line_vectors(line, own))
                tokens.add_tokens(line, words)
                if offsets is not None and block.character_offsets is not None:
                    offsets.add(line, block.character_offsets[own])
                if form.sentence_index:
                    index[b" ".join(words).decode()] = str(line)
        if form.sentence_index:
            _write_sentence_index(file, index)
    return {}


class _Datasets:
    """Adds datasets named after lines to a group."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self._contiguous = h5p.create(h5p.DATASET_CREATE)
        self._contiguous.set_fill_time(h5d.FILL_TIME_NEVER)
        self._contiguous.set_obj_track_times(False)  # the same vectors give the same bytes
        self._compact = self._contiguous.copy()
        self._compact.set_layout(h5d.COMPACT)
        self._types: dict[np.dtype[Any], Any] = {}

    def add(self, line: int, array: NDArray[Any]) -> None:
        """Write a C-contiguous array of any shape."""
        if (kind := self._types.get(array.dtype)) is None:
            kind = self._types[array.dtype] = self.build_type(array.dtype)
        properties = self._compact if array.nbytes <= _COMPACT_BYTES else self._contiguous
        dataset = h5d.create(self._group.id, b"%d" % line, kind, h5s.create_simple(array.shape), dcpl=properties)
        if array.size:
            dataset.write(h5s.ALL, h5s.ALL, array, kind)

    def build_type(self, dtype: np.dtype[Any]) -> Any:
        """Return HDF5's type for an array's."""
        return h5t.py_create(dtype, logical=True)


class _TokenDatasets(_Datasets):
    """Adds tokens: UTF-8 strings."""

    def add_tokens(self, line: int, tokens: list[bytes]) -> None:
        """Write the tokens of one line."""
        width = max(map(len, tokens), default=1)
        if width * len(tokens) > _PADDED_BYTES:
            words = np.array(tokens, object)
            self._group.create_dataset(str(line), data=words, dtype=h5py.string_dtype(), track_times=False)
        else:
            self.add(line, np.array(tokens, f"S{width}"))

    def build_type(self, dtype: np.dtype[Any]) -> Any:
        """Return HDF5's type of UTF-8 strings of that many bytes."""
        kind = h5t.C_S1.copy()
        kind.set_size(dtype.itemsize)
        kind.set_strpad(h5t.STR_NULLPAD)
        kind.set_cset(h5t.CSET_UTF8)
        return kind


def _write_sentence_index(file: Any, index: Mapping[str, str]) -> None:
    """Add AllenNLP's dataset: a JSON object from sentence to line, of which it keeps the last of equal ones."""
    file.create_dataset("sentence_to_index", data=[json.dumps(index, ensure_ascii=False)], dtype=h5py.string_dtype())
