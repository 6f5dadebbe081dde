"""Output formats, one writer per module, each turning blocks of lines into a file or folder in bounded memory."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from elmo_zh.choices import HDF5_LAYOUTS, OUTPUT_FORMATS
from elmo_zh.config import Layers
from elmo_zh.errors import OptionError, OutputError
from elmo_zh.hdf5.create import has_attributes
from elmo_zh.language import _
from elmo_zh.run.arrays import load_arrays, save_arrays
from elmo_zh.run.mark import kind_of

# The metadata of Parquet are at its end.
_HEAD_BYTES, _FOOTER_BYTES = 64, 2**16
# The fields of a `TextBlock` that are arrays, or None, and those that are lists of bytes.
_ARRAYS = ("line_offsets", "unknown", "character_offsets", "source_lines", "starts")
_STRINGS = ("tokens", "texts", "columns")


@dataclass(frozen=True, kw_only=True, eq=False)
class TextBlock:
    """Consecutive lines with N tokens in all, without vectors."""

    first_line: int  # Number of the first line in the text, from 0
    # Line i has the tokens from line_offsets[i] to line_offsets[i + 1], int64, shape (lines + 1,).
    line_offsets: NDArray[np.int64]
    tokens: list[bytes]  # The N tokens, each in UTF-8
    unknown: NDArray[np.bool_]  # True for each token that the model cannot tell apart from others, shape (N,)
    # First character of each token in its line, and the one after its last, int32, shape (N, 2); None for text that was
    # already segmented.
    character_offsets: NDArray[np.int32] | None
    # Number, from 0, of the line that each sentence comes from, int64, shape (lines,); None if lines were not split.
    source_lines: NDArray[np.int64] | None
    texts: list[bytes]
    # First character of each sentence in that line, int32, shape (lines,); None as above.
    starts: NDArray[np.int32] | None = None
    columns: list[bytes] = field(default_factory=list)  # The other columns of each line's record, as a JSON object

    @property
    def num_lines(self) -> int:
        """The number of lines."""
        return len(self.line_offsets) - 1

    def save(self, path: Path) -> None:
        """Write the lines to a new .npz file."""
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        arrays["first_line"] = np.array(self.first_line)
        for name in _STRINGS:
            strings = getattr(self, name)
            arrays[name] = np.frombuffer(b"".join(strings), np.uint8)
            arrays[f"{name}_ends"] = np.cumsum([len(string) for string in strings], dtype=np.int64)
        save_arrays(path, arrays)

    @classmethod
    def load(cls, path: Path) -> "TextBlock":
        """Read lines written by `save`."""
        arrays = load_arrays(path)
        found: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
        found |= {name: _strings(arrays[name], arrays[f"{name}_ends"]) for name in _STRINGS}
        return cls(first_line=int(arrays["first_line"]), **found)

    def iter_lines(self) -> Iterator[tuple[int, slice]]:
        """Yield the number of each line and the slice of its tokens."""
        offsets = self.line_offsets.tolist()
        for line, (start, end) in enumerate(pairwise(offsets), start=self.first_line):
            yield line, slice(start, end)

    def with_vectors(self, vectors: NDArray[Any], *, is_pooled: bool) -> "LineBlock":
        """Return the same lines with their vectors."""
        return LineBlock(**vars(self), vectors=vectors, is_pooled=is_pooled)


def _strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[bytes]:
    content = data.tobytes()
    return [content[start:end] for start, end in pairwise([0, *ends.tolist()])]


@dataclass(frozen=True, kw_only=True, eq=False)
class LineBlock(TextBlock):
    """Consecutive lines with their R vectors: one per token (R = N) or, with pooling, one per line."""

    vectors: NDArray[Any]  # Shape (k, R, 2P) for k layers side by side, else (R, 2P)
    is_pooled: bool  # Whether there is one vector for each line

    def line_vectors(self, line: int, tokens: slice) -> NDArray[Any]:
        """Return one line's vectors, contiguous: (k, n, 2P) or (n, 2P); pooling drops the axis n."""
        if self.is_pooled:
            return np.ascontiguousarray(self.vectors[..., line - self.first_line, :])
        return np.ascontiguousarray(self.vectors[..., tokens, :])


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

    @property
    def num_rows(self) -> int:
        """The number of vectors in each layer."""
        return self.num_lines if self.is_pooled else self.num_tokens

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all vectors taken together."""
        layers = (len(self.layers),) if self.layers else ()
        return (*layers, self.num_rows, self.dimension)

    @property
    def vector_bytes(self) -> int:
        """The size in bytes of all vectors taken together."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, kw_only=True)
