"""The five desk commands take text that is already segmented, and its tokens as they are."""

from pathlib import Path

import pytest
from contract.command_line import elmo_zh

# The segmenter would divide the title at the sign, and join 下 and 雨.
LINES = "你好！李焕英 在 上映\n昨天 下 雨 ， 今天 下 雨\n你好！李焕英 好看\n"


def test_tokens_are_those_of_the_text(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text(LINES, encoding="utf-8")
    found = elmo_zh("concordance", "你好！李焕英", text, "--segmented", "--json").result()
    assert [(line["line"], line["start"], line["end"]) for line in found["concordance"]] == [(0, 0, 6), (2, 0, 6)]
    rows = elmo_zh("frequencies", text, "--segmented", "--json").result()["rows"]
    counts = {row["name"]: row["count"] for row in rows}
    assert (counts["你好！李焕英"], counts["下"], counts["雨"]) == (2, 2, 2)
    near = elmo_zh("collocates", "下", text, "--segmented", "--min-count", 2, "--window", 0, 1, "--json").result()
    assert [row["word"] for row in near["rows"]] == ["雨"]
    keys = elmo_zh("keywords", text, "--segmented", "--where", "source ~ a", "--min-count", 1)
    assert "One of the two sets of lines" in keys.only_error()
    # Across tokens: 下雨 is a candidate, and would not be if it were a token.
    limits = ("--min-count", 2, "--min-pmi", 0, "--min-entropy", 0, "--json")
    new = {row["word"] for row in elmo_zh("words", text, "--segmented", *limits).result()["rows"]}
    assert "下雨" in new
    text.write_text(LINES + "下雨 了\n", encoding="utf-8")
    new = {row["word"] for row in elmo_zh("words", text, "--segmented", *limits).result()["rows"]}
    assert "下雨" not in new


@pytest.mark.parametrize("query", ["ＡＰＰ", "APP", "１００元", "e\u0301tude", "\u00e9tude", "👨\u200d👩", "*ＡＰ*"])
def test_a_query_is_prepared_as_the_text(query: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("他用ＡＰＰ买了苹果，价格１００元，e\u0301tude，👨\u200d👩。\n", encoding="utf-8")
    assert elmo_zh("concordance", query, path, "--set", "text.segmenter=character").status == 0
    path.write_text("ＡＰＰ 很 好\n", encoding="utf-8")
    assert elmo_zh("concordance", "ＡＰＰ", path, "--segmented").status == 0
