"""The unfinished index: the folder INDEX.parts, from which an interrupted `index` resumes.

In the order in which they appear: `manifest.json` (texts, model and settings); `text-NNNNN/`, the tokens of each text,
as `embed` keeps them; `index/`, the finished files of the index, with room for all vectors, and `rows.npy`, the lines
to compute; `computed-*`, vectors that other machines have computed; a `part-*.json` after each part of the vectors,
which says up to which line they have been written.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_zh.contexts.layout import IndexLayout
from elmo_zh.embed.unfinished import Parts, finished_parts, is_same_json, record_part, remove_damaged_parts
from elmo_zh.errors import OutputError
from elmo_zh.run.arrays import write_header
from elmo_zh.run.files import remove, write_json
from elmo_zh.run.sealed import Region


@dataclass(frozen=True)
class IndexParts:
    """The folder INDEX.parts."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "IndexParts":
        """Return the parts of an index."""
        return cls(output.with_name(output.name + ".parts"))

    def text(self, number: int) -> Parts:
        """Return the folder of a text's tokens."""
        return Parts(self.path / f"text-{number:05d}")

    @property
    def layout(self) -> IndexLayout:
        """The files of the index; the folder appears when all but the vectors are finished."""
        return IndexLayout(self.path / "index")

    @property
    def rows(self) -> Path:
        """Numbers of the rows to compute, counted through all texts, int64."""
        return self.layout.path / "rows.npy"

    def num_finished_lines(self) -> int:
        """Return how many of the kept lines have their vectors."""
        return sum(finished_parts(self.path, 0).values()) if self.layout.path.is_dir() else 0

    def finish_part(self, first_line: int, num_lines: int, written: Sequence[Region]) -> None:
        """Record that the vectors of these kept lines have been written, and where."""
        record_part(self.path, first_line, num_lines, written)

    def remove_damaged(self) -> bool:
        """Remove the records of finished parts from the first one on that is damaged; return whether there was any."""
        return remove_damaged_parts(self.path)

    def open(self, manifest: Mapping[str, Any], *, force: bool) -> None:
        """Keep what is finished in the folder if it was made of the same; else discard all but the texts' tokens.

        Args:
            manifest: What the index depends on.
            force: Start over in any case.

        Raises:
            OutputError: If the folder holds vectors of other texts, another model or other settings.
        """
        known = self.path / "manifest.json"
        is_same = is_same_json(known, manifest)
        if not is_same and not force and self.num_finished_lines():
            raise OutputError(
                f"{self.path} holds an unfinished index of other texts, another model or other settings."
                " Give the same ones to continue it, or --force to start over."
            )
        if force or not is_same:
            self.discard_index()
        write_json(known, manifest)

    def discard_index(self) -> None:
        """Remove everything but the tokens of the texts."""
        remove(self.layout.path)
        for pattern in ("part-*.json", "computed-*"):
            for path in self.path.glob(pattern):
                remove(path)

    def remove(self, *, if_empty: bool = False) -> None:
        """Remove the folder, in any case or only if there is nothing in it to resume from."""
        if not (if_empty and (self.layout.path.is_dir() or any(self.path.glob("text-*/text-*.hdf5")))):
            remove(self.path)


class RowFile:
    """An .npy file of known size, whose rows are written in place, so that a kill loses only the last ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        self._start, self._dtype = int(array.offset), array.dtype
        self._row_bytes = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))

    @classmethod
    def create(cls, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Create the file with room for its rows; it takes up no disk space before they are written."""
        with path.open("wb") as file:
            write_header(file, dtype, shape)
            file.truncate(file.tell() + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)

    def write(self, first_row: int, rows: NDArray[Any]) -> Region:
        """Write consecutive rows, wait until they are on the disk, and return where they are."""
        assert rows.dtype == self._dtype, rows.dtype
        start = self._start + first_row * self._row_bytes
        with self._path.open("r+b") as file:
            file.seek(start)
            file.write(np.ascontiguousarray(rows).data)
            file.flush()
            os.fsync(file.fileno())
        return Region(self._path, start, rows.nbytes)
