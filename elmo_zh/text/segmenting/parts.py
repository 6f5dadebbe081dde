"""What the segment stage has done so far: a folder that a stopped stage leaves behind and goes on from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.files import remove, write_json
from elmo_zh.text.segmenting.pieces import Piece


@dataclass(frozen=True)
class SegmentParts:
    """Names every file of the folder; tasks and pieces are numbered from 0."""

    path: Path

    @property
    def plan(self) -> Path:
        """What the parts are made from."""
        return self.path / "plan.json"

    def extracted_stem(self, task: int) -> Path:
        """Return the path that the files of an extraction start with."""
        return self.path / "extracted" / f"{task:05d}"

    def extracted(self, task: int) -> Path:
        """Return the record of an extraction that is done."""
        return self.extracted_stem(task).with_suffix(".json")

    def piece(self, task: int, number: int) -> Piece:
        """Return a piece of what an extraction found."""
        stem = self.extracted_stem(task)
        return Piece(stem.with_name(f"{stem.name}-{number:05d}"))

    @property
    def repeated(self) -> Path:
        """The record of the search for repeated lines."""
        return self.path / "repeated" / "done.json"

    def repeated_bucket(self, bucket: int) -> Path:
        """Return the repeated lines whose keys are in a bucket: uint32 of shape (n, 3)."""
        return self.path / "repeated" / f"{bucket:05d}.lines"

    def paragraphs(self, piece: int) -> Path:
        """Return the segmented text of a piece."""
        return self.path / "segmented" / f"{piece:05d}.txt"

    def index(self, piece: int) -> Path:
        """Return what is known of each paragraph of a piece."""
        return self.path / "segmented" / f"{piece:05d}.index"

    def candidates(self, piece: int) -> Path:
        """Return the paragraphs of a piece that may be held out."""
        return self.path / "segmented" / f"{piece:05d}.candidates"

    @property
    def chosen(self) -> Path:
        """The keys of the paragraphs that are held out."""
        return self.path / "train" / "chosen.json"

    def train(self, piece: int) -> Path:
        """Return the training text of a piece."""
        return self.path / "train" / f"{piece:05d}.txt"

    def documents(self, piece: int) -> Path:
        """Return the numbers of sentences of each document in the training text of a piece."""
        return self.path / "train" / f"{piece:05d}.documents"

    def segmented(self, piece: int) -> Path:
        """Return the record of a piece that is segmented."""
        return self.path / "segmented" / f"{piece:05d}.json"

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Go on with what there is if it is of the same plan, else start with nothing."""
        if load_part(self.plan) != plan:
            remove(self.path)
            write_json(self.plan, plan)


def load_part(path: Path) -> Any:
    """Return a record of the folder, None if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
