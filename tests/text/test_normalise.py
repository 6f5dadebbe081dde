"""Normalisation, step by step."""

import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from text.test_alignment import TEXT, normaliser

from elmo_zh.choices import UNICODE_FORMS
from elmo_zh.config import TextConfig
from elmo_zh.text.preparation import TextPreparation

# Form, folding, removal, collapsing: all or nothing in every form, and mixed.
COMBINATIONS = [
    TextConfig(unicode_form=form, fold_fullwidth=fold, remove_control=remove, collapse_whitespace=collapse)
    for form, fold, remove, collapse in (
        *((form, on, on, on) for form in UNICODE_FORMS for on in (False, True)),
        ("NFC", False, False, True),
        ("NFKC", True, False, True),
        ("NFKC", False, True, False),
    )
]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("，。！？…：；（）“”‘’《》—～·、", "，。！？…：；（）“”‘’《》—～·、"),
        ("ＡＺａｚ０９", "AZaz09"),
        ("　苹果\u00a0\t 很\u2028甜\x85\n", "苹果 很 甜"),
        ("苹\u200b果\ufeff\u200d很\u2060甜\x00\x7f", "苹果很甜"),
        ("cafe\u0301", "caf\u00e9"),
        ("e\u200b\u0301", "\u00e9"),
        ("①½ﬁ", "①½ﬁ"),
        ("臺灣🍎👍🏽", "臺灣🍎👍🏽"),
        ("", ""),
        (" \u3000 ", ""),
    ],
)
def test_defaults(raw: str, expected: str) -> None:
    assert normaliser(TextConfig())(raw) == expected


@settings(deadline=None, max_examples=53)
@given(TEXT, st.sampled_from(COMBINATIONS))
@example("e\n\u200b\u0301", TextConfig())
@example("\u1100\u200b\u1161", TextConfig())
def test_twice_is_once(text: str, config: TextConfig) -> None:
    normalise = normaliser(config)
    once = normalise(text)
    assert normalise(once) == once


@settings(deadline=None, max_examples=53)
@given(TEXT, st.sampled_from(COMBINATIONS))
def test_what_the_result_may_hold(text: str, config: TextConfig) -> None:
    result = normaliser(config)(text)
    assert "\n" not in result
    assert "\r" not in result
    if config.unicode_form != "none":
        assert unicodedata.is_normalized(config.unicode_form, result)  # type: ignore[arg-type]
    if config.fold_fullwidth:
        assert not any(
            "\uff10" <= c <= "\uff19" or "\uff21" <= c <= "\uff3a" or "\uff41" <= c <= "\uff5a" for c in result
        )
    if config.remove_control:
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Me") and not c.isspace() for c in result)
    if config.collapse_whitespace:
        assert result == " ".join(result.split())


LINE = st.lists(st.one_of(TEXT, st.sampled_from([" ", "。", "今天很好", "１", "…"])), max_size=7)


@settings(deadline=None, max_examples=101)
@given(LINE, st.sampled_from(COMBINATIONS))
@example(["e", "\u0301"], TextConfig())
@example(["今天。", " 很好 ", " 。"], TextConfig())
def test_sentences_of_a_line_are_each_normalised_alone(texts: list[str], config: TextConfig) -> None:
    """Also where one look at the whole line says that nothing, or only its white space, is to be done."""
    normalise = normaliser(config)
    assert normalise.sentence_texts("".join(texts), texts) == [normalise(text) for text in texts]


@settings(deadline=None, max_examples=101)
@given(TEXT, st.sampled_from(COMBINATIONS), st.integers(0, 23), st.integers(0, 23))
def test_what_a_step_leaves_it_leaves_in_pieces_too(text: str, config: TextConfig, start: int, end: int) -> None:
    for step in normaliser(config).steps:
        if step.leaves(text):
            assert step.apply(text) == text
            assert step.apply(text[start:end]) == text[start:end]


