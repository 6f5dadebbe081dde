"""Where the characters and tokens of a normalised line stand in the raw one."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.choices import SEGMENTERS, UNICODE_FORMS
from elmo_zh.config import TextConfig
from elmo_zh.text.normalise import Edit, Normaliser, build_normaliser, follow_edits, identity_spans
from elmo_zh.text.preparation import TextPreparation, find_tokens

SWITCHES = ("fold_fullwidth", "remove_control", "collapse_whitespace")
NOTHING: dict[str, Any] = {"unicode_form": "none", **dict.fromkeys(SWITCHES, False)}
ALL_SETTINGS = [
    TextConfig(unicode_form=form, **dict(zip(SWITCHES, on, strict=True)))
    for form in UNICODE_FORMS
    for on in product((False, True), repeat=3)
]
# Blocks where characters compose, decompose, change places or have compatible twins.
BLOCKS = (
    ("\u0300", "\u036f"),  # accents
    ("\u0591", "\u05c7"),  # Hebrew points
    ("\u0622", "\u0670"),  # Arabic
    ("\u0900", "\u0dff"),  # Indic scripts
    ("\u0f40", "\u0fbc"),  # Tibetan
    ("\u1025", "\u1039"),  # Burmese
    ("\u1100", "\u11ff"),  # Hangul letters
    ("\u1e00", "\u1fff"),  # Latin and Greek with accents
    ("\u2000", "\u206f"),  # spaces, invisible characters
    ("\u3041", "\u30ff"),  # kana
    ("\u3130", "\u33ff"),  # compatible Hangul, circled and squared words
    ("\uac00", "\uac7f"),  # Hangul syllables
    ("\uf900", "\ufaff"),  # compatible ideographs
    ("\ufb00", "\ufb4f"),  # ligatures, pointed Hebrew
    ("\ufdf0", "\ufdff"),  # Arabic words
    ("\uff00", "\uffef"),  # full and half width
    ("\U00011080", "\U000110ba"),  # Kaithi
    ("\U0001d157", "\U0001d18b"),  # notes
    ("\U0001f3fb", "\U0001f469"),  # emoji
    ("\U0002f800", "\U0002fa1d"),  # compatible ideographs
)
DELICATE = (
    "aeq=<\u0301\u0316\u0338\u0345\u3099\u1161\u11a8가각ＡｂﾞﾟｶﾊＥ，。…㎏ﬁ¨豈今天气"
    "\u200b\u200d\ufeff\u00ad\U000e0001\x00\r\n\t \u3000\u2028\x85\x1c"
)
CHARACTERS = st.one_of(
    st.sampled_from(DELICATE),
    st.sampled_from(BLOCKS).flatmap(
        lambda block: st.characters(min_codepoint=ord(block[0]), max_codepoint=ord(block[1]))
    ),
    st.characters(codec="utf-8"),
)
TEXT = st.text(CHARACTERS, max_size=19)


@cache
def normaliser(config: TextConfig) -> Normaliser:
    """Building goes through all of Unicode, too slow to be done for each example."""
    return build_normaliser(config)


@cache
def preparation(segmenter: str, unicode_form: str = "NFC", is_plain: bool = False) -> TextPreparation:
    changes = NOTHING if is_plain else {"unicode_form": unicode_form}
    return TextPreparation.build(TextConfig(segmenter=segmenter, **changes))


# Edits


def test_spans_of_edits() -> None:
    spans = follow_edits(identity_spans(7), [Edit(0, 1, 0), Edit(1, 3, 1), Edit(3, 4, 3), Edit(5, 7, 2)])
    assert spans.tolist() == [[1, 3], [3, 4], [3, 4], [3, 4], [4, 5], [5, 7], [5, 7]]
    again = follow_edits(spans, [Edit(0, 2, 1), Edit(3, 5, 1), Edit(6, 7, 0)])
    assert again.tolist() == [[1, 4], [3, 4], [3, 5], [5, 7]]
    assert again.dtype == np.int32
    assert follow_edits(identity_spans(2), []).tolist() == [[0, 1], [1, 2]]


# Characters


@pytest.mark.parametrize(
    ("changes", "raw", "expected", "spans"),
    [
        ({}, "", "", []),
        ({}, "很好", "很好", [(0, 1), (1, 2)]),
        ({"fold_fullwidth": True}, "Ａ好１", "A好1", [(0, 1), (1, 2), (2, 3)]),
        ({"remove_control": True}, "\ufeff苹\u200b\t\xa0\x00", "苹\t\xa0", [(1, 2), (3, 4), (4, 5)]),
        ({"remove_control": True}, "👨\u200d👩", "👨👩", [(0, 1), (2, 3)]),
        ({"collapse_whitespace": True}, "\u3000很 \t好\u2028 ", "很 好", [(1, 2), (2, 4), (4, 5)]),
        ({"collapse_whitespace": True}, " \u3000", "", []),
        ({}, "a\r\n\nb\u3000", "a b\u3000", [(0, 1), (1, 4), (4, 5), (5, 6)]),
        # A space on both sides of something removed is one.
        ({"remove_control": True, "collapse_whitespace": True}, "a \u200b b", "a b", [(0, 1), (1, 4), (4, 5)]),
        ({"unicode_form": "NFC"}, "cafe\u0301s", "caf\u00e9s", [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6)]),
        ({"unicode_form": "NFD"}, "\u00e9s", "e\u0301s", [(0, 1), (0, 1), (1, 2)]),
        # What does not change stands for itself, also where it could have been composed.
        ({"unicode_form": "NFC"}, "q\u0301", "q\u0301", [(0, 1), (1, 2)]),
        # Marks out of order.
        ({"unicode_form": "NFD"}, "bq\u0301\u0316", "bq\u0316\u0301", [(0, 1), (1, 4), (1, 4), (1, 4)]),
        ({"unicode_form": "NFC"}, "\u0301\u0316a", "\u0316\u0301a", [(0, 2), (0, 2), (2, 3)]),
        # Hangul, from letters and into letters.
        ({"unicode_form": "NFC"}, "\u1112\u1161\u11ab\u1100\u1173", "한그", [(0, 3), (3, 5)]),
        ({"unicode_form": "NFC"}, "하\u11ab국", "한국", [(0, 2), (2, 3)]),
        ({"unicode_form": "NFD"}, "한그", "\u1112\u1161\u11ab\u1100\u1173", [(0, 1)] * 3 + [(1, 2)] * 2),
        # An Indic vowel of two parts.
        ({"unicode_form": "NFC"}, "\u0995\u09c7\u09be", "\u0995\u09cb", [(0, 3), (0, 3)]),
        # Compatible characters.
        ({"unicode_form": "NFKC"}, "重５㎏ﬁ", "重5kgfi", [(0, 1), (1, 2), (2, 3), (2, 3), (3, 4), (3, 4)]),
        ({"unicode_form": "NFKC"}, "，…", ",...", [(0, 1), (1, 2), (1, 2), (1, 2)]),
        ({"unicode_form": "NFKC"}, "ｶﾞｷ", "ガキ", [(0, 2), (2, 3)]),
        ({"unicode_form": "NFKD"}, "ｶﾞ", "カ\u3099", [(0, 2), (0, 2)]),
        ({"unicode_form": "NFC"}, "豈\U0002f800", "豈丽", [(0, 1), (1, 2)]),
        # Composed over something removed: it is part of the character. At an end it is not.
        ({"unicode_form": "NFC", "remove_control": True}, "\u200be\u200b\u0301\u200b好", "\u00e9好", [(1, 4), (5, 6)]),
        # Folded first, then composed.
        ({"unicode_form": "NFC", "fold_fullwidth": True}, "Ｅ\u0301Ｅ", "\u00c9E", [(0, 2), (2, 3)]),
        # One character becomes a space, which goes, and a mark.
        ({"unicode_form": "NFKC", "collapse_whitespace": True}, "¨好", "\u0308好", [(0, 1), (1, 2)]),
    ],
)
def test_spans_by_hand(changes: dict[str, Any], raw: str, expected: str, spans: list[tuple[int, int]]) -> None:
    text, found = normaliser(TextConfig(**{**NOTHING, **changes})).with_spans(raw)
    assert text == expected
    assert [tuple(span) for span in found.tolist()] == spans
    assert found.dtype == np.int32


def groups(spans: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield runs of characters that stand for raw characters no other run stands for."""
    first = 0
    for index in range(1, len(spans) + 1):
        if index == len(spans) or spans[index - 1, 1] <= spans[index, 0]:
            yield first, index
            first = index


