"""Files of other people and programs, in the formats and encodings that they come in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from corpus.readers.reading import TEST_DATA, needs_data

from elmo_zh.config import TextConfig
from elmo_zh.corpus.sources import find_sources
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.segmenting.segment_corpus import SegmentedCorpus, segment_corpus

pytestmark = [pytest.mark.interop, needs_data]

FORMATS = Path(TEST_DATA or ".") / "data" / "formats"
CHARACTERS = TextConfig(segmenter="character", num_workers=1)
MULTISTREAM = "wikidump/zhwiki-sample-pages-articles-multistream.xml.bz2"

# Format, encoding, documents and lines.
FILES: Mapping[str, tuple[str, str, int, int]] = {
    "compressed/tech_sample.txt.xz": ("text", "utf-8", 1, 1000),
    "compressed/tech_sample.txt.zst": ("text", "utf-8", 1, 3000),
    "encodings/car_reviews_gb18030.tsv": ("tsv", "gb18030", 4499, 4499),
    "encodings/car_reviews_utf8_bom.tsv": ("tsv", "utf-8", 967, 966),
    "encodings/law_tw_big5.txt": ("text", "cp950", 1, 1500),
    "encodings/novels_gb18030.txt.gz": ("text", "gb18030", 1, 400),
    "encodings/novels_utf16le_bom_crlf.txt": ("text", "utf-16-le", 1, 400),
    "encodings/xixiangji_utf8_bom.txt": ("text", "utf-8", 1, 31),
    "html/红楼梦_3.html": ("html", "utf-8", 1, 18),
    "json/shijing.json": ("json", "utf-8", 305, 1319),
    "jsonl/news.jsonl.gz": ("jsonl", "utf-8", 2000, 2000),
    "markdown/tcp-connection-and-disconnection.md": ("markdown", "utf-8", 1, 120),
    "traditional/zuozhuan_trad.txt.bz2": ("text", "utf-8", 1, 5706),
    MULTISTREAM: ("wikidump", "utf-8", 67, 4928),
    "wikiextractor_json/AA/wiki_00": ("jsonl", "utf-8", 64, 4721),
    "zip/cft.zip": ("text", "utf-8", 2, 44189),
}


def segmented(folder: Path, *paths: Path) -> SegmentedCorpus:
    sources = find_sources([str(path) for path in paths])
    return segment_corpus(sources, folder / "segmented", CHARACTERS, None, SilentReporter())


@pytest.mark.parametrize("name", FILES)
def test_each_file(tmp_path: Path, name: str) -> None:
    done = segmented(tmp_path, FORMATS / name)
    (tally,) = done.tallies
    ((kind, encoding, _),) = tally.forms
    assert (kind, encoding, tally.documents, done.counts.lines) == FILES[name]
    assert tally.characters == tally.kept_characters + sum(tally.dropped.values())
    assert not tally.dropped_items["bytes that do not decode"]
    written = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "segmented").glob("*.txt"))
    assert "\ufffd" not in written
    assert "\ufdd0" not in written


def test_pages_of_the_dump_that_are_no_articles_are_named(tmp_path: Path) -> None:
    passed_over: dict[str, Any] = segmented(tmp_path, FORMATS / MULTISTREAM).passed_over.described()
    assert passed_over["redirects"]["names"] == ["數學"]
    assert passed_over["wiki pages of other namespaces"]["count"] == 2


def test_no_markup_is_left_of_the_dump(tmp_path: Path) -> None:
    segmented(tmp_path, FORMATS / MULTISTREAM)
    for path in (tmp_path / "segmented").glob("*.txt"):
        text = path.read_text(encoding="utf-8").replace(" ", "")
        assert not [sign for sign in ("{{", "}}", "[[", "]]", "'''", "<ref", "-{", "{|", "</") if sign in text]