@pytest.mark.parametrize("config", COMBINATIONS)
def test_stable_characters_are_changed_by_no_step(config: TextConfig) -> None:
    normalise = normaliser(config)
    stable = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if normalise.stable.fullmatch(c))
    assert len(stable) > 20_000
    for text in (stable, stable[::-1], *zip(stable, reversed(stable), strict=True)):
        for step in normalise.steps[:-1]:
            assert step.apply("".join(text)) == "".join(text)
    assert "".join(normalise.steps[-1].apply(c) for c in stable) == stable.replace(
        " ", " " * (not config.collapse_whitespace)
    )


def test_no_form_makes_what_was_removed_or_folded_before_it() -> None:
    """So that folding and removing need not be done a second time."""
    apply = {step.name: step.apply for step in normaliser(TextConfig()).steps}
    for character in map(chr, range(sys.maxunicode + 1)):
        if apply["fold_fullwidth"](character) == apply["remove_control"](character) == character:
            for form in ("NFD", "NFKD", "NFC", "NFKC"):
                changed = unicodedata.normalize(form, character)  # type: ignore[arg-type]
                if changed != character:
                    assert apply["fold_fullwidth"](changed) == apply["remove_control"](changed) == changed


# Default_Ignorable_Code_Point of Unicode 15.1 (DerivedCoreProperties.txt), whose general categories differ.
IGNORABLE = (
    "\u00ad \u034f \u061c \u115f-\u1160 \u17b4-\u17b5 \u180b-\u180f \u200b-\u200f \u202a-\u202e \u2060-\u206f \u3164"
    " \ufe00-\ufe0f \ufeff \uffa0 \ufff0-\ufff8 \U0001bca0-\U0001bca3 \U0001d173-\U0001d17a \U000e0000-\U000e0fff"
)


def test_no_invisible_character_of_unicode_is_left() -> None:
    removed = {c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) in ("Cc", "Cf", "Me")}
    for block in IGNORABLE.split():
        removed |= {chr(code) for code in range(ord(block[0]), ord(block[-1]) + 1)}
    removed -= {c for c in removed if c.isspace()}
    assert len(removed) > 4000
    only_removing = normaliser(TextConfig(unicode_form="none", fold_fullwidth=False))
    assert only_removing("".join(sorted(removed))) == ""
    left = "".join(c for c in map(chr, range(0x21, sys.maxunicode + 1)) if c not in removed and not c.isspace())
    # Reserved for characters of these kinds, or assigned since.
    assert set(left) - set(only_removing(left)) <= {*map(chr, range(0x13430, 0x13440)), "\u0890", "\u0891"}


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        ("爱你❤️哦", ["爱", "你", "❤", "哦"]),
        ("第1️⃣", ["第", "1"]),
        ("👨‍👩‍👧", ["👨", "👩", "👧"]),
        ("葛\U000e0100城", ["葛", "城"]),
        ("好\u034f\u3164\ufe0e", ["好"]),
    ],
)
def test_invisible_characters_make_no_words(raw: str, tokens: list[str]) -> None:
    assert TextPreparation.build(TextConfig(segmenter="character")).tokens(raw) == tokens


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("mark", ["\u0327\u0301", "\u0301", "\u0344", "\u0f73", "\U0001d165", "\u3099"])
def test_of_a_long_run_of_marks_thirty_are_left(form: str, mark: str) -> None:
    """Sorted, a run of so many marks takes a minute."""
    normalise = normaliser(TextConfig(unicode_form=form))
    for start in range(35):
        for count in (29, 30):
            few = "一" * start + mark[0] * count + "二"
            if len(unicodedata.normalize(form, few)) == len(few):
                assert normalise(few) == unicodedata.normalize(form, few)
    raw = "一e" + mark * 100_000 + "二"
    text, spans = normalise.with_spans(raw)
    assert text == normalise(raw) == normalise(text)
    assert len(text) <= 33
    assert unicodedata.is_normalized(form, text)
    assert (spans[0].tolist(), spans[-1].tolist()) == ([0, 1], [len(raw) - 1, len(raw)])
