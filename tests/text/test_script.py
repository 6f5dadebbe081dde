"""Traditional to simplified characters and back."""

from functools import cache
from unicodedata import is_normalized

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.text.normalise import Normaliser, build_normaliser
from elmo_zh.text.preparation import TextPreparation

SCRIPTS = ("simplified", "traditional")


@cache
def normaliser(script: str, form: str = "NFC") -> Normaliser:
    return build_normaliser(TextConfig(script=script, unicode_form=form))


@pytest.mark.parametrize(
    ("script", "raw", "expected"),
    [
        ("simplified", "臺灣的軟體，乾乾淨淨；乾隆。", "台湾的软体，干干净净；乾隆。"),
        ("traditional", "头发发展，皇后在后面。", "頭髮發展，皇后在後面。"),
        ("none", "臺灣头发", "臺灣头发"),
        ("simplified", "ABC 123 ，", "ABC 123 ，"),
    ],
)
def test_conversion(script: str, raw: str, expected: str) -> None:
    assert normaliser(script)(raw) == expected


HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)
TEXT = st.text(
    st.one_of(HAN, st.sampled_from("頭发發臺乾干后後裡里·，。SQL注入 \u3000\u200b豈e\u0301\ud800Ａ"), st.characters()),
    max_size=29,
)


@settings(deadline=None, max_examples=101)
@given(st.sampled_from(SCRIPTS), TEXT)
def test_spans_cover_what_they_stand_for(script: str, raw: str) -> None:
    text, spans = normaliser(script).with_spans(raw)
    assert text == normaliser(script)(raw)
    assert spans.shape == (len(text), 2)
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (np.diff(spans, axis=0) >= 0).all()
    assert is_normalized("NFC", text)


def test_tokens_stand_where_they_stood() -> None:
    prepare = TextPreparation.build(TextConfig(script="simplified")).prepare
    line = prepare("\u200b臺灣　的軟體")
    assert line.tokens == ["台湾", "的", "软体"]
    assert line.offsets.tolist() == [[1, 3], [4, 5], [5, 7]]


class OtherLengths:
    """OpenCC as it could be, with words that become longer or shorter."""

    def __init__(self, _name: str) -> None:
        pass

    def convert(self, text: str) -> str:
        return text.replace("甲", "甲甲").replace("乙乙", "乙").replace("丙", "").replace("丁", "丁戊戊")


@settings(deadline=None, max_examples=71)
@given(st.text(st.sampled_from("甲乙丙丁今"), max_size=13))
def test_spans_cover_everything_where_lengths_change(raw: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opencc.OpenCC", OtherLengths)
        normalise = build_normaliser(TextConfig(script="simplified"))
    text, spans = normalise.with_spans(raw)
    assert spans.shape == (len(text), 2)
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (np.diff(spans, axis=0) >= 0).all()
    if len(text) == len(raw):
        assert [raw[start:end] for start, end in spans.tolist()] == list(raw)
    else:
        assert {(start, end) for start, end in spans.tolist()} <= {(0, len(raw))}
