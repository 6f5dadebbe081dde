"""Inputs of the format writers: blocks of consecutive lines, and a description of the whole output."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class TextBlock:
    """Consecutive lines of N tokens in all, without vectors.

    Attributes:
        first_line: Number of the first line in the text, from 0.
        line_offsets: Line i has the tokens from line_offsets[i] to line_offsets[i + 1], int64, shape (lines + 1,).
        tokens: The N tokens, each in UTF-8.
        unknown: True for each token that the model cannot tell apart from others, shape (N,).
        character_offsets: First character of each token in its line, and the one after its last, int32, shape (N, 2);
            None for text that was already segmented.
        source_lines: Number of the line that each line is a sentence of, from 0, int64, shape (lines,); None if lines
            were not split.
        texts: The raw text of each line, in UTF-8.
    """

    first_line: int
    line_offsets: NDArray[np.int64]
    tokens: list[bytes]
    unknown: NDArray[np.bool_]
    character_offsets: NDArray[np.int32] | None
    source_lines: NDArray[np.int64] | None
    texts: list[bytes]

    @property
    def num_lines(self) -> int:
        """The number of lines."""
        return len(self.line_offsets) - 1

    def save(self, path: Path) -> None:
        """Write the lines into a new .npz file."""
        arrays = {"first_line": np.array(self.first_line), "line_offsets": self.line_offsets, "unknown": self.unknown}
        if self.character_offsets is not None:
            arrays["character_offsets"] = self.character_offsets
        if self.source_lines is not None:
            arrays["source_lines"] = self.source_lines
        for name, strings in (("tokens", self.tokens), ("texts", self.texts)):
            arrays[name] = np.frombuffer(b"".join(strings), np.uint8)
            arrays[f"{name}_ends"] = np.cumsum([len(string) for string in strings], dtype=np.int64)
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> "TextBlock":
        """Read the lines that `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        return cls(
            first_line=int(arrays["first_line"]),
            line_offsets=arrays["line_offsets"],
            tokens=_strings(arrays["tokens"], arrays["tokens_ends"]),
            unknown=arrays["unknown"],
            character_offsets=arrays.get("character_offsets"),
            source_lines=arrays.get("source_lines"),
            texts=_strings(arrays["texts"], arrays["texts_ends"]),
        )

    def iter_lines(self) -> Iterator[tuple[int, slice]]:
        """Yield the number of each line and the slice of its tokens."""
        offsets = self.line_offsets.tolist()
        for line, (start, end) in enumerate(pairwise(offsets), start=self.first_line):
            yield line, slice(start, end)

    def with_vectors(self, vectors: NDArray[Any], *, is_pooled: bool) -> "LineBlock":
        """Return the same lines with their vectors."""
        return LineBlock(
            first_line=self.first_line,
            line_offsets=self.line_offsets,
            tokens=self.tokens,
            unknown=self.unknown,
            character_offsets=self.character_offsets,
            source_lines=self.source_lines,
            texts=self.texts,
            vectors=vectors,
            is_pooled=is_pooled,
        )


def _strings(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[bytes]:
    content = data.tobytes()
    return [content[start:end] for start, end in pairwise([0, *ends.tolist()])]


@dataclass(frozen=True, kw_only=True, eq=False)
class LineBlock(TextBlock):
    """Consecutive lines with their R vectors: one for each token (R = N), or with pooling one for each line.

    Attributes:
        vectors: Shape (L + 1, R, 2P) for all layers, else (R, 2P).
        is_pooled: Whether there is one vector for each line.
    """

    vectors: NDArray[Any]
    is_pooled: bool

    def line_vectors(self, line: int, tokens: slice) -> NDArray[Any]:
        """Return the vectors of one line, contiguous.

        Args:
            line: Number of the line in the text.
            tokens: Slice of its tokens, as `iter_lines` yields it.

        Returns:
            Shape (L + 1, n, 2P) for all layers, else (n, 2P); with pooling without the axis n.
        """
        if self.is_pooled:
            return np.ascontiguousarray(self.vectors[..., line - self.first_line, :])
        return np.ascontiguousarray(self.vectors[..., tokens, :])


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Description of an output, known before its first block is written.

    Attributes:
        attributes: Root attributes: model digest, layers, dtype, segmenter and so on.
        num_lines: Number of lines in all blocks.
        num_tokens: Number of tokens in all blocks.
        num_layers: L + 1 if all layers are kept, else None.
        dimension: Length of a vector, 2P.
        dtype: dtype of the vectors, float32 or float16.
        is_pooled: Whether there is one vector for each line.
        has_offsets: Whether there are character offsets.
        has_source_lines: Whether lines are sentences of the text's lines, whose numbers are kept.
    """

    attributes: Mapping[str, Any]
    num_lines: int
    num_tokens: int
    num_layers: int | None
    dimension: int
    dtype: str
    is_pooled: bool
    has_offsets: bool
    has_source_lines: bool = False

    @property
    def num_rows(self) -> int:
        """The number of vectors in each layer."""
        return self.num_lines if self.is_pooled else self.num_tokens

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all vectors together."""
        layers = () if self.num_layers is None else (self.num_layers,)
        return (*layers, self.num_rows, self.dimension)

    @property
    def vector_bytes(self) -> int:
        """The size of all vectors together."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    def with_size(self, *, num_lines: int, num_tokens: int) -> "Contents":
        """Return a copy for another number of lines and tokens."""
        return replace(self, num_lines=num_lines, num_tokens=num_tokens)
