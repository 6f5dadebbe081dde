"""The array files of an index: mapped into memory when they are first read, and checked."""

from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.index_info import check_sizes, damaged
from elmo_zh.contexts.layout import IndexLayout, array_kinds


class IndexArrays:
    """The arrays of an index, by their paths.

    Attributes:
        layout: The files of the index.
    """

    def __init__(self, layout: IndexLayout, info: dict[str, Any], layers: Sequence[int], dimension: int) -> None:
        """Check the files; the vectors and norms are only checked for their sizes.

        Args:
            layout: The files of the index.
            info: The content of index.json.
            layers: Numbers of the layers whose vectors it has.
            dimension: Length of a vector.

        Raises:
            OutputError: If a file is missing or damaged.
        """
        self.layout = layout
        self._kinds = array_kinds(layout, info["counts"], layers, dimension, info["format"])
        self._opened: dict[Path, NDArray[Any]] = {}
        check_sizes(layout, info, layers)
        words, lines = self.read(layout.words), self.read(layout.lines)
        for column, last, where in (
            (words["end"], info["bytes"][layout.word_text.name], layout.words),
            (words["postings_end"], info["counts"]["occurrences"], layout.words),
            (lines["end"], info["bytes"][layout.line_text.name], layout.lines),
        ):
            if column[-1] != last or column[0] < 0 or (np.diff(column) < 0).any():
                raise damaged(where)
        if lines["source"].min() < 0 or lines["source"].max() >= len(info["texts"]):
            raise damaged(layout.lines)

    def read(self, path: Path) -> NDArray[Any]:
        """Return an array, mapped into memory.

        Raises:
            OutputError: If it has another dtype or shape than index.json tells.
        """
        if path not in self._opened:
            dtype, shape = self._kinds[path]
            try:
                # Copy on write, since torch warns of arrays that cannot be written.
                array = np.load(path, mmap_mode="c", allow_pickle=False)
            except (ValueError, EOFError, TokenError):
                raise damaged(path) from None
            if array.dtype != dtype or array.shape != shape:
                raise damaged(path)
            self._opened[path] = array
        return self._opened[path]
