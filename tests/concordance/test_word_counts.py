"""Counts and measures, beside values worked by hand, SciPy, and a plain count of the sample text."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import jieba
import numpy as np
import pytest
from concordance.test_query import table_of
from scipy.stats import chi2_contingency, false_discovery_control

from elmo_zh.concordance.counts import collocates, compare_words, dispersion, frequencies, log_likelihood, most_frequent
from elmo_zh.concordance.kwic import Concordance
from elmo_zh.concordance.query import Query, TokenTable, find_matches
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import ElmoZhError
from elmo_zh.text.preparation import TextPreparation

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def find(table: TokenTable, query: str) -> Concordance:
    return Concordance.of_matches(table, find_matches(table, Query(query)))


def test_log_likelihood_is_that_of_scipy() -> None:
    tables = np.random.default_rng(5).integers(0, 40, (200, 2, 2)) + np.array([[0, 1], [1, 5]])
    found = log_likelihood(
        tables[:, 0, 0].astype(float),
        tables[:, 0].sum(axis=1).astype(float),
        tables[:, :, 0].sum(axis=1).astype(float),
        tables.sum(axis=(1, 2)).astype(float),
    )
    for own, value in zip(tables, found, strict=True):
        expected = chi2_contingency(own, correction=False, lambda_="log-likelihood")
        assert abs(value) == pytest.approx(expected.statistic, abs=1e-9)
        assert (value >= 0) == (own[0, 0] >= expected.expected_freq[0, 0])


def test_dispersion_worked_by_hand() -> None:
    """Gries 2008: shares of the parts 0.1, 0.2, 0.3, 0.4; of the word 1/6, 2/6, 3/6, 0: DP 0.4, normalised 4/9."""
    assert dispersion(np.array([1, 2, 3, 0]), np.array([10, 20, 30, 40])) == pytest.approx(0.4 / 0.9)
    assert dispersion(np.array([2, 4, 0]), np.array([5, 10, 0])) == pytest.approx(0)
    assert dispersion(np.array([0, 7]), np.array([90, 10])) == pytest.approx(1)
    assert dispersion(np.array([0, 0]), np.array([9, 1])) is None
    assert dispersion(np.array([3]), np.array([9])) is None


def test_collocates_worked_by_hand() -> None:
    """Windows of one token around 苹果: 吃 . | 个 红 | 红 ., where the second 苹果 stands at the end of its line."""
    table = table_of([["吃", "苹果", "。"], ["个", "红", "苹果"], ["红", "苹果", "。", "吃", "红"]])
    found = {each.word: each for each in collocates(find(table, "苹果"), (1, 1))}
    assert {word: (each.together, each.count) for word, each in found.items()} == {"吃": (1, 2), "红": (2, 3)}
    red = found["红"]
    assert red.expected == pytest.approx(5 * 3 / 8)  # five places in windows, eight tokens that are not 苹果
    rest = np.array([[2, 3], [1, 2]])
    assert red.log_likelihood == pytest.approx(
        chi2_contingency(rest, correction=False, lambda_="log-likelihood").statistic
    )
    assert red.log_dice == pytest.approx(14 + np.log2(2 * 2 / (3 + 3)))
    assert [each.word for each in collocates(find(table, "苹果"), (1, 1), least=2)] == ["红"]
    assert {each.word for each in collocates(find(table, "苹果"), (2, 0))} == {"吃", "个", "红"}


def test_frequencies_by_part() -> None:
    table = table_of([["一", "二"], ["一"], ["一", "一", "二"], [], ["三"]], [{"year": y} for y in "88999"])
    everywhere, first_four = np.full(5, True), np.arange(5) < 4
    rows = frequencies("一", table, everywhere, find(table, "一").lines, table.columns["year"], by_part=True)
    assert [(row.part, row.count) for row in rows] == [("all", 4), ("8", 2), ("9", 2)]
    assert rows[0].per_million == pytest.approx(4 / 7 * 1e6)
    assert rows[0].dispersion == pytest.approx(abs(0.5 - 3 / 7) / (1 - 3 / 7))
    [chosen] = frequencies("一", table, first_four, find(table, "一").lines, table.columns["year"], by_part=False)
    assert (chosen.count, chosen.per_million) == (4, pytest.approx(4 / 6 * 1e6))
    everything = most_frequent(table, first_four, table.columns["year"])
    assert [(row.name, row.count) for row in everything] == [("一", 4), ("二", 2)]
    assert everything[0].dispersion == pytest.approx((3 / 6 - 2 / 4) / 0.5)


def test_keywords_compare_two_sets_of_lines() -> None:
    table = table_of([["改革", "开放", "，"]] * 6 + [["足球", "开放"]] * 4)
    first = np.array([True] * 6 + [False] * 4)
    found = compare_words((table, first), (table, ~first))
    assert [(each.word, each.count, each.other_count) for each in found] == [("改革", 6, 0), ("开放", 6, 4)]
    expected = chi2_contingency([[6, 12], [0, 8]], correction=False, lambda_="log-likelihood")
    assert (found[0].log_likelihood, found[0].p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found[0].log_ratio == pytest.approx(np.log2((6 / 18) / (0.5 / 8)))
    assert [each.q for each in found] == pytest.approx(false_discovery_control([each.p for each in found]).tolist())
    # Half an occurrence in one token would be more frequent than 乙 is elsewhere.
    small = table_of([["甲"], ["乙", *["丙"] * 30]])
    ratios = {
        word.word: word.log_ratio
        for word in compare_words((small, np.array([True, False])), (small, np.array([False, True])), least=1)
    }
    assert ratios["甲"] > 0 >= max(ratios["乙"], ratios["丙"])
    with pytest.raises(ElmoZhError, match="One of the two sets of lines contains no tokens"):
        compare_words((table, first), (table, np.zeros(10, np.bool_)))


def test_counts_of_the_sample_are_those_of_a_plain_count() -> None:
    """Twenty drawn words and phrases of the sample, counted in jieba's tokens by other means."""
    config = TextConfig()
    texts = [input_text(source, config) for source in find_sources([str(SAMPLE)]).sources]
    table = TokenTable.of_texts(texts, TextPreparation.build(config))
    lines = [
        [token for token in jieba.lcut(line) if not token.isspace()]
        for path in sorted(SAMPLE.glob("*.txt"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    words = Counter(token for line in lines for token in line)
    pairs = Counter(pair for line in lines for pair in pairwise(line) if pair[0] != pair[1])
    draw = np.random.default_rng(11)
    chosen = [word for word in sorted(words) if word.isalpha() and words[word] > 3]
    for word in draw.choice(chosen, 10, replace=False).tolist():
        assert sum(found == word for found in table.tokens(0, len(table.words))) == words[word]
        parts = [end - first for first, end in zip(*find_matches(table, Query(word)), strict=True)]
        assert parts.count(1) == words[word]
    common = sorted(pair for pair, count in pairs.items() if count > 2 and all(map(str.isalpha, pair)))
    for number in draw.choice(len(common), 10, replace=False).tolist():
        first, end = find_matches(table, Query(" ".join(common[number])))
        assert (end - first == 2).sum() == pairs[common[number]]
