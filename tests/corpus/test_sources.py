"""Finding files, standard input, and reading lines from whatever they are packed in."""

import gzip
import io
import os
import sys
from pathlib import Path

import pytest
from corpus.readers.reading import PACKERS, read
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.read_source import read_lines
from elmo_zh.corpus.sources import find_sources, gathered_sources
from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.errors import CorpusError

FILES = {"": bytes, **PACKERS}
LINES = ["今天天气很好。", "", "第三行\u3000有\u2028各\x85种\x0b空\x0c白\x1c", "苹果"]


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def paths(arguments: list[str]) -> list[Path]:
    return [source.path for source in find_sources(arguments).sources]


def names(folder: Path, arguments: list[str]) -> list[str]:
    return [str(path.relative_to(folder)) for path in paths(arguments)]


def test_only_the_mark_at_the_start_is_dropped(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "\ufeff\ufeff苹\n\ufeff果\n".encode())
    assert list(iter_lines(path)) == ["\ufeff苹", "\ufeff果"]
    assert list(iter_lines(path, drop_mark=False)) == ["\ufeff\ufeff苹", "\ufeff果"]


@settings(deadline=None, max_examples=101)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=7), min_size=1, max_size=5))
def test_any_lines_come_back(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    content = b"\xef\xbb\xbf" + "".join(f"{line}\n" for line in lines).encode("utf-8")
    path = written(tmp_path_factory.mktemp("lines") / "a", content)
    assert list(iter_lines(path)) == lines


@pytest.mark.parametrize(
    ("content", "line", "byte", "value"),
    [
        (b"\xff", 1, 0, "ff"),
        ("苹果\n好".encode() + b"\xc0\xcc\n", 2, 10, "c0"),
        (b"\xef\xbb\xbf" + "苹果".encode() + b"\xb9\n", 1, 9, "b9"),
        (b"\xef\xbb\xbfab\r\n\r\nc\xed\xa0\x80", 3, 10, "ed"),
        ("苹果".encode()[:-1], 1, 3, "e6"),
        ("是".encode("gb18030"), 1, 0, "ca"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_bytes_that_are_not_utf8(tmp_path: Path, suffix: str, content: bytes, line: int, byte: int, value: str) -> None:
    path = written(tmp_path / f"a.txt{suffix}", FILES[suffix](content))
    told = message_of(CorpusError, lambda: list(iter_lines(path)))
    assert told.startswith(f"{path}: line {line}, byte {byte} (0x{value}) is not UTF-8. Convert it first, for ")
    assert told.endswith(" iconv -f GB18030 -t UTF-8 OLD > NEW")


def test_files_of_a_folder(tmp_path: Path) -> None:
    text = ["a", "b.txt", "c.TXT", "d.jsonl", "deep/er/e.txt", *(f"f.txt{suffix}" for suffix in PACKERS), "g.gz"]
    other = ["h.png", "i.py.gz", "deep/j.pdf"]
    for name in (*text, *other, "b.txt.tsv", "b.txt.parquet", ".hidden.txt", "deep/.git/config", ".cache/k.txt"):
        written(tmp_path / name, b"x\n")
    found = find_sources([str(tmp_path)])
    assert [source.path for source in found.sources] == sorted(tmp_path / name for name in text)
    assert found.passed_over == tuple(sorted(tmp_path / name for name in other))
    assert found.outputs == (tmp_path / "b.txt.parquet", tmp_path / "b.txt.tsv")
    assert found.total_bytes() == 2 * len(text)


def test_the_run_inside_a_corpus_is_left_out(tmp_path: Path) -> None:
    for name in ("a.txt", "run/segmented/b.txt", "other/c.txt"):
        written(tmp_path / name, b"x")
    for argument in (".", "*"):
        found = find_sources([str(tmp_path / argument)], tmp_path / "run")
        assert [source.path for source in found.sources] == [tmp_path / "a.txt", tmp_path / "other" / "c.txt"]
    told = message_of(CorpusError, lambda: find_sources([str(tmp_path / "run" / "segmented")], tmp_path / "run"))
    assert told.startswith(f"{tmp_path / 'run' / 'segmented'} is inside ")


def test_arguments_in_any_order_each_file_once(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c/d.txt", "c/e.json"):
        written(tmp_path / name, b"x")
    arguments = [str(tmp_path / name) for name in ("c", "b.txt", "*.txt", "c/e.json", "**/d.txt")]
    expected = ["a.txt", "b.txt", "c/d.txt", "c/e.json"]
    assert names(tmp_path, arguments) == names(tmp_path, arguments[::-1]) == expected
    assert find_sources(arguments).passed_over == ()


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.txt", b"a")
    written(tmp_path / "b" / "b.txt", b"b")
    real = os.scandir

    def scandir(path: str) -> object:
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError, match=r"/b'$"):
        find_sources([str(tmp_path)])


def gathered_lines(folder: Path, *arguments: str) -> dict[str, list[str]]:
    found = {}
    with gathered_sources(arguments, folder / "run", folder / "fetched") as sources:
        for source in sources.sources:
            found[source.name] = list(read_lines(source, TextConfig(), Tally()))
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
    tally = Tally()
    assert read(folder, tally) == ["苹果"]
    assert sum(found.count for found in tally.passed_over.values()) == 3
    for name in ("package.json", "feed.xml", "noise"):
        assert message_of(CorpusError, lambda name=name: read(folder / name)).startswith(f"{folder / name}: ")


@pytest.mark.parametrize("size", [10, 2_000_003])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("今天。\n" * 100_003, encoding="utf-8")
    (source,) = find_sources([str(path)]).sources
    lines = read_lines(source, TextConfig(), Tally())
    assert next(lines) == "今天。"
    os.truncate(path, size)
    assert message_of(CorpusError, lambda: list(lines)) == (
        f"{path} changed while it was being read. Run the command again when no other program is writing to it."
    )
