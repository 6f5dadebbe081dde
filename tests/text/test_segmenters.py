"""Tokens: nothing lost, nothing from the shared temporary folder."""

import gc
import marshal
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jieba
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.config import TextConfig
from elmo_zh.config.schema import SEGMENTERS
from elmo_zh.errors import CorpusError
from elmo_zh.files import file_digest
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import Segmenter, build_segmenter, describe_segmenter

NO_CHANGE = {"unicode_form": "none", "fold_fullwidth": False, "remove_control": False, "collapse_whitespace": False}


@cache
def preparation(segmenter: str, jieba_hmm: bool, is_normalised: bool) -> TextPreparation:
    """jieba's dictionary takes a second to read."""
    changes: dict[str, Any] = {} if is_normalised else NO_CHANGE
    return TextPreparation.build(TextConfig(segmenter=segmenter, jieba_hmm=jieba_hmm, **changes))


def jieba_segmenter() -> Segmenter:
    return preparation("jieba", True, True).segment


TEXT = st.text(
    st.one_of(
        st.sampled_from(
            "今天天气很好苹果的人一了我不 ab19.%-+#&_。！，“”…—\u3000\t\u2028\x85\x00\u200b\ufeffé\u0301<S>"
        ),
        st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
        st.characters(codec="utf-8"),
    ),
    max_size=37,
)


@pytest.mark.parametrize("segmenter", SEGMENTERS)
@settings(deadline=None, max_examples=151)
@given(text=TEXT, jieba_hmm=st.booleans(), is_normalised=st.booleans())
def test_no_character_is_lost(segmenter: str, text: str, jieba_hmm: bool, is_normalised: bool) -> None:
    prepared = preparation(segmenter, jieba_hmm, is_normalised)
    normalised = prepared.normalise(text)
    tokens = prepared.tokens(text)
    assert "".join(tokens) == normalised.replace(" ", "")
    assert all(token and " " not in token for token in tokens)
    sentences = prepared.sentences(text)
    assert "".join(token for tokens in sentences for token in tokens) == normalised.replace(" ", "")
    assert [] not in sentences


@pytest.mark.parametrize(
    ("segmenter", "sentence", "tokens"),
    [
        ("jieba", "今天天气很好", ["今天天气", "很", "好"]),
        ("jieba", "我爱吃苹果 和 iPhone 15", ["我", "爱", "吃", "苹果", "和", "iPhone", "15"]),
        ("jieba", "", []),
        ("whitespace", "今天 天气  很 好 ", ["今天", "天气", "很", "好"]),
        ("whitespace", "全角\u3000空格 <S> <UNK>", ["全角\u3000空格", "<S>", "<UNK>"]),
        ("character", "好 ab🍎", ["好", "a", "b", "🍎"]),
    ],
)
def test_tokens_of_normalised_sentences(segmenter: str, sentence: str, tokens: list[str]) -> None:
    assert preparation(segmenter, True, True).segment(sentence) == tokens


def test_preparation_of_a_line() -> None:
    prepared = preparation("character", True, True)
    assert prepared.sentences("“好！”　Ａ？ ") == [["“", "好", "！", "”"], ["A", "？"]]
    assert prepared.tokens("好！Ａ？") == ["好", "！", "A", "？"]
    assert prepared.sentences("\u200b \u3000") == []
    whole = TextPreparation.build(TextConfig(segmenter="character", split_sentences=False))
    assert whole.sentences("好！Ａ？") == [["好", "！", "A", "？"]]


def test_hmm_finds_words_outside_the_dictionary() -> None:
    sentence = "他来到了网易杭研大厦"  # jieba's own example
    assert "杭研" in preparation("jieba", True, True).segment(sentence)
    assert "杭研" not in preparation("jieba", False, True).segment(sentence)


def test_user_dictionary_holds_for_its_own_segmenter_only(tmp_path: Path) -> None:
    path = tmp_path / "词典.txt"
    path.write_text("\ufeff量子鸽子 7 n\n蓝花楹树\n\n", encoding="utf-8")
    sentence = "量子鸽子停在蓝花楹树上"
    with_dictionary = build_segmenter(TextConfig(), path)
    assert with_dictionary(sentence) == ["量子鸽子", "停", "在", "蓝花楹树", "上"]
    assert "量子鸽子" not in jieba_segmenter()(sentence)
    assert "量子鸽子" not in jieba.dt.FREQ


def test_user_dictionary_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "gb.txt"
    path.write_bytes("量子鸽子 7\n".encode("gb18030"))
    with pytest.raises(CorpusError) as caught:
        build_segmenter(TextConfig(), path)
    (message,) = caught.value.messages
    assert message.startswith(f"{path} is not a jieba user dictionary (")
    assert message.endswith(" Each line is a word, then optionally a count and a tag, split by spaces, in UTF-8.")
    assert "\n" not in message
    del caught
    gc.collect()  # a file left open would warn here and not in the next test


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_no_cache_is_written(temporary_folder: Path) -> None:
    assert build_segmenter(TextConfig())("今天天气很好") == ["今天天气", "很", "好"]
    assert list(temporary_folder.iterdir()) == []


def test_no_cache_is_read(temporary_folder: Path) -> None:
    poison = temporary_folder / "jieba.cache"
    poison.write_bytes(marshal.dumps(({"天气很": 10**6, "今天天": 10**6}, 2 * 10**6)))
    plain = jieba.Tokenizer()
    plain.initialize()
    assert plain.lcut("今天天气很好", HMM=False) != ["今天天气", "很", "好"]  # so it is poison to jieba itself
    before = poison.stat()
    ours = build_segmenter(TextConfig(jieba_hmm=False))
    assert ours("今天天气很好") == ["今天天气", "很", "好"]
    assert list(temporary_folder.iterdir()) == [poison]
    after = poison.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_description_names_what_has_to_be_equal(tmp_path: Path) -> None:
    assert describe_segmenter(TextConfig(segmenter="character")) == {"name": "character", "version": "1"}
    described = describe_segmenter(TextConfig())
    assert described == {
        "name": "jieba",
        "version": jieba.__version__,
        "dictionary": file_digest(Path(jieba.__file__).parent / "dict.txt"),
    }
    dictionary = tmp_path / "a.txt"
    dictionary.write_text("量子鸽子\n", encoding="utf-8")
    assert describe_segmenter(TextConfig(), dictionary)["user_dictionary"] == file_digest(dictionary)
