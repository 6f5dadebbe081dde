"""Rows of unknown words: against least squares in NumPy, and what they are good for."""

import numpy as np
import pytest
from composed_rows import composed_rows

from elmo_zh.reader import token_layer as module
from elmo_zh.reader.lstm import Floats
from elmo_zh.reader.token_layer import Composition, parts_of
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

CHARACTERS = "天气好人花山水云"
PAIRS = [first + second for first in CHARACTERS for second in CHARACTERS if first != second]
KNOWN, UNKNOWN = PAIRS[::2], PAIRS[1::2]
VOCABULARY = Vocabulary((*SPECIALS, *CHARACTERS, *KNOWN))


def drawn_table(seed: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(len(VOCABULARY), 5)).astype(np.float32)


def test_rows_are_those_of_ridge_regression() -> None:
    table = drawn_table(3)
    words = [*UNKNOWN, "天气好", "学好", "水水水"]
    parts = parts_of(VOCABULARY, words)
    expected = composed_rows(VOCABULARY.tokens, table, words)
    composition = Composition.learn(table, VOCABULARY)
    for word in words:
        np.testing.assert_allclose(composition.row(parts[word]), expected[word], rtol=1e-4, atol=1e-5)


def test_only_some_words_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    table = drawn_table(6)
    monkeypatch.setattr(module, "_MOST_LEFT_OUT", 3)
    monkeypatch.setattr(module, "_WORDS_TO_LEARN_FROM", len(CHARACTERS) - 3)
    # The first words that are not left out are characters.
    assert Composition.learn(table, VOCABULARY).matrix is None
    monkeypatch.setattr(module, "_WORDS_TO_LEARN_FROM", len(CHARACTERS) - 2)
    one = Composition.learn(table, VOCABULARY)
    others = [
        row for row, token in enumerate(VOCABULARY.tokens) if len(token) > 1 and token not in (*SPECIALS, KNOWN[0])
    ]
    table[others] = table[others][::-1]
    same = Composition.learn(table, VOCABULARY)
    assert one.matrix is not None
    assert same.matrix is not None
    np.testing.assert_allclose(one.matrix, same.matrix)
    monkeypatch.setattr(module, "_WORDS_TO_LEARN_FROM", len(CHARACTERS))
    assert not np.allclose(one.matrix, Composition.learn(table, VOCABULARY).matrix)


def test_parts_are_the_longest_known_words() -> None:
    vocabulary = Vocabulary((*SPECIALS, "天", "气", "天气", "好"))
    assert parts_of(vocabulary, ["好天气", "气候", "山"]) == {"好天气": [6, 5], "气候": [4]}
