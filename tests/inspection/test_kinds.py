"""Kinds of characters and tokens."""

import pytest

from elmo_zh.inspection.segmented_text import KINDS, KindCounts, kind_of, kind_of_token


@pytest.mark.parametrize(
    ("characters", "kind"),
    [
        ("山〇㐀豈𠀀", "Han"),
        ("aZéＡ", "Latin"),
        ("09０٣", "digits"),
        ("，。！.-+$·", "punctuation"),
        ("あЖ한\u200b\ufffd"[:4], "other"),
    ],
)
def test_characters(characters: str, kind: str) -> None:
    assert {kind_of(character) for character in characters} == {kind}


@pytest.mark.parametrize(
    ("token", "kind"),
    [("卡拉OK", "Han"), ("3G", "Latin"), ("2021", "digits"), ("3.5", "digits"), ("……", "punctuation"), ("あ", "other")],
)
def test_tokens(token: str, kind: str) -> None:
    assert kind_of_token(token) == kind


def test_shares_by_hand_add_up_to_one() -> None:
    counts = KindCounts()
    counts.add("卡拉OK", 2)
    counts.add("。", 1)
    counts.add("12", 1)
    shares = counts.fractions()
    assert shares["tokens"] == {"Han": 0.5, "Latin": 0, "digits": 0.25, "punctuation": 0.25, "other": 0}
    assert shares["characters"] == pytest.approx(
        {"Han": 4 / 11, "Latin": 4 / 11, "digits": 2 / 11, "punctuation": 1 / 11, "other": 0}
    )
    assert all(sum(each.values()) == pytest.approx(1) for each in shares.values())
    assert KindCounts().fractions() == {what: dict.fromkeys(KINDS, 0.0) for what in ("tokens", "characters")}
