"""Vectors of words: each computed once, kept within a bound, and of unknown words the mean of their subwords."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from composed_rows import composed_rows
from drawn_bundles import CHARACTERS, TOKENS, P
from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.embed import sentence_vectors
from elmo_zh.embed.sentence_vectors import WordVectors
from elmo_zh.model.bilm import BiLM
from elmo_zh.model.language_model import weights_of
from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.weights import ModelWeights
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

WORDS = ("我", "我们", "北京", "大学", "北京大", "苹", "果", "吃", "a", "ab")
VOCABULARY = Vocabulary((*SPECIALS, *WORDS))
BEGIN, END, UNKNOWN = range(3)
SLOTS = CHARACTERS.num_slots


def draw_weights(mode: str) -> ModelWeights:
    shape = replace(TOKENS, num_tokens=len(VOCABULARY), characters=CHARACTERS if mode == "character" else None)
    bilm, generator = BiLM(shape), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return weights_of(bilm, None)


def spelling(word: str) -> list[int]:
    """Written out from FORMATS.md: begin 258, bytes, end 259, padding 260."""
    content = list(word.encode("utf-8"))[: SLOTS - 2]
    return [258, *content, 259] + [260] * (SLOTS - 2 - len(content))


class CharacterModel:
    """Vectors in character mode, and which words the token layer was asked for."""

    def __init__(self, **settings: Any) -> None:
        self.weights = draw_weights("character")
        self.vectors = WordVectors(self.weights, Lexicon(VOCABULARY, SLOTS), **settings)
        self.asked: list[list[int]] = []
        look_up = self.weights.token_vectors

        def note(lexicon: Lexicon, ids: Sequence[int]) -> Floats:
            self.asked += lexicon.character_ids(ids).tolist()
            return look_up(lexicon, ids)

        # A frozen dataclass; the vectors of marks were computed before.
        object.__setattr__(self.weights, "token_vectors", note)

    def asked_once(self, words: Sequence[str]) -> bool:
        """Whether it was asked for these words, each once, and for no others, since the last time."""
        asked, self.asked = self.asked, []
        return sorted(asked) == sorted(spelling(word) for word in words)

    def alone(self, word: str) -> Floats:
        """A word's vector from a fresh model that has not seen another one."""
        asked = list(self.asked)
        vector = WordVectors(self.weights, Lexicon(VOCABULARY, SLOTS))([word])[2]
        self.asked = asked
        return vector


def assert_vectors(model: CharacterModel, found: Floats, words: Sequence[str]) -> None:
    assert found.shape == (2 + len(words), P)
    for vector, word in zip(found[2:], words, strict=True):
        np.testing.assert_allclose(vector, model.alone(word), rtol=0, atol=1e-6)


def test_in_character_mode_each_word_is_computed_once() -> None:
    model = CharacterModel()
    first = ["我们", "吃", "齉龘", "很" * 17, "😀", "𠮷"]
    assert_vectors(model, model.vectors(first), first)
    assert model.asked_once(first)
    second = ["𠮷", "桃", "我们"]
    assert_vectors(model, model.vectors(second), second)
    assert model.asked_once(["桃"])
    again = [*first[::-1], "桃"]
    assert_vectors(model, model.vectors(again), again)
    assert model.asked_once([])
    assert model.vectors([]).shape == (2, P)


def test_no_more_words_are_kept_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_vectors, "_MOST_KEPT_WORDS", 5)
    model = CharacterModel()
    for words, computed in (
        (["一", "二", "三"], ["一", "二", "三"]),
        (["二", "四", "五"], ["四", "五"]),  # five: full
        (["五", "一"], []),
        (["一", "六"], ["一", "六"]),  # one too many: starts again with these
        (["六", "二", "一"], ["二"]),
        (["四", "三"], ["四", "三"]),
        (["七"], ["七"]),
    ):
        assert_vectors(model, model.vectors(words), words)
        assert model.asked_once(computed), words
    many = [chr(0x4E00 + number) for number in range(13)]
    for words in (many, ["我们", many[7]], many[::-1]):
        assert_vectors(model, model.vectors(words), words)


# Token mode


def test_an_unknown_word_may_be_composed_of_the_known_words_in_it() -> None:
    weights = draw_weights("token")
    table = weights.token_table
    composed = ["苹果", "北京大学", "吃桃吃", "a<S>b", "我们们"]
    expected = composed_rows((*SPECIALS, *WORDS), table, composed)
    found = WordVectors(weights, Lexicon(VOCABULARY, None), "backoff")([*composed, "桃", "<S>", "吃"])
    for vector, word in zip(found[2:], composed, strict=False):
        np.testing.assert_allclose(vector, expected[word], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[-3:], table[[UNKNOWN, UNKNOWN, (*SPECIALS, *WORDS).index("吃")]])
    # Alone as well as beside other words.
    alone = WordVectors(weights, Lexicon(VOCABULARY, None), "backoff")(["吃桃吃"])
    np.testing.assert_array_equal(alone[2], found[4])


@given(
    word=st.text("abc桃", max_size=11), words=st.sets(st.text("abc桃", min_size=1, max_size=3), min_size=1, max_size=13)
)
def test_subwords_are_what_a_regular_expression_finds(word: str, words: set[str]) -> None:
    """Of alternatives it takes the first that fits, here the longest, and goes on after it."""
    alternatives = sorted(words - {word}, key=len, reverse=True)
    expected = re.findall("|".join(alternatives), word) if alternatives else []
    subwords = Vocabulary((*SPECIALS, *sorted(words))).find_subwords(word)
    assert subwords == expected
    assert all(subword in words and subword != word for subword in subwords)
