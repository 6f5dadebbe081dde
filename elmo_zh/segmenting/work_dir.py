"""What the segment stage has done so far: a folder that a stopped stage leaves behind and goes on from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.run.files import remove, write_json
from elmo_zh.segmenting.pieces import Piece, piece_name


@dataclass(frozen=True)
class SegmentParts:
    """Names every file and folder of it; tasks and pieces are numbered from 0."""

    path: Path

    @property
    def plan(self) -> Path:
        """What the parts are made from."""
        return self.path / "plan.json"

    @property
    def extracted(self) -> Path:
        """The folder of parts that extractions make."""
        return self.path / "extracted"

    def piece(self, task: int, number: int) -> Piece:
        """Return a piece of what an extraction found."""
        return Piece(self.extracted / f"{part_name(task)}.{piece_name(number)}")

    @property
    def repeated(self) -> Path:
        """The folder of parts that name repeated lines, one for each range of keys."""
        return self.path / "repeated"

    @property
    def segmented(self) -> Path:
        """The folder of parts that are segmented pieces."""
        return self.path / "segmented"

    def paragraphs(self, piece: int) -> Path:
        """Return the segmented text of a piece."""
        return self.segmented / f"{part_name(piece)}.txt"

    def index(self, piece: int) -> Path:
        """Return what is known of each paragraph of a piece."""
        return self.segmented / f"{part_name(piece)}.index"

    def candidates(self, piece: int) -> Path:
        """Return the paragraphs of a piece that may be held out."""
        return self.segmented / f"{part_name(piece)}.candidates"

    @property
    def chosen(self) -> Path:
        """The keys of the paragraphs that are held out."""
        return self.path / "chosen.json"

    @property
    def taken_out(self) -> Path:
        """The folder of parts that are pieces without what is held out."""
        return self.path / "train"

    def train(self, piece: int) -> Path:
        """Return the training text of a piece."""
        return self.taken_out / f"{part_name(piece)}.txt"

    def documents(self, piece: int) -> Path:
        """Return the numbers of sentences of each document in the training text of a piece."""
        return self.taken_out / f"{part_name(piece)}.documents"

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Go on with what there is if it is of the same plan, else start with nothing."""
        known = json.loads(self.plan.read_text(encoding="utf-8")) if self.plan.exists() else None
        if known != plan:
            remove(self.path)
            write_json(self.plan, plan)


def part_name(number: int) -> str:
    """Return the name of the part that a task of this number makes."""
    return f"{number:05d}"
