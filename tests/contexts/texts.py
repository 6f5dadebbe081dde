"""Texts to index, and how they are indexed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from drawn_bundles import SHAPES, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.contexts import IndexOptions
from elmo_zh.contexts.build_index import IndexJob, IndexReport
from elmo_zh.contexts.index_text import IndexSettings
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.run.job import run_job
from elmo_zh.run.outputs import MARK
from elmo_zh.run.reporter import SilentReporter

LINES = (
    "我们 今天 吃 苹果 。",
    "",
    "苹果 很 贵 ， 我们 吃 米饭 。",
    "。 ，",
    "今天  苹果 和 苹果 手机 都 贵 。",
    "齉 我们 吃",
    "我们 今天 吃 苹果 。",
)


def write_text(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def build(
    embedder: ElmoEmbedder,
    paths: Sequence[Path],
    output: Path,
    *,
    split: bool = False,
    force: bool = False,
    **chosen: Any,
) -> IndexReport:
    """Index files; `chosen` are fields of the settings or of the options of an index."""
    chosen = {"layers": (0, 1, 2), "words": None, "segmented": False, **chosen}
    settings = {name: chosen.pop(name) for name in ("layers", "words", "segmented")}
    parts = {"part_lines": chosen.pop("part_lines")} if "part_lines" in chosen else {}
    sources = find_sources(list(map(str, paths))).sources
    texts = [input_text(each, TextConfig(), segmented=settings["segmented"]) for each in sources]
    index = IndexSettings(**settings, options=IndexOptions(split_sentences=split, **chosen))
    job = IndexJob(embedder=embedder, texts=texts, output=output, settings=index, **parts)
    return run_job(job, force=force, reporter=SilentReporter())


def indexed(embedder: ElmoEmbedder, paths: Sequence[Path], output: Path, **options: Any) -> ContextIndex:
    build(embedder, paths, output, **options)
    return ContextIndex.load(output)


def model_of_words(folder: Path, **options: Any) -> Path:
    return write_model(folder, SHAPES["token"], text=TextConfig(segmenter="whitespace"), **options)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MARK}
