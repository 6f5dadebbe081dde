"""What the functions for indexes and substitutes are given by mistake, and what they show of themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contexts.texts import LINES, build, write_text
from drawn_bundles import SHAPES, write_model
from messages import refusal_of

from elmo_zh import ContextIndex, ElmoEmbedder, find_senses, measure_drift
from elmo_zh.config import TextConfig
from elmo_zh.contexts.drift import Drift

MANY = "Call substitutes_many([(['我', '吃', '苹果'], 2)], top=20)."


@pytest.fixture(scope="module")
def predicting(tmp_path_factory: pytest.TempPathFactory) -> ElmoEmbedder:
    folder = tmp_path_factory.mktemp("predicting") / "model"
    text = TextConfig(segmenter="whitespace")
    return ElmoEmbedder.load(write_model(folder, SHAPES["token"], text=text, with_softmax=True), "cpu")


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (5, "substitutes_many: 5 is no list of pairs of tokens and a position."),
        (None, "substitutes_many: None is no list of pairs of tokens and a position."),
        ("我们", "substitutes_many: '我们' is no list of pairs of tokens and a position."),
        (["我们", "苹果"], "substitutes_many: '我们' is no pair of tokens and a position."),
        ([["我们", "苹果"]], "substitutes_many: ['我们', '苹果'] is no pair of tokens and a position."),
        ((["我们", "苹果"], 1), "substitutes_many: ['我们', '苹果'] is no pair of tokens and a position."),
        ([(["我们"], 0, 1)], "substitutes_many: (['我们'], 0, 1) is no pair of tokens and a position."),
        ([3], "substitutes_many: 3 is no pair of tokens and a position."),
    ],
)
def test_what_is_no_list_of_pairs(predicting: ElmoEmbedder, places: Any, expected: str) -> None:
    assert refusal_of(TypeError, lambda: predicting.substitutes_many(places)) == f"{expected} {MANY}"


def test_pairs_in_whatever_holds_them(predicting: ElmoEmbedder) -> None:
    expected = predicting.substitutes_many([(["我们", "苹果"], 1)])
    pairs: Any = iter([[np.array(["我们", "苹果"]), np.int64(1)]])
    assert predicting.substitutes_many(pairs) == expected
    wrong: Any = "苹果"
    told = refusal_of(TypeError, lambda: predicting.substitutes(["我们", "苹果"], wrong))
    assert told.startswith("substitutes: position='苹果', expected the place of a token")


# Indexes


def test_a_path_where_an_index_belongs(index: ContextIndex) -> None:
    wrong: Any
    for wrong, shown in (("a.index", "'a.index'"), (None, "'news.index'"), (Path("a.index"), "'a.index'")):
        calls: tuple[tuple[str, Callable[[Any], object]], ...] = (
            ("find_senses", lambda each: find_senses(each, "苹果")),
            ("measure_drift", lambda each: measure_drift(each, index)),
            ("measure_drift", lambda each: measure_drift(index, each)),
        )
        for name, call in calls:
            told = refusal_of(TypeError, lambda wrong=wrong, call=call: call(wrong))
            assert told == f"{name} takes a ContextIndex, found {wrong!r}. Open it: ContextIndex.load({shown})."
    for wrong in (None, 5, index):
        told = refusal_of(TypeError, lambda wrong=wrong: ContextIndex.load(wrong))
        assert told == f"ContextIndex.load: path is {wrong!r:.60}, expected the path of the folder of an index"


@pytest.mark.parametrize("wrong", ["苹果", None, 1.0, True])
def test_numbers_of_entries_that_are_none(index: ContextIndex, wrong: Any) -> None:
    for call, what, last in (
        (index.occurrence, "occurrence", len(index) - 1),
        (index.occurrences_beside, "occurrence", len(index) - 1),
        (index.line, "line", index.info["counts"]["kept_lines"] - 1),
    ):
        told = refusal_of(TypeError, lambda call=call: call(wrong))
        assert told == f"{what} {wrong!r}, expected its number in the index, from 0 to {last}"
        for number in (-1, last + 1):
            told = refusal_of(IndexError, lambda call=call, number=number: call(number))
            assert told == f"{what} {number}, expected a number from 0 to {last}"
        assert call(np.int64(last)) is not None


def test_a_word_in_place_of_a_vector(index: ContextIndex) -> None:
    vector = np.ones(index.dimension)
    for given in ("苹果", ["苹果", "手机"]):
        for call in (index.neighbours, index.neighbours_of_each):
            told = refusal_of(TypeError, lambda call=call, given=given: call(given, 1))
            assert told == (
                f"vector: {given!r}, expected numbers. The vectors of a word's occurrences are"
                " index.vectors_of(index.occurrences(word), layer)."
            )
    wrong: Any
    for wrong in ("5", 2.5, None):
        assert refusal_of(TypeError, lambda wrong=wrong: index.neighbours(vector, 1, top=wrong)) == (
            f"top: {wrong!r}, expected a whole number"
        )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"num_usages": "2"}, "num_usages='2', expected a whole number of 1 or more"),
        ({"num_usages": 2.5}, "num_usages=2.5, expected a whole number of 1 or more"),
        ({"seed": -1}, "seed=-1, expected a whole number from 0 to 4294967295"),
        ({"top": "x"}, "top='x', expected a whole number of 0 or more"),
    ],
)
def test_numbers_of_senses_that_are_none(index: ContextIndex, given: dict[str, Any], expected: str) -> None:
    assert refusal_of(ValueError, lambda: find_senses(index, "苹果", **given)) == f"find_senses: {expected}"


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ({"min_count": "2"}, ValueError, "min_count='2', expected a whole number of 2 or more"),
        ({"permutations": 2.5}, ValueError, "permutations=2.5, expected a whole number of 1 or more"),
        ({"seed": "x"}, ValueError, "seed='x', expected a whole number of 0 or more"),
        ({"by": 5}, ValueError, "by=5, expected excess, apd or prt"),
        ({"words": "苹果"}, TypeError, "words='苹果', expected a list of words, such as ['苹果']"),
        ({"words": 5}, TypeError, "words=5, expected a list of words, such as ['苹果']"),
    ],
)
def test_arguments_of_drift_that_are_none(
    index: ContextIndex, given: dict[str, Any], kind: type[Exception], expected: str
) -> None:
    assert refusal_of(kind, lambda: measure_drift(index, index, **given)) == f"measure_drift: {expected}"


def test_what_is_found_is_shown_in_a_few_lines(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = write_text(tmp_path / "a.txt", [f"{line} {number}" for number in range(9) for line in LINES])
    build(embedder, [path], tmp_path / "index", min_count=1)
    index = ContextIndex.load(tmp_path / "index")
    senses = find_senses(index, "苹果", num_usages=1)
    [usage] = senses.usages
    assert repr(senses) == f"Senses(word='苹果', layer=1, usages=({usage!r},))"
    assert repr(usage) == f"Usage(number=0, share=1.0, words={usage.words!r})"
    drift = measure_drift(index, index, min_count=2, permutations=10)
    assert len(drift.words) > 5
    assert repr(drift).startswith(f"<Drift of {len(drift.words)} words in layer 2 by excess: {drift.words[0].word} ")
    assert repr(drift).endswith(", ...>")
    assert len(repr(drift)) < 200
    few = Drift(words=drift.words[:1], layer=2, by="apd", num_shared=1)
    assert repr(few) == f"<Drift of 1 word in layer 2 by apd: {few.words[0].word} {few.words[0].apd:.3f}>"
