"""Lines of any length in bounded pieces."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.corpus import lines as module
from elmo_zh.corpus.lines import lines_of, lines_of_chunks, whole_lines_of_chunks
from elmo_zh.text.sentences import split_sentences

TEXTS = st.text(st.sampled_from('天。！”"!a\r\n\u2028 \x85'), max_size=60)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=5))
def test_lines_end_at_line_feeds_and_carriage_returns_wherever_the_chunks_end(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(places)]
    expected = re.split("\r\n|\r|\n", text)
    if not expected[-1]:
        del expected[-1]
    assert list(lines_of_chunks(chunks)) == expected
    assert list(whole_lines_of_chunks(chunks, 100)) == expected
    assert list(lines_of(text)) == expected


def test_a_long_text_has_the_lines_that_its_chunks_have(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "今天。\r\n" * 7 + "天" * 40 + "\r\r\n完"
    expected = list(lines_of(text))
    monkeypatch.setattr(module, "LONGEST_LINE", 41)
    assert list(lines_of(text)) == expected
    assert list(lines_of_chunks(text)) == expected


def test_a_line_of_many_chunks_is_joined_once() -> None:
    chunks = ["天" * 1000] * 20_000
    assert [len(line) for line in whole_lines_of_chunks(chunks, 2**26)] == [20_000_000]


def test_long_lines_are_cut_between_sentences_so_that_these_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "今天下雨。“明天呢？”他问。" * 5 + "这一句没有完"
    monkeypatch.setattr(module, "LONGEST_LINE", 17)
    pieces = list(lines_of_chunks([line[:30], line[30:]]))
    assert "".join(pieces) == line
    assert max(map(len, pieces)) <= 17
    assert [s for piece in pieces for s in split_sentences(piece)] == list(split_sentences(line))


def test_a_line_without_a_sentence_end_is_cut_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 7)
    assert list(lines_of("天" * 17)) == ["天" * 7, "天" * 7, "天" * 3]


def test_a_record_that_is_too_long_is_told_by_its_line() -> None:
    with pytest.raises(ValueError, match=r"^3$"):
        list(whole_lines_of_chunks(["ab\ncd\n", "efgh", "ijkl"], 7))
