"""HDF5 with one dataset per line: vectors in the root, tokens and offsets in groups of those names.

If lines were split, there is one dataset per sentence, and `line` has the line of each sentence.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.formats import Contents, LineBlock, OutputForm
from elmo_zh.hdf5.create import create_hdf5

SUFFIX = ".hdf5"

# Strings are padded to one length; if that takes more than this because of one long word, they get variable length.
_PADDED_BYTES = 65_536


def write(path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
    """Write the file. An index of sentences, if requested, is held in memory."""
    index: dict[str, str] = {}
    source_lines: list[NDArray[np.int64]] = []
    with create_hdf5(path) as file:
        file.attrs.update(sorted(contents.attributes.items()))
        groups = {name: file.create_group(name).id for name in ("tokens", "offsets")[: 1 + contents.has_offsets]}
        for block in blocks:
            if block.source_lines is not None:
                source_lines.append(block.source_lines)
            for line, own in block.iter_lines():
                words = block.tokens[own]
                _add(file.id, line, block.line_vectors(line, own))
                _add(groups["tokens"], line, _as_strings(words))
                if block.character_offsets is not None:
                    _add(groups["offsets"], line, block.character_offsets[own])
                if form.sentence_index:
                    index[b" ".join(words).decode()] = str(line)
        if contents.has_source_lines:
            file.create_dataset("line", data=np.concatenate([*source_lines, np.zeros(0, np.int64)]))
        if form.sentence_index:
            # AllenNLP's dataset: a JSON object from sentence to line; for equal sentences it keeps the last line.
            content = [json.dumps(index, ensure_ascii=False)]
            file.create_dataset("sentence_to_index", data=content, dtype=h5py.string_dtype())
    return {}


# h5py's low-level calls, with one list of properties for all datasets, take a quarter of the time of create_dataset.
_PLAIN = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
_PLAIN.set_obj_track_times(False)


def _add(group: Any, line: int, values: NDArray[Any]) -> None:
    kind = _type_of(values.dtype)
    dataset = h5py.h5d.create(group, b"%d" % line, kind, h5py.h5s.create_simple(values.shape), _PLAIN)
    if values.size:
        # HDF5 cannot convert padded ASCII strings, which is how h5py reads NumPy strings, to UTF-8.
        in_memory = kind if values.dtype.kind == "S" else None
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values), in_memory)


@lru_cache(maxsize=1024)
def _type_of(dtype: np.dtype[Any]) -> Any:
    """Return the type of an array in the file; bytes are UTF-8, padded with NUL."""
    kind = h5py.h5t.py_create(dtype, logical=True)
    if dtype.kind == "S":
        kind.set_cset(h5py.h5t.CSET_UTF8)
    return kind


def _as_strings(words: list[bytes]) -> NDArray[Any]:
    width = max(map(len, words), default=1)
    is_padded = width * len(words) <= _PADDED_BYTES
    return np.array(words, f"S{width}" if is_padded else h5py.string_dtype())
