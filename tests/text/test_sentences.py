"""Where sentences end, and the pieces of texts that no sentence splitter can divide."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.text.sentences import pieces, split_sentences


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("今天很好。明天呢？走吧！嗯…好", ["今天很好。", "明天呢？", "走吧！", "嗯…", "好"]),
        ("Really? 真的!好", ["Really?", " 真的!", "好"]),
        ("什么？！真的……假的？？？好。", ["什么？！", "真的……", "假的？？？", "好。"]),
        ("他说：“你好。”她笑了。", ["他说：“你好。”", "她笑了。"]),
        ("“走吗？”“走！”他说。", ["“走吗？”", "“走！”", "他说。"]),
        ("（见下图。）另外，「好！」『对。』", ["（见下图。）", "另外，「好！」", "『对。』"]),
        ("《你好吗？》是一本书。", ["《你好吗？》", "是一本书。"]),
        ("（“行！”）　（“好。” ）完", ["（“行！”）", "　（“好。” ）", "完"]),
        ('他说："你好!"她说："走?"', ['他说："你好!"', '她说："走?"']),
        ('"你好。"他说。"再见。"', ['"你好。"', "他说。", '"再见。"']),
        ("见 http://a.cn/?q=1 和 Yahoo!7 的页面。完", ["见 http://a.cn/?q=1 和 Yahoo!7 的页面。", "完"]),
        ("圆周率是3.14, ok. 版本1.2;好", ["圆周率是3.14, ok. 版本1.2;好"]),
        ("没有句号", ["没有句号"]),
        ("。", ["。"]),
        ("", []),
    ],
)
def test_cases(paragraph: str, sentences: list[str]) -> None:
    assert list(split_sentences(paragraph)) == sentences


PARAGRAPH = st.text(
    st.one_of(st.sampled_from("。！？!?…”’」』）)]}》\"' 　苹果a1.="), st.characters(codec="utf-8")), max_size=43
)


@settings(deadline=None, max_examples=101)
@given(PARAGRAPH)
def test_sentences_joined_are_the_paragraph(paragraph: str) -> None:
    sentences = list(split_sentences(paragraph))
    assert "".join(sentences) == paragraph
    assert "" not in sentences


def test_long_runs_take_no_long_time() -> None:
    for piece in ("。", "。 ", "!a", '"', '。"', "” "):
        assert "".join(split_sentences(piece * 20_011)) == piece * 20_011
    assert len(list(split_sentences("好。" + " " * 100_003 + "好"))) == 2


@settings(max_examples=101)
@given(st.text("。！？…!?a1=”） \n天", max_size=23))
def test_paragraphs_without_ascii_quotes_are_split_as_those_with_some(paragraph: str) -> None:
    # The quote stands in a sentence of its own, and makes the splitting look at quotes.
    *sentences, last = split_sentences(f"{paragraph}\n天'")
    *expected, rest = split_sentences(f"{paragraph}\n天a")
    assert sentences == expected
    assert last[:-1] == rest[:-1]


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
def test_pieces_are_cut_after_a_sentence_else_a_space_else_at_the_limit(text: str, expected: list[str]) -> None:
    assert pieces(text, 5) == expected


@given(st.text("一。 !”a"), st.integers(1, 7))
def test_nothing_is_lost_and_no_piece_is_too_long(text: str, longest: int) -> None:
    found = pieces(text, longest)
    assert "".join(found) == text
    assert all(len(each) <= longest for each in found)
    assert len(found) == 1 or all(found)
