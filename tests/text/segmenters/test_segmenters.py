"""Tokens: nothing lost, rjieba's those of jieba, nothing from the shared temporary folder."""

import gc
import importlib.metadata
import marshal
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import jieba
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from messages import message_of

from elmo_zh.choices import SEGMENTERS
from elmo_zh.config import TextConfig
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import file_digest
from elmo_zh.text.preparation import TextPreparation
from elmo_zh.text.segmenters import Segmenter, build_segmenter, describe_segmenter
from elmo_zh.text.segmenters import jieba as our_jieba
from elmo_zh.text.segmenters.jieba import RUN_LIMIT, limit_runs

NO_CHANGE = {"unicode_form": "none", "fold_fullwidth": False, "remove_control": False, "collapse_whitespace": False}


@cache
def preparation(segmenter: str, jieba_hmm: bool, is_normalised: bool) -> TextPreparation:
    """jieba's dictionary takes a second to read."""
    changes: dict[str, Any] = {} if is_normalised else NO_CHANGE
    return TextPreparation.build(TextConfig(segmenter=segmenter, jieba_hmm=jieba_hmm, **changes))


WITH_DICTIONARY = ("jieba", "rjieba")


def segment_with(segmenter: str, user_dictionary: Path) -> Segmenter:
    return build_segmenter(TextConfig(segmenter=segmenter), user_dictionary)


TEXT = st.text(
    st.one_of(
        st.sampled_from(
            "今天天气很好苹果的人一了我不 ab19.%-+#&_。！，“”…—\u3000\t\u2028\x85\x00\u200b\ufeffé\u0301<S>"
            "🍎👨\u200d👩\u200d👧🏽🇨🇳\ufe0fก\u0e33\r\n\x1c㐂龦𠮷\U0003ffff\U0010ffff"
        ),
        st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
        st.characters(codec="utf-8"),  # all but surrogates, which no UTF-8 file holds
    ),
    max_size=37,
)
# What jieba's rules are about: Latin letters, digits, signs, words with them (T恤, C++), and Han that it does not know.
DIFFERENT_ALONE = (
    "F-16战机在2.5%的GB/T1234-2020里，v1.2.3和a_b-c.d+e&f#g%，C++、c#和AT&T，T恤，𠮷野家㐂㐂龦龦好，Ａ１　−３"
)
RULES = st.text(st.sampled_from("abC12+#&._%-的国T恤天气很好𠮷㐂龦 ，１é"), max_size=17)


@pytest.mark.parametrize("segmenter", SEGMENTERS.built_in)
@settings(deadline=None, max_examples=53)
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


