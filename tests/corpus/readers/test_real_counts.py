"""Files of other people and programs: the text that comes out, against a few lines of other code for each format."""

import bz2
import csv
import gzip
import json
import lzma
import re
import zipfile
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from corpus.readers.reading import TEST_DATA, needs_data, read, zstd

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.corpus.tally import PassedOver, Tally
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.segment_corpus import segment_corpus

pytestmark = [pytest.mark.interop, needs_data]

DATA = Path(TEST_DATA or ".") / "data"
FORMATS, RAW = DATA / "formats", DATA / "raw"
DUMP = FORMATS / "wikidump" / "zhwiki-sample-pages-articles-multistream.xml.bz2"


def lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def first_column(path: Path, encoding: str) -> list[str]:
    with path.open(encoding=encoding, newline="") as file:
        return [row[0] for row in csv.reader(file, "excel-tab", quoting=csv.QUOTE_NONE) if row[0]]


def records(data: bytes) -> list[str]:
    return [line for record in data.splitlines() for line in lines(json.loads(record)["text"])]


def members(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [
            line for name in archive.namelist() if archive.read(name) for line in lines(archive.read(name).decode())
        ]


def plain(encoding: str, data: Callable[[Path], bytes] = Path.read_bytes) -> Callable[[Path], list[str]]:
    return lambda path: lines(data(path).decode(encoding))


FILES: dict[str, Callable[[Path], list[str]]] = {
    "compressed/tech_sample.txt.xz": plain("utf-8", lambda path: lzma.decompress(path.read_bytes())),
    "compressed/tech_sample.txt.zst": plain("utf-8", lambda path: bytes(zstd.decompress(path.read_bytes()))),
    "encodings/car_reviews_gb18030.tsv": lambda path: first_column(path, "gb18030"),
    "encodings/car_reviews_utf8_bom.tsv": lambda path: first_column(path, "utf-8-sig"),
    "encodings/law_tw_big5.txt": plain("cp950"),
    "encodings/novels_gb18030.txt.gz": plain("gb18030", lambda path: gzip.decompress(path.read_bytes())),
    "encodings/novels_utf16le_bom_crlf.txt": plain("utf-16"),
    "encodings/xixiangji_utf8_bom.txt": plain("utf-8-sig"),
    "json/shijing.json": lambda path: [
        line for record in json.loads(path.read_bytes()) for text in record["content"] for line in lines(text)
    ],
    "jsonl/news.jsonl.gz": lambda path: records(gzip.decompress(path.read_bytes())),
    "traditional/zuozhuan_trad.txt.bz2": plain("utf-8", lambda path: bz2.decompress(path.read_bytes())),
    "wikiextractor_json/AA/wiki_00": lambda path: records(path.read_bytes()),
    "zip/cft.zip": members,
}


@pytest.mark.parametrize("name", FILES)
def test_all_of_the_text_and_nothing_else(name: str) -> None:
    assert read(FORMATS / name) == FILES[name](FORMATS / name)


@pytest.mark.parametrize("path", sorted(RAW.glob("*.xz")), ids=lambda path: path.name)
def test_raw_text(path: Path) -> None:
    assert read(path) == lines(lzma.decompress(path.read_bytes()).decode())


def html_text(path: Path) -> str:
    source = re.sub(r"(?is)<(script|style|title|nav|footer|aside)\b.*?</\1>|<!--.*?-->", "", path.read_text("utf-8"))
    return unescape(re.sub(r"<[^>]*>", "", source))


@pytest.mark.parametrize("path", sorted((FORMATS / "html").glob("*.html")), ids=lambda path: path.name)
def test_pages_of_html_but_for_white_space_and_what_is_dropped(path: Path) -> None:
    tally = Tally()
    kept = "".join(read(path, tally))
    expected = "".join(html_text(path).split())
    in_tables = tally.dropped["html: table cells without a clause"]
    assert len("".join(kept.split())) <= len(expected) <= len("".join(kept.split())) + in_tables
    if not in_tables:
        assert "".join(kept.split()) == expected


@pytest.mark.parametrize("path", sorted((FORMATS / "markdown").glob("*.md")), ids=lambda path: path.name)
def test_chinese_of_markdown_outside_code_and_tables(path: Path) -> None:
    """Every Chinese character that stands outside of fences, tables, pictures and HTML comes out, in order."""
    tally = Tally()
    kept = re.sub(r"[^\u4e00-\u9fff]", "", "".join(read(path, tally)))
    source = path.read_text("utf-8")
    source = re.sub(r"\A---\n.*?\n---\n", "", source, flags=re.DOTALL)
    source = re.sub(r"(?ms)^ *(```|~~~).*?^ *\1 *$", "", source)
    source = re.sub(r"(?m)^ *\|.*$|^ *<.*$|!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)]*\)|</?[a-zA-Z][^<>\n]*>", "", source)
    assert kept == re.sub(r"[^\u4e00-\u9fff]", "", source)


def articles() -> list[str]:
    pages = re.findall(r"<page>.*?</page>", bz2.decompress(DUMP.read_bytes()).decode(), re.DOTALL)
    own = [page for page in pages if "<ns>0</ns>" in page and "<redirect " not in page]
    return [unescape(re.sub(r"(?s).*<text[^>]*>(.*)</text>.*", r"\1", page)) for page in own]


def test_paragraphs_of_the_dump_without_markup_come_out_as_they_are() -> None:
    tally, passed_over = Tally(), PassedOver()
    given = read(DUMP, tally, passed_over)
    assert tally.documents == len(articles()) == 67
    expected = [
        line
        for article in articles()
        # What spans lines: templates, tables, galleries, comments.
        for line in re.sub(r"(?s)\{\{.*?\}\}|\{\|.*?\|\}|<(gallery|ref)\b.*?</\1>|<!--.*?-->", "", article).split("\n")
        if re.search(r"[\u4e00-\u9fff]", line) and not re.search(r"[\[\]{}<>|&=*#:;_]|''|[（(][\s，、；,;]*[）)]", line)
    ]
    assert len(expected) > 1000
    waiting = iter(given)
    assert [line for line in expected if line not in waiting] == []


def test_pages_of_the_dump_that_are_no_articles_are_named_and_no_markup_is_left(tmp_path: Path) -> None:
    config = TextConfig(segmenter="character", num_workers=1)
    done = segment_corpus(find_sources([str(DUMP)]), tmp_path / "segmented", config, None, SilentReporter())
    passed_over: dict[str, Any] = done.passed_over.described()
    assert passed_over["redirect pages"]["names"] == ["數學"]
    assert passed_over["wiki pages outside the main namespace"]["count"] == 2
    for path in (tmp_path / "segmented").glob("*.txt"):
        text = path.read_text(encoding="utf-8").replace(" ", "")
        assert not [sign for sign in ("{{", "}}", "[[", "]]", "'''", "<ref", "-{", "{|", "</") if sign in text]
