"""The formats of an output: HDF5 with one dataset per line, a folder of NumPy arrays, or Parquet."""

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from elmo_zh.choices import OUTPUT_FORMATS
from elmo_zh.embed.text_tokens import TextBlock
from elmo_zh.errors import OptionError, OutputError
from elmo_zh.hdf5 import create_hdf5, has_attributes
from elmo_zh.invocation import needs
from elmo_zh.run.arrays import ArrayWriter
from elmo_zh.run.outputs import kind_of

# The metadata of Parquet are at its end.
_HEAD_BYTES, _FOOTER_BYTES = 64, 2**16


@dataclass(frozen=True, kw_only=True, eq=False)
class LineBlock(TextBlock):
    """Consecutive lines with their R vectors: one per token (R = N) or, with pooling, one per line."""

    vectors: NDArray[Any]  # Shape (k, R, 2P) for k layers side by side, else (R, 2P)
    is_pooled: bool  # Whether there is one vector for each line

    def line_vectors(self, line: int, tokens: slice) -> NDArray[Any]:
        """Return one line's vectors, contiguous: (k, n, 2P) or (n, 2P); pooling drops the axis n."""
        rows = line - self.first_line if self.is_pooled else tokens
        return np.ascontiguousarray(self.vectors[..., rows, :])


@dataclass(frozen=True, kw_only=True)
class Contents:
    """A description of an output, known before its first block is written."""

    attributes: Mapping[str, Any]  # Root attributes: model digest, layers, dtype, segmenter and so on
    num_lines: int  # Number of lines in all blocks
    num_tokens: int  # Number of tokens in all blocks
    layers: tuple[int, ...]  # Numbers of the layers kept side by side; () if there is one vector per token or line
    dimension: int  # Length of a vector, 2P
    dtype: str  # dtype of the vectors, float32 or float16
    is_pooled: bool  # Whether there is one vector for each line
    has_offsets: bool  # Whether there are character offsets
    has_source_lines: bool = False  # Whether each line is a sentence, stored with the number of its line
    has_sentence_index: bool = False  # Whether HDF5 has AllenNLP's sentence_to_index, which is held in memory

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all vectors taken together."""
        layers = (len(self.layers),) if self.layers else ()
        return (*layers, self.num_lines if self.is_pooled else self.num_tokens, self.dimension)

    @property
    def vector_bytes(self) -> int:
        """The size in bytes of all vectors taken together."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


# Writes all blocks, in order, to a path that does not exist yet.
Writer = Callable[[Path, Contents, Iterator[LineBlock]], None]


def choose_writer(output_format: str) -> Writer:
    """Return the function that writes a format, importing its libraries only now."""
    writer: Writer = OUTPUT_FORMATS.load(output_format)
    return writer


def check_format(output_format: str, *, sentence_index: bool) -> None:
    """Raise OptionError if a format cannot hold a requested sentence index, OutputError if its library is missing."""
    if sentence_index and output_format != "hdf5":
        raise OptionError.together("--sentence-index", f"--format {output_format}")
    if output_format == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise OutputError(needs("--format parquet", "pyarrow", "parquet"))


def is_output(path: Path) -> bool:
    """Return whether a path is an empty file or holds vectors that embed wrote, so that --force may replace it."""
    if not path.is_file():
        return kind_of(path) == "vectors"
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if head.startswith(b"PAR1"):
            file.seek(max(0, path.stat().st_size - _FOOTER_BYTES))
            return b"segmenter" in file.read()
    return not head or (head.startswith(b"\x89HDF") and has_attributes(path, {"layers", "segmenter"}))


def require_matching_suffix(output: Path, output_format: str) -> None:
    """Raise OptionError if an output's name has the suffix of a format other than the one to write."""
    named = output.suffix.removeprefix(".")
    if named in OUTPUT_FORMATS.built_in and named != output_format:
        raise OptionError.together(f"--output {output}", f"--format {output_format}")


# HDF5. Strings are padded to one length; if that takes more than this because of one long word, they get variable
# length.
_PADDED_BYTES = 65_536


