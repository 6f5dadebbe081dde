"""Byte ranges of one file, read independently, are together what the whole file is."""

import bz2
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import message_of
from packed import DUMP_END, DUMP_START, wiki_page

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.read_source import read_documents, read_range, split_source
from elmo_zh.corpus.sources import Source
from elmo_zh.errors import CorpusError

CONFIG = TextConfig()


def source_of(path: Path) -> Source:
    return Source(name=str(path), path=path, is_named=True)


def read_whole(path: Path, config: TextConfig) -> tuple[list[list[str]], Tally]:
    tally = Tally()
    return [list(document) for document in read_documents(source_of(path), config, tally)], tally


def read_parts(path: Path, config: TextConfig, range_bytes: int) -> tuple[list[list[list[str]]], Tally]:
    """Return the documents of each part, and the counts of all of them."""
    tally, documents = Tally(), []
    for part in split_source(source_of(path), config, range_bytes):
        one = Tally()
        documents.append([list(found) for found in read_range(source_of(path), part, config, one)])
        tally.add(one)
    return documents, tally


def require_the_same(path: Path, config: TextConfig, range_bytes: int, least_parts: int) -> None:
    whole, whole_tally = read_whole(path, config)
    parts, tally = read_parts(path, config, range_bytes)
    assert len(parts) >= least_parts
    assert [line for part in parts for document in part for line in document] == [
        line for document in whole for line in document
    ]
    assert tally.described() == whole_tally.described()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "cp950"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_plain_text(tmp_path: Path, encoding: str, line_end: str) -> None:
    path = tmp_path / "a.txt"
    text = line_end.join(f"這是第{number}行，天氣很好。" * (number % 7) for number in range(500))
    path.write_bytes(text.encode(encoding))
    for range_bytes in (1000, 1001, 4096):
        require_the_same(path, CONFIG, range_bytes, 5)
    require_the_same(path, replace(CONFIG, document="line"), 3000, 5)


@settings(deadline=None, max_examples=53)
@given(st.lists(st.text("天a\r \ufeff", max_size=9), max_size=23), st.integers(1, 40))
def test_any_lines_cut_anywhere(tmp_path_factory: pytest.TempPathFactory, lines: list[str], range_bytes: int) -> None:
    path = tmp_path_factory.mktemp("ranges") / "a.txt"
    path.write_bytes("\n".join(["开头", *lines]).encode())
    parts, _ = read_parts(path, CONFIG, range_bytes)
    if parts:
        require_the_same(path, CONFIG, range_bytes, 2)
        assert all(line for line in (document for part in parts for document in part))


@pytest.mark.parametrize("field", ["", "title,data.text"])
def test_json_lines(tmp_path: Path, field: str) -> None:
    path = tmp_path / "a.jsonl"
    records = [{"title": f"题{n}", "data": {"text": f"第{n}条\n两行"}} if n % 9 else {"id": n} for n in range(300)]
    path.write_text("".join(json.dumps(r, ensure_ascii=n % 2 == 0) + "\n" for n, r in enumerate(records)) + "{broken\n")
    require_the_same(path, replace(CONFIG, field=field), 1500, 5)


def page(number: int) -> str:
    text = f"'''条目{number}'''是第{number}个条目。\n\n它有两段，&lt;page&gt;不是新的一页。"
    return wiki_page(f"条目{number}", text, namespace=1 if number % 10 == 3 else 0)


def test_dumps_in_many_streams_and_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("lxml")
    pytest.importorskip("wikitextparser")
    blocks = ["".join(page(number) for number in range(start, start + 10)) for start in range(0, 200, 10)]
    texts = [DUMP_START, *blocks, DUMP_END]
    packed, plain = tmp_path / "wiki.xml.bz2", tmp_path / "wiki.xml"
    packed.write_bytes(b"".join(bz2.compress(text.encode()) for text in texts))
    plain.write_text("".join(texts), encoding="utf-8")
    require_the_same(packed, CONFIG, packed.stat().st_size // 6, 5)
    require_the_same(plain, CONFIG, plain.stat().st_size // 6, 5)
    parts, _ = read_parts(packed, CONFIG, packed.stat().st_size // 6)
    whole, _ = read_whole(plain, CONFIG)
    assert [document for part in parts for document in part] == whole
    assert len(whole) == 180


@pytest.mark.parametrize(
    ("name", "content", "changes"),
    [
        ("small.txt", "短".encode() * 10, {}),
        ("strict.txt", "行\n".encode() * 1000, {"bad_bytes": "strict"}),
        ("paragraphs.txt", "行\n\n".encode() * 1000, {"document": "paragraph"}),
        ("one-line.txt", "字".encode() * 1000, {}),
        ("utf-16.txt", ("行\n" * 1000).encode("utf-16"), {}),
        ("table.csv", b"text\n" + "行\n".encode() * 1000, {}),
        ("packed.txt.bz2", bz2.compress("行\n".encode() * 10) * 100, {}),
        ("noise.txt", bytes(range(128, 256)) * 100, {}),
    ],
)
def test_what_is_read_as_a_whole(tmp_path: Path, name: str, content: bytes, changes: dict[str, str]) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert split_source(source_of(path), replace(CONFIG, **changes), 500) == []


def test_a_damaged_stream_within_a_part_is_not_its_end(tmp_path: Path) -> None:
    """A bz2 reader of Python's takes it for the end: the pages behind it would be gone, and the XML sound."""
    pytest.importorskip("wikitextparser")
    pages = [wiki_page(number, f"第{number}页。") for number in range(50)]
    streams = [bz2.compress(text.encode()) for text in (DUMP_START, *pages, DUMP_END)]
    streams[20] = b"?" + streams[20][1:]
    path = tmp_path / "wiki.xml.bz2"
    path.write_bytes(b"".join(streams))
    told = message_of(CorpusError, lambda: read_parts(path, CONFIG, 2000))
    assert told.startswith(f"{path} is damaged (byte ")
