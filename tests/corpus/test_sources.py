"""Files, folders, standard input and addresses."""

import gzip
import io
import os
import sys
from itertools import chain
from pathlib import Path

import pytest
from corpus.readers.reading import read
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.corpus.read_source import read_source
from elmo_zh.corpus.sources import find_sources, gathered_sources
from elmo_zh.errors import CorpusError


def gathered_lines(folder: Path, *arguments: str) -> dict[str, list[str]]:
    found = {}
    with gathered_sources(arguments, folder / "run", folder / "fetched") as sources:
        for source in sources.sources:
            documents = read_source(source, TextConfig(), Tally(), PassedOver())
            found[source.name] = [line for document in documents for line in document]
    assert not (folder / "fetched").exists()
    return found


def test_standard_input_is_told_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for data in ("今天。\n".encode(), gzip.compress('{"text": "今天。"}\n'.encode("gb18030"))):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert gathered_lines(tmp_path, "-") == {"standard input": ["今天。"]}


def test_a_file_that_no_reader_takes_is_passed_over_in_a_folder_and_an_error_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "a.txt").write_text("苹果", encoding="utf-8")
    (folder / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    (folder / "feed.xml").write_text("<rss/>", encoding="utf-8")
    (folder / "noise").write_bytes(bytes(range(256)))
    passed_over = PassedOver()
    assert read(folder, passed_over=passed_over) == ["苹果"]
    assert sum(passed_over.counts.values()) == 3
    for name in ("package.json", "feed.xml", "noise"):
        assert message_of(CorpusError, lambda name=name: read(folder / name)).startswith(f"{folder / name}: ")


@pytest.mark.parametrize("size", [10, 2_000_003])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("今天。\n" * 100_003, encoding="utf-8")
    (source,) = find_sources([str(path)]).sources
    lines = chain.from_iterable(read_source(source, TextConfig(), Tally(), PassedOver()))
    assert next(lines) == "今天。"
    os.truncate(path, size)
    assert message_of(CorpusError, lambda: list(lines)) == (
        f"{path} changed while it was being read. Run the command again when no other program is writing to it."
    )