def assert_spans_tell_where_text_comes_from(config: TextConfig, raw: str) -> None:
    normalise = normaliser(config)
    text, spans = normalise.with_spans(raw)
    assert text == normalise(raw)
    assert spans.dtype == np.int32
    assert spans.shape == (len(text), 2)
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (np.diff(spans, axis=0) >= 0).all()
    is_covered = np.zeros(len(raw), bool)
    for first, last in groups(spans):
        start, end = spans[first, 0], spans[last - 1, 1]
        is_covered[start:end] = True
        expected = text[first:last].strip(" ") if config.collapse_whitespace else text[first:last]
        assert normalise(raw[start:end]) == expected
    # Only what comes to nothing stands in no span.
    assert all(normalise(raw[index]) == "" for index in np.flatnonzero(~is_covered))


@settings(deadline=None, max_examples=151)
@given(st.sampled_from(ALL_SETTINGS), TEXT)
def test_spans_tell_where_text_comes_from(config: TextConfig, raw: str) -> None:
    assert_spans_tell_where_text_comes_from(config, raw)


@pytest.mark.parametrize("config", ALL_SETTINGS)
def test_spans_of_delicate_characters_in_a_row(config: TextConfig) -> None:
    for step in (1, 2, 3, -1):
        assert_spans_tell_where_text_comes_from(config, DELICATE[::step])


