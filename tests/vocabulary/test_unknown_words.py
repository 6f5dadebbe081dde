"""Unknown words are counted in bounded memory."""

import pytest

from elmo_zh.vocabulary.vocabulary import UnknownWords


def test_the_rarer_half_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_zh.vocabulary.vocabulary.MAX_WORDS", 10)
    unknown = UnknownWords[str]()
    unknown.add(["花", "花", *"abcdefghi"])
    assert unknown.counts == {"花": 2, **dict.fromkeys("abcdefghi", 1)}
    unknown.add(["花", "j"])
    assert len(unknown.counts) == 5
    assert unknown.counts["花"] == 3


def test_few_words_are_counted_exactly() -> None:
    unknown = UnknownWords[bytes]()
    for _ in range(3):
        unknown.add([b"a", b"b", b"b"])
    unknown.add({b"b": 5, b"c": 1})
    assert unknown.counts == {b"a": 3, b"b": 11, b"c": 1}
