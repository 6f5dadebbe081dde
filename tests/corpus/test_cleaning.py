"""One line at a time: wrongly decoded text and markup found, taken out, or left alone; kept or dropped."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import LineCleaner, looks_garbled, without_markup
from elmo_zh.corpus.counts import Tally
from elmo_zh.text.script import count_han, han_share

GARBLED = "中文，好。".encode().decode("latin-1")


@pytest.mark.parametrize(
    ("settings", "line", "cleaned", "dropped"),
    [
        ({}, "今<b>天</b>", "今天", None),
        ({"remove_markup": False}, "今<b>天</b>", "今<b>天</b>", None),
        ({}, "<p></p>", None, "lines of markup only"),
        ({}, "", "", None),
        ({}, "\u3000", "\u3000", None),
        ({}, GARBLED, GARBLED, None),
        ({"max_line_characters": 3}, "今天好", "今天好", None),
        ({"max_line_characters": 3}, "今天很好", None, "lines too long"),
        # As it was read.
        ({"max_line_characters": 3}, "<b>今", None, "lines too long"),
        ({"min_han_share": 0.5}, "今天ab", "今天ab", None),
        ({"min_han_share": 0.5}, "今天abc", None, "lines with too little Chinese"),
        ({"min_han_share": 0.5}, "“今！”——", "“今！”——", None),
        ({"min_han_share": 0.5}, "————", None, "lines with too little Chinese"),
        ({"min_han_share": 0.5}, " ", " ", None),
        # Of what is left without markup.
        ({"min_han_share": 0.5}, "<span>今</span>", "今", None),
        ({"min_han_share": 1.0}, "𠀀々", None, "lines with too little Chinese"),
    ],
)
def test_lines(settings: dict[str, object], line: str, cleaned: str | None, dropped: str | None) -> None:
    counts = Tally()
    assert LineCleaner.build(TextConfig(**settings)).clean(line, counts) == cleaned  # type: ignore[arg-type]
    assert list(counts.dropped) == ([dropped] if dropped else [])
    assert counts.lines - len(counts.dropped) == 0  # which is for the caller to say
    counts.keep(line)
    assert ("lines that look wrongly decoded" in counts.noticed) == (cleaned == GARBLED)


def test_han() -> None:
    assert count_han(["今天a", "", "㐀一鿿豈𠀀々、ア", "\ud800"]) == 7
    assert count_han(["二〇二六"]) == 4
    assert han_share("今天 ab_12。") == 2 / 6
    assert han_share("二〇二六") == 1
    assert han_share("。") == han_share("") == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # HTML
        ("今天<b>下雨</b>了", "今天下雨了"),
        ("苹果<br/>香蕉<BR>梨", "苹果 香蕉 梨"),
        ("<p class=\"x\" id='y' nowrap>段</p>", " 段 "),
        ("<a href=http://a.cn/b>链接</a>", "链接"),
        ("x<sub>2</sub>", "x2"),
        ("<!-- 注 -->好<!--再-->", "好"),
        ("<script>if (a<b) {}</script>好<style>p {}</style>", "好"),
        ("<em>", ""),
        # Entities, also written twice
        ("&nbsp;&nbsp好&#183;&#x4e2d;", "\xa0\xa0好·中"),
        ("&amp;nbsp;&amp;amp;amp;lt;", "\xa0<"),
        ("&lt;p&gt;段", " 段"),
        # Wikitext
        ("[[北京|京城]]和[[上海]]", "京城和上海"),
        ("[[File:a.jpg|thumb|[[山]]]]好[[分类:水]]", "好"),
        ("{{cite|x={{y}}}}{{另一}}好", "好"),
        ("<ref name=x>见{{书}}</ref>好<ref name='y'/>", "好"),
        ("'''粗'''和''斜''", "粗和斜"),
        ("=== 历史 ===", "历史"),
        ("[http://x.cn 网站][http://x.cn]", "网站"),
        ('{| class="wikitable"', ""),
        ("|-", ""),
        ("|}", ""),
        ("| --- | :-: |", ""),
        ("__NOTOC__好", "好"),
        # BBCode
        ("[b]粗[/b][url=http://x]链[/url][color=red]红", "粗链红"),
        ("[img]http://x/y.png[/img]好", "好"),
    ],
)
def test_taken_out(line: str, expected: str) -> None:
    assert without_markup(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "若a<b且c>d，则《书》",
        "a<b>c",
        "3 < 5 > 2",
        "if (x<i && j>0)",
        "vector<int>",
        "<S> <UNK> <好的>",
        "<p 或 q>",
        "<u>",
        "R&D; AT&T; a&b",
        "http://a.cn/?a=1&copy=2&lt=3",
        "[[1, 2], [3, 4]]",
        "[[1,2]]",
        "[[]]",
        r"\frac{{a}}{{b}} x^{{2}}",
        "{{x}}",
        "{{{1}}}",
        "{{未完",
        "未完}}",
        "y''+2y'=0, y''",
        "5''和6''",
        "a == b",
        "=====",
        "{|x| < 1}",
        "|-5| = 5",
        "| 甲 | 乙 |",
        "a[i] = b[s]",
        "[注] [1] [url]",
        "<!-- 未完",
        "——==——",
    ],
)
def test_left_alone(line: str) -> None:
    assert without_markup(line) == line


PIECES = st.sampled_from(
    ["<b>", "</b>", "<p>", "<br/>", "<ref>", "</ref>", "<!--", "-->", "&amp;", "amp;", "&lt;", "&gt;", "lt;",
     "#60;", "&", "[[", "]]", "|", "{{", "}}", "{{甲乙", "[", "]", "[b]", "[/b]", "''", "'''", "'", "==", "=",
     "__TOC__", "<", ">", " ", "甲", "a", "[http://a ", "[img]", "[/img]", "|-", "{|", "\n"]
)  # fmt: skip


@settings(deadline=None, max_examples=211)
@given(st.lists(PIECES, max_size=19).map("".join))
@example("&amp;amp;lt;b&gt;''[[''甲''|''乙'']]''")
def test_twice_is_once(line: str) -> None:
    once = without_markup(line)
    assert without_markup(once) == once
    assert len(once) <= len(line)


@pytest.mark.parametrize(
    "piece",
    ["<ref>", "<!--", "<b ", "<b a=", "<a href='", "&amp;", "&amp;#38;", "{{", "{{甲乙", "{{aa}}", "}}{{", "[[", "[[a|",
     "'''", "''a", "[img]", "[//a", "[url=", "=", "|-", "<b>", "<br" + " " * 53],
)  # fmt: skip
def test_hostile_lines_take_time_in_proportion(piece: str) -> None:
    """Were it quadratic, these would take minutes; a limit this wide fails on no slow machine."""
    line = (piece * 2**19)[: 2**19]
    start = time.process_time()
    assert len(without_markup(line)) <= len(line)
    assert time.process_time() - start < 10


TEXT = "今天，天气好。很好，去公园。"
# Of these bytes GB18030 can read all.
OF_GB18030 = "今天，天气好。很好，"


@pytest.mark.parametrize(
    "garbled",
    [
        TEXT.encode().decode("latin-1"),
        OF_GB18030.encode().decode("gb18030"),
        TEXT.encode("gb18030").decode("latin-1"),
        f"他说{'中文'.encode().decode('latin-1')}好",
        TEXT.encode().decode("cp1252", "ignore").replace("\ufffd", ""),
        "\xe2\u20ac\u0153好\xe2\u20ac\x9d",
        "锟斤拷锟斤拷",
    ],
)
def test_wrongly_decoded_text_is_found(garbled: str) -> None:
    assert looks_garbled(garbled)


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        "café”——好",
        "Beyoncé……",
        "naïve",
        "l’été «à la»",
        "25°～30°",
        "×××××××",
        "史蒂夫·乔布斯",
        "铜锛",
        "ａｂｃ",
        "",
    ],
)
def test_sound_text_is_not_suspected(line: str) -> None:
    assert not looks_garbled(line)
