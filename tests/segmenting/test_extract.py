"""How the work of reading a corpus is cut."""

from pathlib import Path

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.extract import NumberedSource, cut


def test_small_files_go_together_and_large_dumps_are_split_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    dump = "<mediawiki>" + "<page>" * 48 + "x"
    for name, text in {
        "a.txt": "x" * 30,
        "b.txt": "x" * 80,
        "c.txt": "x" * 30,
        "d.xml": dump,
        "e.txt": "x" * 300,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    sources = [NumberedSource.of(*numbered) for numbered in enumerate(find_sources([str(folder)]).sources)]
    tasks = list(cut(sources, TextConfig(), 100, Work(tmp_path / "parts", SilentReporter())))
    names = ["".join(numbered.source.path.stem for numbered in task.sources) for task in tasks]
    ranges = [(task.byte_range.start, task.byte_range.end) for task in tasks if task.byte_range]
    assert names == ["ab", "c", "d", "d", "d", "e"]
    assert ranges == [(0, 101), (101, 203), (203, 300)]
    assert sum(task.num_bytes for task in tasks) == 30 + 80 + 30 + 300 + 300
