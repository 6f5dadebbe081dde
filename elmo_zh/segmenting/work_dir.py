"""Work folder of the segment stage: lets an interrupted run resume."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.run.files import read_json, remove, write_json
from elmo_zh.segmenting.text_shards import TextShard, text_shard_name


@dataclass(frozen=True)
class SegmentParts:
    """Names every file of the work folder; tasks and text shards are numbered from 0."""

    path: Path

    @property
    def plan(self) -> Path:
        """The file that says what the parts are made from."""
        return self.path / "plan.json"

    @property
    def extracted(self) -> Path:
        """The folder of extracted text shards."""
        return self.path / "extracted"

    def text_shard(self, task: int, number: int) -> TextShard:
        """Return a text shard that an extraction task has written."""
        return TextShard(self.extracted / f"{part_name(task)}.{text_shard_name(number)}")

    @property
    def repeated(self) -> Path:
        """The folder of parts that list repeated lines, one for each bucket of keys."""
        return self.path / "repeated"

    @property
    def segmented(self) -> Path:
        """The folder of segmented shards."""
        return self.path / "segmented"

    def paragraphs(self, shard: int) -> Path:
        """Return the file of a shard's segmented text."""
        return self.segmented / f"{part_name(shard)}.txt"

    def index(self, shard: int) -> Path:
        """Return the file with a row for each paragraph of a shard."""
        return self.segmented / f"{part_name(shard)}.index"

    def candidates(self, shard: int) -> Path:
        """Return the file of the paragraphs of a shard that may be held out."""
        return self.segmented / f"{part_name(shard)}.candidates"

    @property
    def chosen(self) -> Path:
        """The file of the held-out paragraphs' keys."""
        return self.path / "chosen.json"

    @property
    def taken_out(self) -> Path:
        """The folder of shards without their held-out paragraphs."""
        return self.path / "train"

    def train(self, shard: int) -> Path:
        """Return the file of a shard's training text."""
        return self.taken_out / f"{part_name(shard)}.txt"

    def documents(self, shard: int) -> Path:
        """Return the file with the number of sentences of each document in a shard's training text."""
        return self.taken_out / f"{part_name(shard)}.documents"

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Keep the parts if they were made from the same plan, else remove them all."""
        try:
            is_same = read_json(self.plan) == plan
        except (FileNotFoundError, ValueError):
            is_same = False
        if not is_same:
            remove(self.path)
            write_json(self.plan, plan)


def part_name(number: int) -> str:
    """Return the name of the part that the task of this number makes."""
    return f"{number:05d}"
