"""What tests of labelled data share."""

from pathlib import Path

from elmo_zh.config.task_settings import DataFiles, Reading
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.tasks.datasets import Dataset, find_files, load_dataset

CLASSIFY, TAG, PAIRS = (Reading(kind=kind) for kind in ("classify", "tag", "pairs"))


def load(files: DataFiles, reading: Reading, reporter: Reporter) -> Dataset:
    return load_dataset(find_files(files, reporter), reading, reporter)


class Messages(SilentReporter):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)
    return path
