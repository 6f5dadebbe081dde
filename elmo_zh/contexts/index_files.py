"""Index files from Python: the work of `ContextIndex.build`, which does what `elmo-zh index` does."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_zh.bundle.find_bundle import DEFAULT_MODEL
from elmo_zh.config import TextConfig
from elmo_zh.contexts.build_index import IndexSettings, build_index, texts_to_index
from elmo_zh.contexts.index_arguments import explain_missing
from elmo_zh.corpus.input_texts import opened_inputs
from elmo_zh.embed.embedder import ElmoEmbedder
from elmo_zh.run.path_arguments import shown_path
from elmo_zh.run.reporter import Reporter


def check_embedder(given: object, call: str) -> ElmoEmbedder:
    """Return an embedder; raise TypeError with the right call for anything else."""
    if isinstance(given, ElmoEmbedder):
        return given
    model = shown_path(given, DEFAULT_MODEL)
    raise TypeError(f"{call} takes an ElmoEmbedder, found {given!r:.60}. Load it: ElmoEmbedder.load({model!r}).")


def list_paths(given: object) -> list[str]:
    """Return the path, or the paths, of the texts to index.

    Raises:
        TypeError: If it is anything else.
        ValueError: If the list is empty.
    """
    listed = [given] if isinstance(given, str | PathLike) else given
    paths: list[Any] = list(listed) if isinstance(listed, Iterable) and not isinstance(listed, bytes) else [given]
    if not paths:
        raise ValueError("build: texts is empty, expected the path of a file or a folder at least")
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise TypeError(f"build: texts holds {path!r:.60}, expected paths of files and folders, such as 'news.txt'")
    return [path if isinstance(path, str) else str(Path(path)) for path in paths]


def index_files(
    embedder: ElmoEmbedder, paths: list[str], output: Path, settings: IndexSettings, *, force: bool, reporter: Reporter
) -> None:
    """Write the index of files and folders; the errors are those of `build_index`.

    Args:
        embedder: The model.
        paths: Files, folders and globs.
        output: The folder to write.
        settings: What the index holds.
        force: Replace an existing index, and do not resume an unfinished one.
        reporter: Receives messages and progress.
    """
    with opened_inputs(paths, reporter) as sources:
        texts = texts_to_index(sources, TextConfig(), segmented=settings.segmented)
        report = build_index(embedder, texts, output, settings, force=force, reporter=reporter)
    if report.missing_words:
        reporter.warn(explain_missing(report.missing_words, "words"))
