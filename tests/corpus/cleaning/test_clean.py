"""One line at a time: kept, changed or dropped."""

import pytest

from elmo_zh.config import TextConfig
from elmo_zh.corpus.cleaning import LineCleaner
from elmo_zh.corpus.counts import LineCounts
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
        ({"repair_mojibake": True}, GARBLED, "中文，好。", None),
        # Repaired first, so that markup in it is found.
        ({"repair_mojibake": True}, f"<b>{GARBLED}</b>", "中文，好。", None),
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
    counts = LineCounts()
    assert LineCleaner.build(TextConfig(**settings)).clean(line, counts) == cleaned  # type: ignore[arg-type]
    assert list(counts.dropped) == ([dropped] if dropped else [])
    assert counts.kept_lines == 0  # which is for the caller to say


def test_garbled_lines_are_noticed_where_they_stay_so() -> None:
    for settings, noticed in (({}, 1), ({"repair_mojibake": True}, 0)):
        counts = LineCounts()
        LineCleaner.build(TextConfig(**settings)).clean(GARBLED, counts)
        counts.keep(GARBLED, 0)
        found = counts.noticed.get("lines that look wrongly decoded")
        assert (found.lines if found else 0) == noticed


def test_han() -> None:
    assert count_han(["今天a", "", "㐀一鿿豈𠀀々、ア", "\ud800"]) == 7
    assert count_han(["二〇二六"]) == 4
    assert han_share("今天 ab_12。") == 2 / 6
    assert han_share("二〇二六") == 1
    assert han_share("。") == han_share("") == 0