class OutputForm:
    """The form in which vectors are written; the vectors are the same in any form."""

    format: str = "hdf5"  # A name in `elmo_zh.choices.OUTPUT_FORMATS`
    # Layout of HDF5: lines (one dataset per line) or packed (one for all lines, with a table of offsets).
    layout: str = "lines"
    compression: str = "none"  # Compression of packed HDF5
    sentence_index: bool = False  # Add AllenNLP's sentence_to_index to HDF5 with one dataset per line
    by_token: bool = False  # One row per token in Parquet, else one per line


class Writer(Protocol):
    """An output format as registered in `elmo_zh.choices.OUTPUT_FORMATS`: a module or an object.

    If it needs something that may not be installed, it also has `check()`, which then raises ElmoZhError.
    """

    SUFFIX: str  # Added to the name of the text, such as ".parquet"

    def write(self, path: Path, contents: Contents, blocks: Iterator[LineBlock], form: OutputForm) -> Mapping[str, int]:
        """Write all blocks, in order, to a path that does not exist yet; return counts worth reporting."""


def choose_writer(form: OutputForm) -> Writer:
    """Return the writer for a form, importing its libraries only now."""
    return cast(Writer, HDF5_LAYOUTS.load(form.layout) if form.format == "hdf5" else OUTPUT_FORMATS.load(form.format))


def check_form(form: OutputForm, *, layers: Layers, pool: str) -> None:
    """Raise OptionError if the options of a form contradict each other, the layers or the pooling."""
    if form.format != "hdf5" and form.layout != "lines":
        raise OptionError(
            _(
                "--layout {layout} works only with --format hdf5, not {format}. Leave out one of the two options."
            ).format(layout=form.layout, format=form.format)
        )
    if form.compression != "none" and form.layout != "packed":
        raise OptionError(
            _("--compression {compression} needs --layout packed, whose datasets are large enough to compress.").format(
                compression=form.compression
            )
        )
    if form.sentence_index and (form.format, form.layout) != ("hdf5", "lines"):
        raise OptionError(_("--sentence-index needs HDF5 with one dataset per line. Leave out --format and --layout."))
    if form.by_token and (form.format != "parquet" or pool != "none"):
        raise OptionError(
            _(
                "--by token needs --format parquet and vectors that are not pooled (--format is"
                " {format}, --pool is {pool}). Use --format parquet, and leave out --pool."
            ).format(format=form.format, pool=pool)
        )
    if form.format == "word2vec" and (layers == "all" or "," in layers or pool != "none"):
        raise OptionError(
            _(
                "--format word2vec stores one vector per word, but --layers is {layers} and --pool is"
                " {pool}. Give --layers average, top, mix or a number, and no --pool."
            ).format(layers=layers, pool=pool)
        )
    getattr(choose_writer(form), "check", lambda: None)()


def is_output(path: Path, form: OutputForm) -> bool:
    """Return whether a path holds vectors that embed wrote or nothing, so that --force may replace it."""
    if not path.is_file():
        return kind_of(path) == "vectors"
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if head.startswith(b"\x89HDF"):
            return has_attributes(path, {"layers", "segmenter"})
        if head.startswith(b"PAR1"):
            file.seek(max(0, path.stat().st_size - _FOOTER_BYTES))
            return b"segmenter" in file.read()
    is_plug_in = form.format not in OUTPUT_FORMATS.built_in
    return not head or bool(re.match(rb"\d+ \d+\n", head)) or (is_plug_in and path.suffix == output_suffix(form))


def require_matching_suffix(output: Path, form: OutputForm) -> None:
    """Raise OutputError if an output's name has the suffix of a format other than the one to write."""
    suffixes = {name: output_suffix(OutputForm(format=name)) for name in OUTPUT_FORMATS.built_in}
    named = next((name for name, suffix in suffixes.items() if output.suffix == suffix), form.format)
    if named != form.format and output.suffix != output_suffix(form):
        raise OutputError(
            _(
                "--output {output} has the suffix of the format {named}, but the format is {format}. Add"
                " --format {named2}, or give the output another name."
            ).format(output=output, named=named, format=form.format, named2=named)
        )


def output_suffix(form: OutputForm) -> str:
    """Return the suffix for outputs in a given form, such as .parquet."""
    return choose_writer(form).SUFFIX
