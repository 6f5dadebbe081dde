"""Our steps from a sentence to words against jieba's own."""

from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import jieba
import pytest
from corpus.readers.reading import TEST_DATA, needs_data
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.corpus.text_files import iter_lines
from elmo_zh.text.segmenters.jieba_cut import JiebaCut, Words

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
# Characters of many words, of few, of none in the dictionary, of none in the model, and whatever splits runs.
CHARACTERS = "的一不是中国人民大学生活动物理想象研究龘鿕鿖々〇𠀀aB9+#&._%- \t\r\n，。！abc12"


@cache
def tokenizer() -> Any:
    jieba.setLogLevel(60)
    made = jieba.Tokenizer()
    made.initialize()
    return made


@cache
def words() -> Words:
    return Words.of(tokenizer().FREQ, tokenizer().total)


@cache
def cut(use_hmm: bool) -> JiebaCut:
    return JiebaCut(words(), use_hmm)


@pytest.mark.parametrize("use_hmm", [True, False])
@settings(deadline=None, max_examples=503)
@given(sentence=st.text(CHARACTERS, max_size=41))
def test_any_sentence(use_hmm: bool, sentence: str) -> None:
    assert cut(use_hmm)(sentence) == tokenizer().lcut(sentence, HMM=use_hmm)


@pytest.mark.parametrize("use_hmm", [True, False])
def test_the_sample(use_hmm: bool) -> None:
    for path in sorted(SAMPLE.glob("*.txt")):
        for line in iter_lines(path):
            assert cut(use_hmm)(line) == tokenizer().lcut(line, HMM=use_hmm)


def test_words_of_the_user() -> None:
    own = jieba.Tokenizer()
    own.initialize()
    for word, count in (("苹果汁", 3), ("C++语言", None), ("一号 线", 5), ("好天气", 10**6)):
        own.add_word(word, count)
    own.add_word("天气", 0)
    jieba.finalseg.Force_Split_Words.discard("天气")  # which would be for all tokenizers
    with_own = JiebaCut(Words.of(own.FREQ, own.total), True)
    for sentence in ("我喝苹果汁学C++语言", "坐一号 线", "今天天气真好天气", "苹果汁苹果"):
        assert with_own(sentence) == own.lcut(sentence)


@pytest.mark.interop
@needs_data
@pytest.mark.parametrize("name", ["classical", "dialogue", "law_tw_trad", "news", "poetry_trad", "tech", "wiki"])
def test_real_text(name: str) -> None:
    path = Path(TEST_DATA or ".") / "data" / "raw" / f"{name}.txt.xz"
    for use_hmm in (True, False):
        for line in islice(iter_lines(path), 500):
            assert cut(use_hmm)(line) == tokenizer().lcut(line, HMM=use_hmm)


def test_words_that_are_never_to_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "小明硕士毕业后在杭研大厦"
    found = tokenizer().lcut(sentence)
    assert "杭研" in found
    monkeypatch.setattr(jieba.finalseg, "Force_Split_Words", {"杭研"})
    assert JiebaCut(words(), True, {"杭研"})(sentence) == tokenizer().lcut(sentence) != found
