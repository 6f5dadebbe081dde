"""Words of a corpus from those of a sample."""

from collections import Counter
from dataclasses import replace

import pytest
from contract.command_line import ROOT

from elmo_zh.planning.plan import words_of


def counts_of(text: list[str]) -> list[int]:
    return [*Counter(line[place : place + 2] for line in text for place in range(0, len(line), 2)).values()]


def test_the_words_of_a_whole_corpus_are_counted() -> None:
    words = words_of([2, 5, 1], 1, 2)
    assert (words.distinct, words.frequent) == (3, 2)
    assert [words.share(number) for number in range(4)] == pytest.approx([0, 5 / 8, 7 / 8, 1])


def test_a_quarter_of_real_text_tells_the_words_of_all_of_it() -> None:
    paths = sorted((ROOT / "data" / "sample").iterdir())
    text = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    truth, found = words_of(counts_of(text), 1, 5), words_of(counts_of(text[::4]), 4, 5)
    assert found.distinct == pytest.approx(truth.distinct, rel=0.1)
    assert found.frequent == pytest.approx(truth.frequent, rel=0.1)
    for number in (100, 1000):
        assert found.share(number) == pytest.approx(truth.share(number), abs=0.03), number
    assert found.share(found.distinct) == 1


@pytest.mark.parametrize(("counts", "distinct"), [([1] * 200, 800), ([1000] * 100, 100)])
def test_growth_by_hand(counts: list[int], distinct: float) -> None:
    """Where every word is new, four times the text has four times the words; where all come again, it has no others."""
    assert words_of(counts, 4, 5).distinct == pytest.approx(distinct, rel=0.05)


def test_covered_by_hand() -> None:
    """Four words came once and two twice: 0.6 of a half of each count goes to words that the sample lacks."""
    words = words_of([1, 1, 1, 1, 2, 2], 1e9, 5)
    assert words.share(6) == pytest.approx((8 - 6 * 0.6 * 4 / 8) / 8)


@pytest.mark.parametrize(
    ("counts", "frequent", "expected"),
    [
        ([1] * 20_000, 20_000, 20_000),  # 95% of the text
        ([1] * 5000, 900, 1_000),  # all frequent words
        ([10**6] + [1] * 400_000, 300_000, 400_000),  # one percentage point less than all frequent words
    ],
)
def test_the_recommended_size(counts: list[int], frequent: int, expected: int) -> None:
    assert replace(words_of(counts, 1, 1), frequent=frequent).recommended_size() == expected
