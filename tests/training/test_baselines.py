"""The n-gram baselines against a plain version in fractions, with loops and dictionaries."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_zh.id_store import EncodedSentences, HeldoutSentences, IdStore
from elmo_zh.training import evaluation as module
from elmo_zh.training.evaluation import KneserNeyBigram, measure_baselines
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary

BEGIN, END, UNKNOWN = 0, 1, 2
ROWS = 11
# Five sentences with unknown words, repetitions, an empty sentence, words that occur once, and unseen rows (9, 10).
TRAIN = [[3, 4, 5], [3, 4, 6, 2], [], [7, 3, 4, 5, 8], [4, 4, 2]]
HELDOUT = [[3, 4, 6], [9, 10, 3], [], [2, 8], [5, 5, 4]]

Pairs = list[tuple[int, int]]
SENTENCES = st.lists(st.lists(st.integers(2, ROWS - 1), max_size=5), min_size=1, max_size=7)


def arrays(sentences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([word for words in sentences for word in words], np.uint16)
    return ids, np.cumsum([0, *map(len, sentences)]).astype(np.uint64)


def encoded(sentences: Sequence[Sequence[int]]) -> EncodedSentences:
    return EncodedSentences(*arrays(sentences))


def held_out(sentences: Sequence[Sequence[int]]) -> HeldoutSentences:
    nothing = np.zeros(len(sentences))
    return HeldoutSentences(*arrays(sentences), nothing.astype(np.uint32), nothing)


def measure(train: EncodedSentences, heldout: HeldoutSentences, rows: int, seed: int) -> dict[str, float]:
    words = [f"w{row}" for row in range(rows - len(SPECIALS))]
    return measure_baselines(IdStore(train, heldout, Lexicon(Vocabulary([*SPECIALS, *words]), None)), seed)


def pairs_of(sentences: Sequence[Sequence[int]], backward: bool) -> Pairs:
    found = []
    for words in sentences:
        marked = [BEGIN, *words, END]
        if backward:
            marked.reverse()
        for place in range(1, len(marked)):
            found.append((marked[place - 1], marked[place]))
    return found


def discount_of(counts: Sequence[int]) -> Fraction:
    once, twice = (sum(count == number for count in counts) for number in (1, 2))
    return Fraction(once, once + 2 * twice) if once else Fraction(1, 2)


def plain_kneser_ney(training: Pairs, num_outcomes: int, context: int, word: int) -> Fraction:
    """Return P(word | context) as in Chen and Goodman, counting again for each call."""
    bigrams = Counter(training)
    before = Counter(pair[1] for pair in bigrams)
    lower_discount = discount_of(list(before.values()))
    lower = max(before[word] - lower_discount, Fraction(0)) / len(bigrams)
    lower += lower_discount * len(before) / len(bigrams) / num_outcomes
    total = sum(count for pair, count in bigrams.items() if pair[0] == context)
    if total == 0:
        return lower
    discount = discount_of(list(bigrams.values()))
    followers = sum(pair[0] == context for pair in bigrams)
    return max(bigrams[context, word] - discount, Fraction(0)) / total + discount * followers / total * lower


def plain_unigram(training: Pairs, num_outcomes: int, word: int) -> Fraction:
    return Fraction(sum(pair[1] == word for pair in training) + 1, len(training) + num_outcomes)


def bigram_model(training: Pairs, start: int) -> KneserNeyBigram:
    context, word = np.array(training).T
    return KneserNeyBigram(context, word, ROWS, start)


def probability(model: KneserNeyBigram, context: int, word: int) -> float:
    return float(model.probabilities(np.array([context]), np.array([word]))[0])


def test_both_baselines_equal_the_plain_version_on_five_sentences() -> None:
    found = measure(encoded(TRAIN), held_out(HELDOUT), ROWS, seed=1)
    unigram = bigram = 0.0
    for backward in (False, True):
        training = pairs_of(TRAIN, backward)
        for context, word in pairs_of(HELDOUT, backward):
            unigram -= math.log(plain_unigram(training, ROWS - 1, word)) / 2
            bigram -= math.log(plain_kneser_ney(training, ROWS - 1, context, word)) / 2
    assert found["unigram"] == pytest.approx(unigram, rel=1e-12)
    assert found["bigram"] == pytest.approx(bigram, rel=1e-12)


@settings(deadline=None, max_examples=101)
@given(SENTENCES, st.booleans())
def test_every_probability_equals_the_plain_version_and_they_sum_to_one(
    sentences: list[list[int]], backward: bool
) -> None:
    training = pairs_of(sentences, backward)
    start, end = (END, BEGIN) if backward else (BEGIN, END)
    model = bigram_model(training, start)
    outcomes = [word for word in range(ROWS) if word != start]
    for context in range(ROWS):
        if context == end:
            continue
        found = model.probabilities(np.full(len(outcomes), context), np.array(outcomes))
        assert found.sum() == pytest.approx(1)
        expected = [float(plain_kneser_ney(training, ROWS - 1, context, word)) for word in outcomes]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert probability(model, context, start) == 0
        assert (found > 0).all()  # every word has some probability, seen or not


def test_without_heldout_text() -> None:
    assert measure(encoded(TRAIN), held_out([]), ROWS, seed=1) == {"unigram": 0.0, "bigram": 0.0}


def test_of_much_text_a_seeded_choice_within_the_limit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(7)
    sentences = [generator.integers(3, ROWS, size=int(length)).tolist() for length in generator.integers(1, 31, 211)]
    counted: list[int] = []

    class Counting(KneserNeyBigram):
        def __init__(self, context: np.ndarray, target: np.ndarray, rows: int, start: int) -> None:
            counted.append(int((target >= 2).sum()))
            super().__init__(context, target, rows, start)

    monkeypatch.setattr(module, "KneserNeyBigram", Counting)
    monkeypatch.setattr(module, "MAX_TRAIN_TOKENS", 997)
    parts, again = ([measure(encoded(sentences), held_out(HELDOUT), ROWS, seed=s) for s in range(11)] for _ in range(2))
    assert parts == again
    assert len({tuple(part.values()) for part in parts}) == 11
    assert 997 - 131 < min(counted) <= max(counted) <= 997
