"""What a dump holds, as the writers of formats get it: blocks of consecutive lines, and how many there are in all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LineBlock:
    """Consecutive lines with their vectors; N tokens in all, R rows of vectors (N, or one a line where pooled).

    Attributes:
        first_line: Number of the first line in the text, from 0.
        line_offsets: Line i has the tokens from line_offsets[i] to line_offsets[i + 1], int64, shape (lines + 1,).
        tokens: Each in UTF-8, N of them.
        unknown: Which tokens the model cannot tell apart, shape (N,).
        character_offsets: First character of each token in its line and the one after its last, int32, shape (N, 2);
            None for text that was segmented already.
        vectors: (L + 1, R, 2P) for all layers, else (R, 2P).
        is_pooled: Whether there is one vector a line.
    """

    first_line: int
    line_offsets: NDArray[np.int64]
    tokens: list[bytes]
    unknown: NDArray[np.bool_]
    character_offsets: NDArray[np.int32] | None
    vectors: NDArray[Any]
    is_pooled: bool

    @property
    def num_lines(self) -> int:
        """How many lines."""
        return len(self.line_offsets) - 1

    def iter_lines(self) -> Iterator[tuple[int, slice]]:
        """Yield each line's number and which of the tokens are its own."""
        offsets = self.line_offsets.tolist()
        for line, (start, end) in enumerate(pairwise(offsets), start=self.first_line):
            yield line, slice(start, end)

    def line_vectors(self, line: int, tokens: slice) -> NDArray[Any]:
        """Return the vectors of one line, whose tokens those are: (n, 2P) or (L + 1, n, 2P), without n if pooled."""
        if self.is_pooled:
            return np.ascontiguousarray(self.vectors[..., line - self.first_line, :])
        return np.ascontiguousarray(self.vectors[..., tokens, :])


@dataclass(frozen=True, kw_only=True)
class Contents:
    """All that a writer knows of an output before the first block.

    Attributes:
        attributes: What the vectors are: model digest, layers, dtype, segmenter and so on.
        first_line: Number of the first line in the text; 0 except in parts and shards.
        num_lines: Lines in all blocks.
        num_tokens: Tokens in all blocks.
        num_layers: L + 1 if all layers are kept, else None.
        dimension: Numbers in a vector, 2P.
        dtype: float32 or float16.
        is_pooled: Whether there is one vector a line.
        has_offsets: Whether there are character offsets.
    """

    attributes: Mapping[str, Any]
    first_line: int
    num_lines: int
    num_tokens: int
    num_layers: int | None
    dimension: int
    dtype: str
    is_pooled: bool
    has_offsets: bool

    @property
    def num_rows(self) -> int:
        """Vectors of each layer."""
        return self.num_lines if self.is_pooled else self.num_tokens

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all vectors together."""
        layers = () if self.num_layers is None else (self.num_layers,)
        return (*layers, self.num_rows, self.dimension)

    @property
    def vector_bytes(self) -> int:
        """Size of all vectors together."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    def with_attributes(self, further: Mapping[str, Any]) -> "Contents":
        """Return the same with further attributes."""
        return replace(self, attributes={**self.attributes, **further})

    def with_size(self, *, num_lines: int, num_tokens: int) -> "Contents":
        """Return the same for another number of lines and tokens."""
        return replace(self, num_lines=num_lines, num_tokens=num_tokens)
