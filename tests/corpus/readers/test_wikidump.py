"""MediaWiki dumps, and wikitext to prose."""

import pytest
from corpus.readers.reading import dropped_of, lines_from
from messages import message_of
from packed import DUMP_START, wiki_page

from elmo_zh.corpus.counts import Tally
from elmo_zh.corpus.readers.wikidump import num_unclosed, read_wikidump, wikitext_lines
from elmo_zh.errors import CorpusError

pytest.importorskip("wikitextparser")

PAGES = (
    wiki_page("雨", "'''雨'''是水。\n\n&lt;ref&gt;甲&lt;/ref&gt;下雨了。")
    + wiki_page("水", "#重定向 [[雨]]", extra='<redirect title="雨" />')
    + wiki_page("Template:A", "a", namespace=10)
    + wiki_page("a.css", "b", model="css")
    + wiki_page("风", "风大。")
)


def read_dump(text: str, tally: Tally | None = None) -> list[str]:
    return lines_from(read_wikidump, text, tally)


def test_articles_are_read_and_other_pages_named() -> None:
    tally = Tally()
    assert read_dump(f"{DUMP_START}{PAGES}</mediawiki>", tally) == ["雨是水。", "", "下雨了。", "风大。"]
    assert {reason: (found.count, found.examples) for reason, found in tally.passed_over.items()} == {
        "redirect pages": (1, ["水"]),
        "wiki pages outside the main namespace": (1, ["Template:A"]),
        "wiki pages that are not wikitext": (1, ["a.css"]),
    }


@pytest.mark.parametrize(
    ("text", "start"),
    [
        *(
            (
                f"<!DOCTYPE x [{entity}]>{DUMP_START}{wiki_page('甲', '&b;')}</mediawiki>",
                "a.txt: XML, but not a MediaWiki dump (<!DOCTYPE ...>). ",
            )
            for entity in ('<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">', '<!ENTITY b SYSTEM "file:///etc/passwd">')
        ),
        (f"{DUMP_START}{PAGES[:-9]}", "a.txt: damaged or truncated XML ("),
        (f"{DUMP_START}<page></mediawiki>", "a.txt: damaged or truncated XML ("),
        ("<rss><page/></rss>", "a.txt: XML, but not a MediaWiki dump. "),
        ("今天下雨。", "a.txt: damaged or truncated XML ("),
        ("", "a.txt: damaged or truncated XML ("),
        (DUMP_START + "<a>" * 100_000, "a.txt: damaged or truncated XML ("),
    ],
)
def test_files_that_are_no_dump_or_cut_off(text: str, start: str) -> None:
    assert message_of(CorpusError, lambda: read_dump(text)).startswith(start)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("'''数学'''是[[形式科学|科学]]，见[[历史]]。", "数学是科学，见历史。"),
        ("前<ref name=a>{{cite web|url=x}}</ref>后", "前后"),
        ("{{Infobox\n|name = 数学\n}}正文", "正文"),
        ("[[File:a.jpg|thumb|图的[[说明]]]]正文[[Category:数学|*]][[en:Mathematics]]", "正文"),
        ("[[:分类:数学]]和[http://a.b 网站]，[http://c.d]", "分类:数学和网站，"),
        ("== 历史 ==", " 历史 "),
        ("a &lt; b&nbsp;<nowiki>[[c]]</nowiki>", "a < b\xa0[[c]]"),
        ("算<math>x^2</math>术<!-- 注 -->。", "算术。"),
        ("使用-{zh-hans:软件;zh-hant:軟體}-和-{域}-，-{H|zh-cn:x}-", "使用软件和域，"),
        ("-{zh-tw:電腦; zh-hk:電腦}-", "電腦"),
        ("源于{{lang|grc|μάθημα}}（{{lang-en|maths}}），{{Link-en|甲|A}}", "源于μάθημα（maths），甲"),
        ("数学（{{拼音|shù}}）是", "数学是"),
        ("-{[[甲|乙]]}-和-{zh-cn:a&nbsp;b;zh-tw:c}-", "乙和a\xa0b"),
        ("__NOTOC__人__无目录__口{{formatnum:5678}}", "人口5678"),
        ("{{tsl|en|A|甲}}{{link-en|乙|B|丙}}{{nowrap|丁'''戊'''}}", "甲丙丁戊"),
        ("前<!-- 没有完 后", "前"),
        ("* 一\n* 二<br>三\n", " 一\n 二\n三"),
        ("{| class=x\n! 年\n|-\n| 1990\n|}\n后", "\n后"),
    ],
)
def test_prose(source: str, expected: str) -> None:
    tally = Tally()
    lines = list(wikitext_lines(source, tally))
    assert "\n".join(lines) == expected
    assert tally.characters == sum(dropped_of(tally).values())


def test_what_is_left_out_is_counted_by_its_kind() -> None:
    tally = Tally()
    list(wikitext_lines("一{{a}}二<ref>三</ref>[[文件:x]]-{zh-cn:四;zh-tw:肆}-", tally))
    assert dropped_of(tally) == {
        "wikitext: template": 5,
        "wikitext: ref": 12,
        "wikitext: file": 8,
        "wikitext: other Chinese variants": 18,
    }


@pytest.mark.parametrize(
    "unit", ["<b>", "<ref>", "{{a|", "{{a|[[b|", "[[a|", "[http://a ", "{|\n", '<b a="', "{{a|<!--", "}}{{a|"]
)
def test_a_page_of_markup_that_never_ends_is_left_out_before_it_takes_hours(unit: str) -> None:
    tally = Tally()
    source = unit * 30_000
    kept = "".join(wikitext_lines(source, tally))
    assert kept == ("{{a|" if "<!--" in unit else "")
    assert len(kept) + sum(dropped_of(tally).values()) == len(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{a|[[b]]}}[http://c d]<ref name=x>e</ref><ref name=y /><br>\n{|\n|-\n|}<!-- -->", 0),
        ("{{{{", 2),
        ("}}{{", 1),
        ("<li>a<li>b<td>c", 0),
        ("<b>a<B>b</b>", 1),
        ("{{a [[b [[c}}", 2),
        ("a < b > c, [1] [a]", 0),
        ("{{" * 43 + "}}" * 43, 0),
    ],
)
def test_what_is_never_closed_is_counted(source: str, expected: int) -> None:
    assert num_unclosed(source) == expected
