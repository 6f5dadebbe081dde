"""MediaWiki dumps."""

import pytest
from corpus.readers.reading import text_of
from messages import message_of
from packed import DUMP_START, wiki_page

from elmo_zh.config import TextConfig
from elmo_zh.corpus.counts import PassedOver, Tally
from elmo_zh.corpus.readers.wikidump import read_wikidump
from elmo_zh.errors import CorpusError

pytest.importorskip("wikitextparser")

PAGES = (
    wiki_page("雨", "'''雨'''是水。\n\n&lt;ref&gt;甲&lt;/ref&gt;下雨了。")
    + wiki_page("水", "#重定向 [[雨]]", extra='<redirect title="雨" />')
    + wiki_page("Template:A", "a", namespace=10)
    + wiki_page("a.css", "b", model="css")
    + wiki_page("风", "风大。")
)


def documents(text: str, passed_over: PassedOver | None = None) -> list[list[str]]:
    passed_over = passed_over if passed_over is not None else PassedOver()
    return [list(document) for document in read_wikidump(text_of(text), TextConfig(), Tally(), passed_over)]


def test_articles_are_read_and_other_pages_named() -> None:
    passed_over = PassedOver()
    assert documents(f"{DUMP_START}{PAGES}</mediawiki>", passed_over) == [["雨是水。", "", "下雨了。"], ["风大。"]]
    assert passed_over.described() == {
        "redirect pages": {"count": 1, "names": ["水"]},
        "wiki pages outside the main namespace": {"count": 1, "names": ["Template:A"]},
        "wiki pages that are not wikitext": {"count": 1, "names": ["a.css"]},
    }


@pytest.mark.parametrize(
    "entities", ['<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">', '<!ENTITY b SYSTEM "file:///etc/passwd">']
)
def test_entities_are_refused(entities: str) -> None:
    told = message_of(
        CorpusError, lambda: documents(f"<!DOCTYPE x [{entities}]>{DUMP_START}{wiki_page('甲', '&b;')}</mediawiki>")
    )
    assert told == "a.txt contains <!DOCTYPE ...>, which MediaWiki dumps do not have. Give another file."


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (f"{DUMP_START}{PAGES[:-9]}", "a.txt: damaged or truncated XML ("),
        (f"{DUMP_START}<page></mediawiki>", "a.txt: damaged or truncated XML ("),
        ("<rss><page/></rss>", "a.txt: XML, but not a MediaWiki dump. "),
        ("今天下雨。", "a.txt: damaged or truncated XML ("),
        ("", "a.txt: damaged or truncated XML ("),
        (DUMP_START + "<a>" * 100_000, "a.txt: damaged or truncated XML ("),
    ],
)
def test_files_that_are_no_dump_or_cut_off(text: str, start: str) -> None:
    assert message_of(CorpusError, lambda: documents(text)).startswith(start)
