"""The unfinished index: the folder INDEX.parts, from which an interrupted `index` resumes.

In the order in which they appear: `manifest.json` (texts, model and settings); `text-NNNNN/`, the tokens of each text,
as `embed` keeps them; `index/`, the finished files of the index, with room for all vectors, and `rows.npy`, the lines
to compute; `computed-*`, vectors that other machines have computed; a `part-*.json` after each part of the vectors,
which says up to which line they have been written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.contexts.layout import IndexLayout
from elmo_zh.embed.text_tokens import TextTokens
from elmo_zh.run.files import remove
from elmo_zh.run.resumable import finished_parts, open_parts, parts_of, record_part, remove_damaged_parts
from elmo_zh.run.sealed import Region
from elmo_zh.run.work_folder import WorkFolder


@dataclass(frozen=True)
class IndexParts:
    """The folder INDEX.parts."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "IndexParts":
        """Return the parts of an index."""
        return cls(parts_of(output))

    def text(self, number: int) -> TextTokens:
        """Return the tokens of a text."""
        return TextTokens(WorkFolder(self.path / f"text-{number:05d}"))

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
        other = "an unfinished index of other texts, another model or other settings"
        open_parts(self.path, manifest, other, self.num_finished_lines, force=force, discard=self.discard_index)

    def discard_index(self) -> None:
        """Remove everything but the tokens of the texts."""
        remove(self.layout.path)
        for pattern in ("part-*.json", "computed-*"):
            for path in self.path.glob(pattern):
                remove(path)

    def remove(self, *, if_empty: bool = False) -> None:
        """Remove the folder, in any case or only if there is nothing in it to resume from."""
        if not (if_empty and (self.layout.path.is_dir() or any(self.path.glob("text-*/text-*.npz")))):
            remove(self.path)
