"""Examples that can be shown to people."""

import ast
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.corpus.cleaning.line_counts import LONGEST_EXAMPLE, around_change, shortened, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天，“好”。abc`|<b>", "今天，“好”。abc`|<b>"),
        ("\u200b\u202e\ufeff", r"\u200b\u202e\ufeff"),
        ("\x1b[2J\x00\r\n\t\x7f", r"\x1b[2J\x00\r\n\t\x7f"),
        ("a\u3000b\xa0c d", r"a\u3000b\xa0c d"),
        ("e\u0301", r"e\u0301"),
        (r"\u200b", r"\\u200b"),
        ("\ud800\U000e0001\ue000", r"\ud800\U000e0001\ue000"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected


@settings(deadline=None, max_examples=101)
@given(st.text(st.characters(), max_size=43))
def test_what_is_shown_can_be_seen_and_read_back(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    shown.encode("utf-8")
    assert ast.literal_eval('"' + shown.replace('"', r"\"") + '"') == text


def test_long_texts_are_cut() -> None:
    assert shortened("好" * LONGEST_EXAMPLE) == "好" * LONGEST_EXAMPLE
    assert shortened("好" * (LONGEST_EXAMPLE + 1)) == "好" * (LONGEST_EXAMPLE - 1) + "…"


def test_the_change_is_within_the_example() -> None:
    before, after = around_change("甲" * 500 + "<b>乙", "甲" * 500 + "乙")
    assert (before, after) == ("…" + "甲" * 20 + "<b>乙", "…" + "甲" * 20 + "乙")
    assert around_change("ab", "b") == ("ab", "b")
    numbers = "".join(map(str, range(1000)))
    for end, _ in pairwise(range(0, 1000, 97)):
        before, after = around_change(numbers[:end] + "<x>" + numbers[end:], numbers)
        assert "<x>" in before
        assert before != after