# Tokens


@pytest.mark.parametrize(
    ("segmenter", "form", "raw", "tokens", "offsets"),
    [
        ("jieba", "NFC", "今天１０度", ["今天", "10", "度"], [(0, 2), (2, 4), (4, 5)]),
        ("jieba", "NFC", "\ufeff 今\u200b天\u200b很\u3000\u3000好 ", ["今天", "很", "好"], [(2, 5), (6, 7), (9, 10)]),
        ("jieba", "NFC", "喝ｃａｆｅ\u0301吧", ["喝", "caf", "\u00e9", "吧"], [(0, 1), (1, 4), (4, 6), (6, 7)]),
        ("whitespace", "NFC", " 今天\u3000很好\u00a0", ["今天", "很好"], [(1, 3), (4, 6)]),
        ("character", "NFC", "Ａ \u200b好", ["A", "好"], [(0, 1), (3, 4)]),
        ("character", "NFKC", "重㎏！", ["重", "k", "g", "!"], [(0, 1), (1, 2), (1, 2), (2, 3)]),
        ("character", "NFC", "的的 的", ["的", "的", "的"], [(0, 1), (1, 2), (3, 4)]),
        ("character", "NFC", " \u200b", [], []),
    ],
)
def test_tokens_by_hand(segmenter: str, form: str, raw: str, tokens: list[str], offsets: list[tuple[int, int]]) -> None:
    line = preparation(segmenter, form).prepare(raw)
    assert line.tokens == tokens
    assert line.offsets.dtype == np.int32
    assert line.offsets.shape == (len(tokens), 2)
    assert [tuple(place) for place in line.offsets.tolist()] == offsets


def assert_tokens_come_from_their_places(prepared: TextPreparation, raw: str) -> None:
    line = prepared.prepare(raw)
    assert line.tokens == prepared.tokens(raw)
    assert line.offsets.shape == (len(line.tokens), 2)
    assert (line.offsets[:, 0] < line.offsets[:, 1]).all()
    assert (np.diff(line.offsets, axis=0) >= 0).all()
    text, spans = prepared.normalise.with_spans(raw)
    boundaries = {edge for first, last in groups(spans) for edge in (first, last)}
    for token, place, (start, end) in zip(line.tokens, find_tokens(text, line.tokens), line.offsets, strict=True):
        # A token may end within what became several characters together; then its place holds more than itself.
        # A token of segmented text that has white space in it does not stand alone as it does in its line.
        if boundaries.issuperset(place.tolist()) and not (prepared.keeps_tokens and token.split() != [token]):
            assert prepared.normalise(raw[start:end]) == token


@pytest.mark.parametrize("segmenter", SEGMENTERS.built_in)
@settings(deadline=None, max_examples=53)
@given(form=st.sampled_from(UNICODE_FORMS), is_plain=st.booleans(), raw=TEXT)
def test_tokens_come_from_their_places(segmenter: str, form: str, is_plain: bool, raw: str) -> None:
    assert_tokens_come_from_their_places(preparation(segmenter, form, is_plain), raw)
