"""Text that its user has segmented: no token is cut or joined, and in use it is divided as in training."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.choices import UNICODE_FORMS
from elmo_zh.config import TextConfig
from elmo_zh.text.normalise import split_segmented
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.sentences import iter_pieces, split_between_tokens

TRAINING = TextPreparation.build(TextConfig(segmenter="whitespace"))


@pytest.mark.parametrize(
    ("line", "sentences"),
    [
        ("看 《你好！李焕英》 吧 。 好", [["看", "《你好！李焕英》", "吧", "。"], ["好"]]),
        ("在 Yahoo!奇摩 上班 。", [["在", "Yahoo!奇摩", "上班", "。"]]),
        ("新/a 世纪/n 。/w 人民/n ！/w", [["新/a", "世纪/n", "。/w", "人民/n", "！/w"]]),
        ("什么？！ 好……吧 …… 嗯", [["什么？！"], ["好……吧", "……"], ["嗯"]]),
        ("“ 走 ！ ” 他 说", [["“", "走", "！", "”"], ["他", "说"]]),
        ('他 说 "走！" 了', [["他", "说", '"走！"'], ["了"]]),
        ("天气\t很\u3000好\u3000\t。\u2003是 ", [["天气", "很", "好", "。"], ["是"]]),
        ("天气 很\u3000 好 \t。\u3000\u3000 是", [["天气", "很", "好", "。"], ["是"]]),
        ("花\u3000开 全\t角 你好！\u3000再见 吧", [["花\u3000开", "全\t角", "你好！\u3000再见", "吧"]]),
        ("New\u00a0York 10\u202f000 很 大\u00a0", [["New\u00a0York", "10\u202f000", "很", "大"]]),
        ("New\u00a0York\t很\u3000大", [["New\u00a0York", "很", "大"]]),
        ("很好。今天", [["很好。今天"]]),
        ("\u3000", []),
    ],
)
def test_sentences_end_only_between_tokens(line: str, sentences: list[list[str]]) -> None:
    assert TRAINING.sentences(line) == sentences
    assert split_segmented(line) == [token for tokens in sentences for token in tokens]


@pytest.mark.parametrize("form", UNICODE_FORMS)
@settings(deadline=None, max_examples=53)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=7).filter(lambda text: text.split() == [text]),
        min_size=1,
    ),
    st.sampled_from([" ", "\t", "\u3000", " \u2003 "]),
)
def test_a_token_is_a_token_in_any_form(form: str, tokens: list[str], separator: str) -> None:
    config = TextConfig(segmenter="whitespace", unicode_form=form, remove_control=False)
    preparation = TextPreparation.build(config)
    line = separator.join(tokens)
    assert split_segmented(line, config) == tokens
    assert len(preparation.tokens(line)) == len(tokens)
    assert [token for sentence in preparation.sentences(line) for token in sentence] == preparation.tokens(line)
    prepared = preparation.prepare(line)
    assert prepared.tokens == preparation.tokens(line)


def test_where_only_spaces_separate_tokens() -> None:
    config = TextConfig(segmenter="whitespace", collapse_whitespace=False, unicode_form="NFKC")
    line = "全\u3000角 好\t吧 \u00b4"
    assert split_segmented(line, config) == ["全\u3000角", "好\t吧", "\u00b4"]
    assert [len(TextPreparation.build(config).tokens(line))] == [3]


@given(st.text("一。 \t！a\u3000\u00a0", max_size=43), st.integers(3, 11))
def test_pieces_of_segmented_text_end_between_tokens(text: str, longest: int) -> None:
    pieces = [piece for _, piece, _ in iter_pieces(text, split=True, longest=longest, segmented=True)]
    assert "".join(pieces) == text
    tokens = split_segmented(text)
    if all(len(token) < longest and len(token.split()) == 1 for token in tokens):
        assert [token for piece in pieces for token in split_segmented(piece)] == tokens
    assert "".join(split_between_tokens(text)) == text
