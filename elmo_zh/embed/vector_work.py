"""The computation of a part: from lines of tokens to an array of vectors, here or on workers."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.embed.line_blocks import Contents
from elmo_zh.embed.reduction import Reduction
from elmo_zh.engine.loaded_once import LoadedOnce
from elmo_zh.run.arrays import load_npy, save_npy

Lines = Sequence[Sequence[str]]


class ArrayWork:
    """Work whose values are arrays, kept as .npy files."""

    def save(self, value: NDArray[Any], path: Path) -> None:
        """Write an array."""
        save_npy(path, value)

    def load(self, path: Path) -> NDArray[Any]:
        """Read an array."""
        return load_npy(path)


class LineVectors(ArrayWork):
    """Computes the vectors of lines as an output of `embed` holds them."""

    def __init__(self, embedder: ElmoEmbedder, contents: Contents, reduction: Reduction) -> None:
        """Prepare the work.

        Args:
            embedder: The model.
            contents: Description of the output, of any lines.
            reduction: What is kept of the activations.
        """
        self._embedder = LoadedOnce(embedder)
        self._contents, self._reduction = contents, reduction

    def compute(self, lines: Lines) -> NDArray[Any]:
        """Return the vectors of lines of tokens, in the dtype and shape of the packed file."""
        contents = self._contents.with_size(num_lines=len(lines), num_tokens=sum(map(len, lines)))
        vectors = np.empty(contents.shape, contents.dtype)
        spans = pairwise(accumulate(map(len, lines), initial=0))
        with self._embedder.used() as (embedder,):
            for index, (activations, span) in enumerate(zip(embedder.compute_vectors(lines), spans, strict=True)):
                vectors[..., index if contents.is_pooled else slice(*span), :] = self._reduction.apply(activations)
        return vectors
