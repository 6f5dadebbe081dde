"""Words of a corpus from those of a sample."""

from collections import Counter
from dataclasses import replace

import pytest
from contract.command_line import ROOT

from elmo_zh.config import VocabConfig
from elmo_zh.planning.words import grown, words_of


def counted(text: list[str]) -> tuple[Counter[str], Counter[str]]:
    """Pairs of characters, in two halves."""
    pairs = [
        [line[place : place + 2] for line in text for place in range(0, len(line), 2)]
        for text in (text[::2], text[1::2])
    ]
    return Counter(pairs[0]), Counter(pairs[1])


def test_the_words_of_a_whole_corpus_are_counted() -> None:
    halves = Counter("aaab"), Counter("aabc")
    words = words_of(halves, 1, VocabConfig(size=4))
    assert (words.distinct, words.frequent) == (3, 2)
    assert [words.share(number) for number in range(4)] == [0, 5 / 8, 7 / 8, 1]
    assert words.rows == 4
    assert words_of(halves, 1, VocabConfig(size=0)).rows == 5


def test_a_quarter_of_real_text_tells_the_words_of_all_of_it() -> None:
    paths = sorted((ROOT / "data" / "sample").iterdir())
    text = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    truth, found = words_of(counted(text), 1, VocabConfig()), words_of(counted(text[::4]), 4, VocabConfig())
    assert found.distinct == pytest.approx(truth.distinct, rel=0.1)
    assert found.frequent == pytest.approx(truth.frequent, rel=0.1)
    for number in (100, 1000):
        assert found.share(number) == pytest.approx(truth.share(number), abs=0.03), number
    assert found.share(found.distinct) == 1


def test_growth_by_hand() -> None:
    assert grown([100, 100], 200, 4) == pytest.approx(800, rel=0.05)  # every word is new
    assert grown([100, 100], 100, 4) == 100  # none is
    assert grown([0, 5], 5, 4) == 5
    assert grown([80, 90], 120, 1) == 120


@pytest.mark.parametrize(
    ("counts", "frequent", "expected"),
    [
        ({"a": 100, "b": 5}, 2, (1_000, "coverage")),
        ({f"{number}": 1 for number in range(5000)}, 900, (1_000, "min_count")),
        ({"a": 10**6, **{f"{number}": 1 for number in range(400_000)}}, 300_000, (1_000, "gain")),
    ],
)
def test_the_recommended_size_and_why(counts: dict[str, int], frequent: int, expected: tuple[int, str]) -> None:
    words = words_of((Counter(counts), Counter()), 1, VocabConfig(min_count=1))
    assert replace(words, frequent=frequent).recommended_size() == expected