def write_hdf5(path: Path, contents: Contents, blocks: Iterator[LineBlock]) -> None:
    """Write HDF5 with one dataset per line: vectors in the root; groups `tokens` and, for raw text, `offsets`.

    If lines were split, there is one dataset per sentence, and the dataset `line` has each sentence's line number. The
    dataset `sentence_to_index` (AllenNLP's map from sentences to lines) is optional.
    """
    index: dict[str, str] = {}
    source_lines: list[NDArray[np.int64]] = []
    with create_hdf5(path) as file:
        file.attrs.update(sorted(contents.attributes.items()))
        groups = {name: file.create_group(name).id for name in ("tokens", "offsets")[: 1 + contents.has_offsets]}
        for block in blocks:
            if block.source_lines is not None:
                source_lines.append(block.source_lines)
            for line, place in block.iter_lines():
                words = block.tokens[place]
                _add(file.id, line, block.line_vectors(line, place))
                _add(groups["tokens"], line, _as_strings(words))
                if block.character_offsets is not None:
                    _add(groups["offsets"], line, block.character_offsets[place])
                if contents.has_sentence_index:
                    index[b" ".join(words).decode()] = str(line)
        if contents.has_source_lines:
            file.create_dataset("line", data=np.concatenate([*source_lines, np.zeros(0, np.int64)]))
        if contents.has_sentence_index:
            # AllenNLP's dataset: a JSON object from sentence to line; for equal sentences it keeps the last line.
            content = [json.dumps(index, ensure_ascii=False)]
            file.create_dataset("sentence_to_index", data=content, dtype=h5py.string_dtype())


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
    """Return the HDF5 type for a NumPy type; byte strings are UTF-8, padded with NUL."""
    kind = h5py.h5t.py_create(dtype, logical=True)
    if dtype.kind == "S":
        kind.set_cset(h5py.h5t.CSET_UTF8)
    return kind


def _as_strings(words: list[bytes]) -> NDArray[Any]:
    width = max(map(len, words), default=1)
    is_padded = width * len(words) <= _PADDED_BYTES
    return np.array(words, f"S{width}" if is_padded else h5py.string_dtype())


def write_npy(path: Path, contents: Contents, blocks: Iterator[LineBlock]) -> None:
    """Write a new folder of NumPy files that can be memory-mapped, with the tokens as text.

    vectors.npy (R, 2P), or (k, R, 2P) for k layers, R as in `LineBlock`; line_offsets.npy int64 (lines + 1);
    character_offsets.npy int32 (N, 2), for raw text; unknown.npy bool (N,); tokens.txt, one line per line of the text,
    tokens joined by spaces; info.json. If lines were split, each "line" here is a sentence, and line.npy int64 has each
    sentence's line number.
    """
    path.mkdir()
    with ExitStack() as opened:

        def create(name: str, dtype: DTypeLike, *shape: int) -> ArrayWriter:
            file = opened.enter_context((path / f"{name}.npy").open("wb"))
            return ArrayWriter(file, dtype, *shape)

        vectors = create("vectors", contents.dtype, *contents.shape)
        offsets = create("line_offsets", np.int64, contents.num_lines + 1)
        unknown = create("unknown", np.bool_, contents.num_tokens)
        characters = create("character_offsets", np.int32, contents.num_tokens, 2) if contents.has_offsets else None
        lines = create("line", np.int64, contents.num_lines) if contents.has_source_lines else None
        text = opened.enter_context((path / "tokens.txt").open("wb"))
        offsets.append(np.zeros(1, np.int64))
        num_tokens = 0
        for block in blocks:
            vectors.append(block.vectors)
            offsets.append(block.line_offsets[1:] + num_tokens)
            unknown.append(block.unknown)
            if characters is not None and block.character_offsets is not None:
                characters.append(block.character_offsets)
            if lines is not None and block.source_lines is not None:
                lines.append(block.source_lines)
            text.writelines(b" ".join(block.tokens[place]) + b"\n" for _, place in block.iter_lines())
            num_tokens += len(block.tokens)
    info = {**contents.attributes, "lines": contents.num_lines, "tokens": contents.num_tokens, "shape": contents.shape}
    written = json.dumps(info, ensure_ascii=False, indent=2, sort_keys=True, default=lambda value: value.tolist())
    (path / "info.json").write_text(written + "\n", "utf-8")
