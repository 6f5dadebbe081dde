"""Pieces of texts that no sentence splitter can divide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.text.sentences import pieces, split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("一二三", ["一二三"]),
        ("一二。三四五六", ["一二。", "三四五六"]),
        ("一二三四五六七", ["一二三四五", "六七"]),
        ("ab cd ef", ["ab ", "cd ef"]),
        ("一二三四。”五", ["一二三四。", "”五"]),
    ],
)
def test_cut_after_a_sentence_else_a_space_else_at_the_limit(text: str, expected: list[str]) -> None:
    assert pieces(text, 5) == expected


def test_signs_in_tokens_of_segmented_text_cut_nothing() -> None:
    assert pieces("a 3!5 b", 5, segmented=True) == ["a ", "3!5 b"]


@given(st.text("一。 !”a"), st.integers(1, 7))
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, longest: int) -> None:
    found = pieces(text, longest)
    assert "".join(found) == text
    assert all(len(each) <= longest for each in found)
    assert len(found) == 1 or all(found)


def test_whole_sentences_stay_whole() -> None:
    text = "今天天气很好。我们去公园。" * 3
    assert [sentence for piece in pieces(text, 15) for sentence in split_sentences(piece)] == split_sentences(text)
