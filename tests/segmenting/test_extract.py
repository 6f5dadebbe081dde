"""Reading sources into text shards: what is refused, and how the work is cut."""

from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.extract import ExtractTask, NumberedSource, cut

CONFIG = TextConfig()


def numbered(folder: Path) -> list[NumberedSource]:
    found = find_sources([str(folder)]).sources
    return [NumberedSource.of(number, each) for number, each in enumerate(found)]


def work_in(folder: Path) -> Work:
    return Work(folder / "parts", SilentReporter())


def tasks_of(folder: Path, shard_bytes: int = 100) -> list[ExtractTask]:
    return list(cut(numbered(folder), CONFIG, shard_bytes, work_in(folder.parent)))


def corpus_of(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


def test_small_files_go_together_and_large_ones_are_split_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    folder = corpus_of(tmp_path / "c", a="x" * 30, b="x" * 80, c="x" * 30, d="行\n" * 100, e="x" * 10)
    tasks = tasks_of(folder)
    assert [
        (
            [each.source.path.stem for each in task.sources],
            task.byte_range and (task.byte_range.start, task.byte_range.end),
        )
        for task in tasks
    ] == [
        (["a", "b"], None),
        (["c"], None),
        (["d"], (0, 100)),
        (["d"], (100, 200)),
        (["d"], (200, 300)),
        (["d"], (300, 400)),
        (["e"], None),
    ]
    assert sum(task.num_bytes for task in tasks) == 30 + 80 + 30 + 400 + 10
