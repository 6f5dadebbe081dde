"""What tests of labelled data share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contract.command_line import changed_json

from elmo_zh.config.task_settings import DataFiles, FitJob, HeadSettings, Reading, TrainSettings
from elmo_zh.corpus.read_labelled import read_labelled
from elmo_zh.run.reporter import Reporter, SilentReporter
from elmo_zh.tasks.datasets import Dataset, load_dataset

CLASSIFY, TAG, PAIRS = (Reading(kind=kind) for kind in ("classify", "tag", "pairs"))
# The words of the model of tests/tasks/conftest.py.
WORDS = ("我", "吃", "苹", "果", "。", "他", "来")


def load(files: DataFiles, reading: Reading = CLASSIFY, reporter: Reporter | None = None) -> Dataset:
    reporter = reporter or SilentReporter()
    return load_dataset(files, reading, reporter)


def read(path: Path, reading: Reading) -> list[tuple[str, ...]]:
    return [(*example.texts, *example.labels) for example in read_labelled(path, reading).examples]


def written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding=encoding)
    return path


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with changed_json(path / "task.json") as found:
        change(found)


def lines(*records: object) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def table(numbers: range, copies: int = 1, num_labels: int = 2) -> str:
    rows = [f"第{number}个句子,{number % num_labels}\n" * copies for number in numbers]
    return "text,label\n" + "".join(rows)


def write_sums(folder: Path, count: int = 600) -> Path:
    """Texts whose class one character tells, with a third class that two tell together."""
    rows = [{"text": text * 2, "label": f"{('我' in text) + ('苹' in text)}"} for text in drawn_texts(count)]
    return written(folder, "data.jsonl", lines(*rows))


def quick_job(path: Path, kind: str = "classify", **settings: Any) -> FitJob:
    """Return a training of one epoch, by default of a mixture that reads characters."""
    return FitJob(
        files=DataFiles(data=path),
        reading=Reading(kind=kind),
        settings=HeadSettings(kind=kind, **{"inputs": ("characters",), "hidden_dim": 7, **settings}),
        training=TrainSettings(epochs=1, batch_size=16),
    )


def drawn_texts(count: int) -> list[str]:
    generator = np.random.default_rng(7)
    return ["".join(generator.choice(list(WORDS), size=generator.integers(2, 7))) for _ in range(count)]
