"""The tokens of a text on disk, before the first vector."""

import json
import zipfile
from pathlib import Path

import pytest
from contract.dumps import write_lines
from messages import message_of

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import InputText, input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.embed import text_tokens
from elmo_zh.embed.text_tokens import TextTokens, Tokeniser
from elmo_zh.errors import CorpusError
from elmo_zh.run.job import Work
from elmo_zh.run.reporter import SilentReporter


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "out.parts", SilentReporter())


def as_text(path: Path) -> InputText:
    [source] = find_sources([str(path)]).sources
    return input_text(source, TextConfig())


def write(embedder: ElmoEmbedder, work: Work, path: Path, **parts: int) -> TextTokens:
    return Tokeniser(embedder=embedder, segmented=True, split=False, **parts).write(as_text(path), work)


def test_parts_end_at_lines_or_tokens(embedder: ElmoEmbedder, work: Work, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "file.txt", ["一 二 三"] * 3 + ["", "四", "", "五"])
    tokens = write(embedder, work, path, part_lines=3, part_tokens=5)
    assert [(block.first_line, block.num_lines) for block in tokens.blocks()] == [(0, 2), (2, 3), (5, 2)]


def test_rows_know_their_sentence_and_the_columns_of_their_record(
    embedder: ElmoEmbedder, work: Work, tmp_path: Path
) -> None:
    """Also the second time, when all is on disk."""
    with zipfile.ZipFile(tmp_path / "texts.zip", "w") as archive:
        archive.writestr("a.csv", "text,year\n今天很好。 明天下雨。,2020\n我来了。,2021\n")
        archive.writestr("b.txt", "好。\n")
    places = []
    for _ in range(2):
        text = as_text(tmp_path / "texts.zip")
        tokeniser = Tokeniser(embedder=embedder, segmented=False, split=True)
        tokens = tokeniser.write(text, work)
        places.append([text.place(line) for line in (1, 2)])
    [block] = tokens.blocks()
    assert block.starts is not None
    assert block.source_lines is not None
    assert [row.decode() for row in block.texts] == ["今天很好。", " 明天下雨。", "我来了。", "好。"]
    assert (block.source_lines.tolist(), block.starts.tolist()) == ([0, 0, 1, 2], [0, 5, 0, 0])
    assert [json.loads(columns) for columns in block.columns] == [{"year": "2020"}] * 2 + [{"year": "2021"}, {}]
    name = str(tmp_path / "texts.zip")
    assert places == [[(f"{name}/a.csv", 1), (f"{name}/b.txt", 0)]] * 2


def test_a_line_that_would_fill_the_memory_is_told_what_to_do(
    embedder: ElmoEmbedder, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tokens, "_MOST_LINE_BYTES", 1000)
    path = write_lines(tmp_path / "file.txt", ["好 " * 90])
    told = message_of(CorpusError, lambda: write(embedder, work, path))
    assert told.endswith(" Put each sentence on a line of its own.")


def test_a_text_that_changes_after_its_digest_is_refused(embedder: ElmoEmbedder, work: Work, tmp_path: Path) -> None:
    text = as_text(write_lines(tmp_path / "file.txt", ["好"]))
    text.described()
    write_lines(tmp_path / "file.txt", ["好", "好"])
    told = message_of(CorpusError, lambda: Tokeniser(embedder=embedder, segmented=True, split=False).write(text, work))
    assert "changed while it was being read" in told
