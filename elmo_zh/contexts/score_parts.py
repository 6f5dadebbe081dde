"""The unfinished output of `score`: a folder from which an interrupted command resumes.

`manifest.json` says which texts, models and settings the scores belong to. Each `part-*.jsonl`, numbered from 0, holds
the scores of consecutive lines, one JSON array a line; a part is finished when its `.json` is there, with a digest of
it (`run/sealed.py`). `computed-*` are scores that other machines have computed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from elmo_zh.contexts.line_score import ScoredLine
from elmo_zh.run.files import atomic_path, remove
from elmo_zh.run.resumable import open_parts, parts_of, remove_damaged_parts
from elmo_zh.run.sealed import Region, read_sealed, write_sealed


@dataclass(frozen=True)
class ScoreParts:
    """The folder of the parts."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "ScoreParts":
        """Return the parts of an output."""
        return cls(parts_of(output))

    def open(self, manifest: Mapping[str, Any], *, force: bool) -> None:
        """Create the folder, or keep what is finished in it.

        Args:
            manifest: What the scores depend on.
            force: Start over in any case.

        Raises:
            OutputError: If the folder holds scores of other texts, another model or other settings.
        """
        other = "an unfinished output of another text, model or settings"
        open_parts(self.path, manifest, other, self.num_parts, force=force)

    def _part(self, number: int) -> Path:
        return self.path / f"part-{number:08d}.jsonl"

    def _record(self, number: int) -> Path:
        return self._part(number).with_suffix(".json")

    def num_parts(self) -> int:
        """Return how many parts are finished, up to the first gap."""
        return next(number for number in count() if not self._record(number).is_file())

    def remove_damaged(self) -> bool:
        """Remove the records of parts from the first one on that is damaged; return whether there was any."""
        return remove_damaged_parts(self.path)

    def save(self, number: int, lines: Sequence[ScoredLine], unknown_words: Mapping[str, int], num_cut: int) -> None:
        """Write a part, and what was counted when it was computed, as `ComputedScores` has it."""
        with atomic_path(self._part(number)) as unfinished, unfinished.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line.as_record(), ensure_ascii=False) + "\n" for line in lines)
        counted = {"unknown_words": dict(unknown_words), "num_cut": num_cut}
        write_sealed(self._record(number), counted, [Region.whole(self._part(number))])

    def load_counts(self, number: int) -> tuple[dict[str, int], int]:
        """Return what was counted when a finished part was computed; nothing for parts of earlier versions."""
        record = read_sealed(self._record(number))
        return record.get("unknown_words", {}), record.get("num_cut", 0)

    def load(self, number: int) -> list[ScoredLine] | None:
        """Return a part, or None if it is not finished."""
        if not self._record(number).is_file():
            return None
        with self._part(number).open(encoding="utf-8", newline="\n") as file:
            return [ScoredLine.of_record(json.loads(record)) for record in file]

    def iter_lines(self) -> Iterator[ScoredLine]:
        """Yield the lines of all parts in order."""
        for number in range(self.num_parts()):
            yield from self.load(number) or ()

    def remove(self, *, if_empty: bool = False) -> None:
        """Remove the folder, in any case or only if no part is finished."""
        if not (if_empty and self.num_parts()):
            remove(self.path)
