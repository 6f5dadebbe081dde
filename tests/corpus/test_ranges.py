"""Byte ranges of one dump, read independently, are together what the whole dump is."""

import bz2
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from messages import message_of
from packed import DUMP_END, DUMP_START, wiki_page

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.read_source import read_lines, read_range, split_source
from elmo_zh.corpus.sources import Source
from elmo_zh.errors import CorpusError

CONFIG = TextConfig()


def source_of(path: Path) -> Source:
    return Source(name=str(path), path=path, is_named=True)


def read_whole(path: Path) -> tuple[list[str], Tally]:
    tally = Tally()
    return list(read_lines(source_of(path), CONFIG, tally)), tally


def read_parts(path: Path, range_bytes: int) -> tuple[list[list[str]], Tally]:
    """Return the lines of each part, and the counts of all of them."""
    tally, lines = Tally(), []
    for part in split_source(source_of(path), CONFIG, range_bytes):
        one = Tally()
        lines.append(list(read_range(source_of(path), part, CONFIG, one)))
        tally.add(one)
    return lines, tally


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
    lines, whole = read_whole(plain)
    assert len(lines) == 3 * 180
    for path in (packed, plain):
        parts, tally = read_parts(path, path.stat().st_size // 6)
        assert len(parts) >= 5
        assert list(chain.from_iterable(parts)) == lines
        assert tally.described() == whole.described() == read_whole(path)[1].described()


@pytest.mark.parametrize(
    ("name", "content", "changes"),
    [
        ("small.xml", DUMP_START.encode()[:400], {}),
        ("strict.xml", DUMP_START.encode() + b"<page>" * 1000, {"bad_bytes": "strict"}),
        ("text.txt", "行<page>\n".encode() * 1000, {}),
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
    told = message_of(CorpusError, lambda: read_parts(path, 2000))
    assert told.startswith(f"{path} is damaged (byte ")
