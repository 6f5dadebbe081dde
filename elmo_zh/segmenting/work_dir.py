"""Work folder of the segment stage: one folder of parts for each step, so that an interrupted run resumes."""

from dataclasses import dataclass
from pathlib import Path

from elmo_zh.run.work_folder import WorkFolder, part_name
from elmo_zh.segmenting.text_shards import TextShard, text_shard_name


@dataclass(frozen=True)
class SegmentParts:
    """Names the files of the work folder; tasks and text shards are numbered from 0."""

    folder: WorkFolder

    def _step(self, name: str) -> WorkFolder:
        return WorkFolder(self.folder.path / name)

    @property
    def extracted(self) -> WorkFolder:
        """Extracted text shards."""
        return self._step("extracted")

    @property
    def repeated(self) -> WorkFolder:
        """Lists of repeated lines, one for each bucket of keys."""
        return self._step("repeated")

    @property
    def segmented(self) -> WorkFolder:
        """Segmented shards."""
        return self._step("segmented")

    @property
    def taken_out(self) -> WorkFolder:
        """Shards without their held-out paragraphs."""
        return self._step("train")

    def text_shard(self, task: int, number: int) -> TextShard:
        """Return a text shard that an extraction task has written."""
        return TextShard(self.extracted.path / f"{part_name(task)}.{text_shard_name(number)}")

    def of_segmented(self, shard: int, suffix: str) -> Path:
        """Return a file of a segmented shard.

        Suffixes: txt, its text; index, a row for each paragraph; candidates, the paragraphs that may be held out.
        """
        return self.segmented.path / f"{part_name(shard)}.{suffix}"

    @property
    def chosen(self) -> Path:
        """The keys of the held-out paragraphs."""
        return self.folder.path / "chosen.json"

    def of_train(self, shard: int, suffix: str) -> Path:
        """Return a file of a shard without its held-out paragraphs.

        Suffixes: txt, its training text; documents, the number of sentences of each document in it.
        """
        return self.taken_out.path / f"{part_name(shard)}.{suffix}"
