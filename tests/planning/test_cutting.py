"""Pieces that readers can read."""

import io
import json
from pathlib import Path

import pytest

from elmo_zh.corpus.sources import Source
from elmo_zh.planning.cutting import PIECE_BYTES, LineCutter, PageCutter, choose_cutter, closed_json
from elmo_zh.planning.portions import Portion


def portion(name: str) -> Portion:
    source = Source(name=name, path=Path(name), file_name=name, is_named=True)
    return Portion(source=source, name=name, file_name=name, packed_bytes=10**6, num_bytes=10**6)


def test_lines_are_whole_and_the_header_is_repeated() -> None:
    rows = b"".join(b"%d,text\n" % number for number in range(10_000))
    stream = io.BytesIO(b"id,text\n" + rows)
    stream.seek(100)
    cut = LineCutter(b"id,text\n").cut(stream, is_start=False)
    header, *found = cut.data.splitlines()
    assert header == b"id,text"
    assert found[0] == b"13,text"
    assert all(row in rows.splitlines() for row in found)
    assert PIECE_BYTES <= cut.num_bytes < PIECE_BYTES + 10
    assert cut.num_read == stream.tell() - 100


def test_the_start_of_a_table_has_its_header_once() -> None:
    cut = LineCutter(b"id,text\n").cut(io.BytesIO(b"id,text\n1,a\n"), is_start=True)
    assert cut.data == b"id,text\n1,a\n"


def test_pages_are_whole_and_make_a_dump() -> None:
    pages = b"".join(b"<page><title>%d</title></page>\n" % number for number in range(3000))
    stream = io.BytesIO(b"<mediawiki><siteinfo/>" + pages + b"</mediawiki>")
    stream.seek(1000)
    cut = PageCutter(b"<mediawiki><siteinfo/>").cut(stream, is_start=False)
    assert cut.data.startswith(b"<mediawiki><siteinfo/><page><title>")
    assert cut.data.endswith(b"</page></mediawiki>")
    assert cut.data.count(b"<page>") == cut.data.count(b"</page>") > 100
    assert cut.num_bytes == len(cut.data) - len(b"<mediawiki><siteinfo/></mediawiki>")


def test_nothing_is_left_at_the_end() -> None:
    assert LineCutter().cut(io.BytesIO(b"half a line"), is_start=False).num_bytes == 0
    assert PageCutter(b"").cut(io.BytesIO(b"</page></mediawiki>"), is_start=False).data == b""


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.txt", "山水。\n".encode(), LineCutter()),
        ("a.txt", "山水。\n".encode("gb18030"), LineCutter()),
        ("a.txt", "山水。\n".encode("utf-16"), None),
        ("a.csv", b"id,text\n1,a\n", LineCutter(b"id,text\n")),
        ("a.csv", b'id,text\n1,"a\nb"\n', None),
        ("a.tsv", b'id\ttext\n1\t"a\n', LineCutter(b"id\ttext\n")),
        ("a.jsonl", b'{"a": 1}\n', LineCutter()),
        ("a.json", b'{"a": 1}\n{"a": 2}\n', LineCutter()),
        ("a.json", b'[{"a": 1}, {"a": 2}]', None),
        ("a", b'[{"a": 1}, {"a": 2}]', None),
        ("a.html", b"<p>a", None),
        ("a.md", b"# a", None),
        ("a.xml", b"<mediawiki><siteinfo/><page>", PageCutter(b"<mediawiki><siteinfo/>")),
        ("a.xml", b"<rss><page>", None),
    ],
)
def test_what_can_be_cut_where(name: str, head: bytes, expected: LineCutter | PageCutter | None) -> None:
    assert choose_cutter(portion(name), head) == expected


def test_json_is_closed_wherever_it_was_cut() -> None:
    records = [{"text": ["山, ]水", 'a"b\\'], "n": {"m": [1, 2]}} for _ in range(5)]
    whole = json.dumps({"data": records}, ensure_ascii=False).encode()
    for end in range(60, len(whole)):
        found = json.loads(closed_json(whole[:end]))["data"]
        for one in found[:-1]:
            assert one == records[0]
    assert closed_json(b'{"text": "no arr') == b'{"text": "no arr'
