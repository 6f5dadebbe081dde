"""Input ids and spellings, worked out by hand."""

import numpy as np
import pytest

from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

# <S> 0, </S> 1, <UNK> 2, 好 3, 天气 4; V = 5.
VOCABULARY = Vocabulary((*SPECIALS, "好", "天气"))
SLOTS = 11


def characters(num_slots: int = SLOTS) -> Lexicon:
    return Lexicon(VOCABULARY, num_slots)


def spelled(lexicon: Lexicon, word: str) -> list[int]:
    (row,) = lexicon.encode([word])
    found = lexicon.character_ids([row])
    assert found.dtype == np.int64
    assert found.shape == (1, lexicon.num_slots)
    return found[0].tolist()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Begin of word 258, end of word 259, padding 260.
        ("好", [258, 0xE5, 0xA5, 0xBD, 259, 260, 260, 260, 260, 260, 260]),
        ("天气", [258, 0xE5, 0xA4, 0xA9, 0xE6, 0xB0, 0x94, 259, 260, 260, 260]),
        ("a\0é", [258, 0x61, 0, 0xC3, 0xA9, 259, 260, 260, 260, 260, 260]),
        ("𠮷", [258, 0xF0, 0xA0, 0xAE, 0xB7, 259, 260, 260, 260, 260, 260]),
        ("天天天", [258, 0xE5, 0xA4, 0xA9, 0xE5, 0xA4, 0xA9, 0xE5, 0xA4, 0xA9, 259]),
        # Nine bytes are read: the first word loses all of 气, the second all but the first byte of 气.
        ("天天天气", [258, 0xE5, 0xA4, 0xA9, 0xE5, 0xA4, 0xA9, 0xE5, 0xA4, 0xA9, 259]),
        ("ab天天气", [258, 0x61, 0x62, 0xE5, 0xA4, 0xA9, 0xE5, 0xA4, 0xA9, 0xE6, 259]),
        # Text words that are spelled like special tokens.
        ("<S>", [258, 0x3C, 0x53, 0x3E, 259, 260, 260, 260, 260, 260, 260]),
        ("</S>", [258, 0x3C, 0x2F, 0x53, 0x3E, 259, 260, 260, 260, 260, 260]),
        ("<UNK>", [258, 0x3C, 0x55, 0x4E, 0x4B, 0x3E, 259, 260, 260, 260, 260]),
        # A lone surrogate has no bytes.
        ("a\ud800", [258, 0x61, 259, 260, 260, 260, 260, 260, 260, 260, 260]),
    ],
)
def test_spellings(word: str, expected: list[int]) -> None:
    assert spelled(characters(), word) == expected


def test_sentence_marks_have_one_character_of_their_own() -> None:
    begin, end = characters().character_ids([0, 1]).tolist()
    assert begin == [258, 256, 259] + [260] * 8
    assert end == [258, 257, 259] + [260] * 8
    # The fewest slots leave one byte.
    assert spelled(characters(3), "好") == [258, 0xE5, 259]
    assert characters(3).character_ids([1]).tolist() == [[258, 257, 259]]


def test_other_words_have_ids_above_the_vocabulary_in_the_order_in_which_they_come() -> None:
    lexicon = characters()
    assert lexicon.encode(["好", "梨", "天气", "<S>", "梨"]) == [3, 5, 4, 6, 5]
    assert lexicon.encode(["好", "天气"]) == [3, 4]
    assert lexicon.encode(["</S>", "<S>", "<UNK>", "梨"]) == [7, 6, 8, 5]
    assert lexicon.encode([]) == []
    assert lexicon.other_words == ["梨", "<S>", "</S>", "<UNK>"]


def test_in_token_mode_ids_are_rows_and_their_own_targets() -> None:
    lexicon = Lexicon(VOCABULARY, None)
    ids = lexicon.encode(["好", "梨", "<S>", "天气", "桃"])
    assert ids == [3, 2, 2, 4, 2]
    assert lexicon.other_words == []
    assert lexicon.targets(np.array(ids)).tolist() == ids
    assert not lexicon.is_cut("天" * 1000)


@pytest.mark.parametrize(
    ("word", "is_cut"), [("", False), ("天天天", False), ("天天天a", True), ("ab天天天", True), ("abcdefghi", False)]
)
def test_a_word_is_cut_from_one_byte_too_many_on(word: str, is_cut: bool) -> None:
    assert characters().is_cut(word) is is_cut