@pytest.mark.parametrize("segmenter", SEGMENTERS.built_in)
@pytest.mark.parametrize(
    "unit", ["a", "的", "今天天气很好", "好a1.", "7", " ", "\x00", "🍎", "㐂", "-", "国 ", "é\u0301"]
)
def test_no_character_of_a_very_long_run_is_lost(segmenter: str, unit: str) -> None:
    text = unit * (3 * RUN_LIMIT // len(unit) + 1)
    tokens = preparation(segmenter, True, False).segment(text)
    assert "".join(tokens) == text.replace(" ", "")
    assert all(token and " " not in token for token in tokens)


@settings(deadline=None, max_examples=101)
@given(text=st.one_of(TEXT, RULES), jieba_hmm=st.booleans())
@example(text=DIFFERENT_ALONE, jieba_hmm=True)
@example(text=DIFFERENT_ALONE, jieba_hmm=False)
def test_the_tokens_of_rjieba_are_those_of_jieba(text: str, jieba_hmm: bool) -> None:
    ours, theirs = (preparation(name, jieba_hmm, True).tokens(text) for name in ("rjieba", "jieba"))
    assert ours == theirs


USER_WORDS = "天气很好 3\n很好国 70000 n\n国的天\nB1-a 500\n好B n\n天气 1\n𠮷国 9\n的-的\n"


@cache
def segment_with_user_words(segmenter: str) -> Segmenter:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "词典.txt"
        path.write_text(USER_WORDS, encoding="utf-8")
        return segment_with(segmenter, path)


@settings(deadline=None, max_examples=53)
@given(text=st.text("天气很好国的aB1- 。𠮷", max_size=17))
def test_a_user_dictionary_does_the_same_to_both(text: str) -> None:
    # 好好 and 好, or 好 and 好好: the two are equally probable, and the last bit of a sum decides.
    assume(not re.search(r"(.)\1\1", text))
    assert segment_with_user_words("rjieba")(text) == segment_with_user_words("jieba")(text)


@pytest.mark.parametrize("segmenter", WITH_DICTIONARY)
def test_user_dictionary_holds_for_its_own_segmenter_only(segmenter: str, tmp_path: Path) -> None:
    path = tmp_path / "词典.txt"
    path.write_text("\ufeff量子鸽子 7 n\n蓝花楹树\n\n", encoding="utf-8")
    sentence = "量子鸽子停在蓝花楹树上"
    assert segment_with(segmenter, path)(sentence) == ["量子鸽子", "停", "在", "蓝花楹树", "上"]
    assert "量子鸽子" not in preparation(segmenter, True, True).segment(sentence)
    assert "量子鸽子" not in jieba.dt.FREQ


@pytest.mark.parametrize("segmenter", WITH_DICTIONARY)
def test_a_latin_word_of_a_user_dictionary_divides_no_longer_latin_word(segmenter: str, tmp_path: Path) -> None:
    path = tmp_path / "词典.txt"
    path.write_text("AI 500\nkg 500\nAI芯片\n", encoding="utf-8")
    segment = segment_with(segmenter, path)
    assert segment("用EMAIL问OpenAI，AI AI") == ["用", "EMAIL", "问", "OpenAI", "，", "AI", "AI"]
    # A unit after a number is no part of a longer Latin word.
    assert segment("三块AI芯片重5kg") == ["三块", "AI芯片", "重", "5", "kg"]


@pytest.mark.parametrize(
    "content", ["量子鸽子 7\n".encode("gb18030"), "苹果 3\n量子鸽子 0\n".encode(), "量子鸽子 2147483648\n".encode()]
)
@pytest.mark.parametrize("segmenter", WITH_DICTIONARY)
def test_user_dictionary_that_is_none(segmenter: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    assert message_of(CorpusError, lambda: segment_with(segmenter, path)).startswith(
        f"{path} is not a jieba user dictionary (line {len(content.splitlines())}"
    )
    gc.collect()  # a file left open would warn here and not in the next test


def set_limit(monkeypatch: pytest.MonkeyPatch, limit: int, overlap: int) -> None:
    monkeypatch.setattr(our_jieba, "RUN_LIMIT", limit)
    monkeypatch.setattr(our_jieba, "OVERLAP", overlap)


def pairs(text: str) -> list[str]:
    """Return tokens of two characters, from the start of each run, as jieba sees a run by itself."""
    return [run[i : i + 2] for run in text.replace("，", " ， ").split() for i in range(0, len(run), 2)]


def test_a_long_run_is_segmented_in_pieces_from_token_to_token(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limit(monkeypatch, 7, 1)
    # Seven characters at a time would cut a pair each time; that pair is the first of the next piece.
    assert limit_runs(pairs)("abcdefghijklmnopqr") == ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr"]
    assert limit_runs(pairs)("abcdefgh") == ["ab", "cd", "ef", "gh"]
    assert limit_runs(pairs)("abc，defghijkl，mn") == ["ab", "c", "，", "de", "fg", "hi", "jk", "l", "，", "mn"]


@pytest.mark.parametrize("segmenter", WITH_DICTIONARY)
def test_pieces_of_a_long_run_have_the_words_of_the_whole(segmenter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = "今天天气很好我们一起去公园散步看见许多孩子正在湖边放风筝" * 20
    segment = preparation(segmenter, True, True).segment
    whole = segment(run)
    assert 31 < len(run) <= RUN_LIMIT
    set_limit(monkeypatch, 31, 10)
    assert segment(run) == whole


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(our_jieba, "_in_use", WeakValueDictionary())
    return folder


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
    described = describe_segmenter(TextConfig(segmenter="rjieba"))
    assert described == {"name": "rjieba", "version": importlib.metadata.version("rjieba")}
    dictionary = tmp_path / "a.txt"
    dictionary.write_text("量子鸽子\n", encoding="utf-8")
    assert describe_segmenter(TextConfig(), dictionary)["user_dictionary"] == file_digest(dictionary)
