"""Words used differently in two texts: the measures beside plain NumPy, the tests by simulation, and the command."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contexts.texts import build, indexed, model_of_words, write_text
from contract.command_line import elmo_zh
from drawn_bundles import WORDS

from elmo_zh import ContextIndex, ElmoEmbedder, measure_drift
from elmo_zh.contexts import drift_statistics
from elmo_zh.contexts.drift import moved_lines, periods_of
from elmo_zh.contexts.drift_statistics import (
    MEASURES,
    DocumentSums,
    bootstrap_interval,
    compare_groups,
    distinct_rows,
    permutation_test,
)
from elmo_zh.errors import ElmoZhError

Indexes = tuple[ContextIndex, ContextIndex]


def drawn_units(generator: np.random.Generator, num_rows: int, dimension: int, shift: float = 0.0) -> np.ndarray:
    vectors = generator.standard_normal((num_rows, dimension))
    # As vectors of language models are, all in about one direction.
    vectors[:, 0] += 2
    vectors[:, 1] += shift
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def plain_distances(old: np.ndarray, new: np.ndarray) -> dict[str, float]:
    def within(group: np.ndarray) -> float:
        return float(np.mean([1 - first @ second for first, second in combinations(group, 2)]))

    apd = float(np.mean([1 - first @ second for first in old for second in new]))
    means = old.mean(axis=0), new.mean(axis=0)
    prt = 1 - means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    spreads = within(old), within(new)
    return {
        "apd": apd, "prt": float(prt), "old_spread": spreads[0], "new_spread": spreads[1],
        "excess": apd - sum(spreads) / 2,
    }  # fmt: skip


def entropy(shares: np.ndarray) -> float:
    return -sum(share * np.log2(share) for share in shares if share)


def plain_jsd(old: np.ndarray, new: np.ndarray) -> float:
    """Of the numbers of occurrences in each cluster."""
    first, second = old / old.sum(), new / new.sum()
    return entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2


def documents_of_one(units: np.ndarray) -> DocumentSums:
    """Every unit vector is a document."""
    return DocumentSums.of(units, np.arange(len(units)))


def topical(generator: np.random.Generator, num_documents: int, dimension: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Documents of some occurrences each, which lie together, since a document has a topic."""
    sizes = generator.integers(1, 9, num_documents)
    topics = np.repeat(generator.standard_normal((num_documents, dimension)), sizes, axis=0)
    vectors = topics + 0.5 * generator.standard_normal(topics.shape)
    vectors[:, 0] += 2
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.repeat(np.arange(num_documents), sizes)


def random_lines(seed: int, num_lines: int, words: Sequence[str] = WORDS) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(words, generator.integers(3, 9))) for _ in range(num_lines)]


@pytest.fixture(scope="module")
def folder(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of two texts: 苹果 is beside other words in the new one, and 手机 is too rare."""
    folder = tmp_path_factory.mktemp("drift")
    old = [*random_lines(1, 40), *("今天 苹果 吃",) * 30, *random_lines(2, 15, ("吃", "我们", "苹果")), "手机 吃"]
    new = [*random_lines(3, 30), *random_lines(4, 40, ("。", "苹果", "贵")), "手机 贵"]
    for name, lines in (("old", old), ("new", new)):
        build(embedder, [write_text(folder / f"{name}.txt", lines)], folder / f"{name}.index", min_count=1)
    return folder


@pytest.fixture(scope="module")
def indexes(folder: Path) -> Indexes:
    return ContextIndex.load(folder / "old.index"), ContextIndex.load(folder / "new.index")


@pytest.mark.parametrize(("num_old", "num_new", "dimension"), [(2, 3, 5), (13, 7, 31), (29, 41, 11)])
def test_the_measures_are_those_of_all_pairs(num_old: int, num_new: int, dimension: int) -> None:
    generator = np.random.default_rng(num_old)
    groups = drawn_units(generator, num_old, dimension), drawn_units(generator, num_new, dimension, 0.5)
    labels = [generator.integers(0, 3, len(each)) for each in groups]
    pairs = zip(groups, labels, strict=True)
    found = compare_groups(*(DocumentSums.of(units, np.arange(len(units)) // 2 * 7, own, 3) for units, own in pairs))
    for name, expected in plain_distances(*groups).items():
        assert found[name] == pytest.approx([expected], abs=1e-12), name
    assert found["jsd"] == pytest.approx([plain_jsd(*(np.bincount(own, minlength=3) for own in labels))], abs=1e-12)


def test_equal_vectors_count_once_and_zeros_not_at_all() -> None:
    rows = np.array([[0, 0], [3, 4], [1, 0], [3, 4], [6, 8]], np.float16)
    assert distinct_rows(rows).tolist() == [1, 2, 4]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("dimension", [3, 17])
def test_p_is_the_share_of_all_divisions_of_the_documents(
    measure: str, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven documents of one to three occurrences have 35 divisions, which are all tried here."""
    monkeypatch.setattr(drift_statistics, "_ENOUGH", 10**9)
    monkeypatch.setattr(drift_statistics, "_BLOCK_NUMBERS", 7 * 997)
    generator = np.random.default_rng(dimension)
    documents = np.repeat(np.arange(7), [1, 3, 2, 1, 2, 3, 1])
    vectors, labels = drawn_units(generator, len(documents), dimension), generator.integers(0, 3, len(documents))

    def distance(inside: np.ndarray) -> float:
        if measure == "jsd":
            return plain_jsd(*(np.bincount(labels[own], minlength=3) for own in (inside, ~inside)))
        return plain_distances(vectors[inside], vectors[~inside])[measure]

    divisions = [np.isin(documents, chosen) for chosen in combinations(range(7), 4)]
    values = [distance(inside) for inside in divisions]
    for inside, value in list(zip(divisions, values, strict=True))[::9]:
        groups = [DocumentSums.of(vectors[own], documents[own], labels[own], 3) for own in (inside, ~inside)]
        p, baseline = permutation_test(*groups, measure, 20_000, generator)
        assert p == pytest.approx(np.mean(np.array(values) >= value - 1e-10), abs=0.015)
        assert baseline == pytest.approx(np.mean(values), abs=0.03 * np.ptp(values))


@pytest.mark.parametrize("measure", ["excess", "apd", "prt"])
def test_p_is_uniform_if_only_the_topics_of_documents_differ(measure: str) -> None:
    """Whatever the numbers of documents; 600 draws have a standard error of 0.009 at 0.05."""
    generator = np.random.default_rng(11)
    found, by_lines = [], []
    for num_old, num_new in ((5, 5), (5, 23), (17, 11)) * 200:
        groups = topical(generator, num_old), topical(generator, num_new)
        found.append(permutation_test(*(DocumentSums.of(*each) for each in groups), measure, 499, generator)[0])
        if len(by_lines) < 100:
            by_lines.append(
                permutation_test(*(documents_of_one(units) for units, _ in groups), measure, 499, generator)[0]
            )
    for level in (0.05, 0.2, 0.5, 0.8):
        share = np.mean(np.array(found) <= level)
        assert share == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / len(found)))
    assert np.mean(np.array(by_lines) <= 0.05) > 0.25  # which is why occurrences are not drawn


@pytest.mark.parametrize("measure", ["excess", "apd"])
def test_the_interval_holds_the_distance_of_all_documents_nineteen_times_in_twenty(measure: str) -> None:
    generator = np.random.default_rng(3)
    whole = topical(generator, 4000), topical(generator, 4000)
    whole[1][0][:, 1] += 0.7
    whole[1][0][:] /= np.linalg.norm(whole[1][0], axis=1, keepdims=True)
    true = compare_groups(*(DocumentSums.of(*each) for each in whole))[measure][0]
    hits = []
    for _ in range(200):
        drawn = [np.isin(documents, generator.choice(4000, 40, replace=False)) for _, documents in whole]
        groups = [DocumentSums.of(units[own], places[own]) for (units, places), own in zip(whole, drawn, strict=True)]
        low, high = bootstrap_interval(*groups, measure, generator)
        hits.append(low <= true <= high)
    assert 0.9 <= np.mean(hits) <= 0.99


def q_by_hand(p: np.ndarray) -> list[float]:
    """The least share of false discoveries among the words with a p of this size or any larger one."""
    return [min(1, *(len(p) * limit / np.sum(p <= limit) for limit in p[p >= own])) for own in p]


def test_words_of_two_indexes(indexes: Indexes) -> None:
    found = measure_drift(*indexes, min_count=5, permutations=499)
    assert (found.layer, found.by) == (2, "excess")
    assert {each.word for each in found.words} <= set(WORDS)
    assert "手机" not in {each.word for each in found.words}
    for each in found.words:
        groups = []
        for index in indexes:
            rows = np.array(index.vectors(2))[index.occurrences(each.word)].astype(np.float64)
            rows = np.unique(rows, axis=0)
            groups.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        assert (each.old_compared, each.new_compared) == (len(groups[0]), len(groups[1]))
        for name, expected in plain_distances(*groups).items():
            assert getattr(each, name) == pytest.approx(expected, abs=1e-12), name
    assert found.words == tuple(sorted(found.words, key=lambda each: -each.excess))
    apple = next(each for each in found.words if each.word == "苹果")
    assert apple.old_count > apple.old_compared + 28  # a line repeated thirty times counts once
    assert [each.q for each in found.words] == pytest.approx(q_by_hand(np.array([each.p for each in found.words])))


def test_lines_that_moved_most(indexes: Indexes) -> None:
    old, new = moved_lines(*periods_of(indexes, None), "苹果", 2, 4)
    units = []
    for index in indexes:
        rows = np.array(index.vectors(2))[index.occurrences("苹果")].astype(np.float64)
        units.append(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    means = [each.mean(axis=0) / np.linalg.norm(each.mean(axis=0)) for each in units]
    for found, own, index in ((old, 0, indexes[0]), (new, 1, indexes[1])):
        assert len({each.line.text for each in found}) == 4
        differences = units[own] @ means[1 - own] - units[own] @ means[own]
        number = found[0].occurrence.number
        best = int(index.occurrences("苹果").tolist().index(number))
        assert differences[best] == pytest.approx(differences.min())
        assert found[0].cosine == pytest.approx(float(units[own][best] @ means[1 - own]))
        assert "苹果" in found[0].line.text


def test_what_cannot_be_compared(indexes: Indexes, folder: Path, embedder: ElmoEmbedder, tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"layer": 7}, "has no vectors for layer 7"),
        ({"min_count": 5000}, "No word occurs in at least 5000 different sentences"),
        ({"words": ["香蕉"]}, "No word occurs in at least 10 different sentences"),
    ]
    for options, expected in wrong:
        with pytest.raises(ElmoZhError, match=expected):
            measure_drift(*indexes, **options)
    with pytest.raises(ValueError, match=r"layer is 0; expected a whole number \(x>=1\)"):
        measure_drift(*indexes, layer=0)
    other = ElmoEmbedder.load(model_of_words(tmp_path / "other", seed=5), "cpu")
    half = ElmoEmbedder.load(embedder.bundle.path, "cpu", precision="bfloat16")
    new = [folder / "new.txt"]
    for name, reader in (("model", other), ("precision", half)):
        with pytest.raises(ElmoZhError, match="so their vectors cannot be compared"):
            measure_drift(indexes[0], indexed(reader, new, tmp_path / name, min_count=1))
    first, second = (indexed(embedder, new, tmp_path / str(each), layers=(each,), min_count=1) for each in (1, 2))
    assert measure_drift(indexes[0], first, permutations=9).layer == 1
    with pytest.raises(ElmoZhError, match="has no vectors for layer 2"):
        measure_drift(second, first)


def test_what_the_command_warns_of(folder: Path, tmp_path: Path) -> None:
    words = write_text(tmp_path / "words", ["苹果", "香蕉", "手机"])
    arguments = ("drift", folder / "old.index", folder / "new.index", "--words", words, "--min-count", "5")
    few = elmo_zh(*arguments, "--permutations", "9")
    assert "could not be compared: 手机, 香蕉." in few.stderr
    assert "Use --permutations 21" in few.stderr
    assert "--permutations" not in elmo_zh(*arguments).stderr


def test_a_word_does_not_depend_on_others(indexes: Indexes) -> None:
    every = measure_drift(*indexes, min_count=5, permutations=99, by="apd")
    only = measure_drift(*indexes, min_count=5, permutations=99, by="apd", words=["苹果", "手机"])
    [apple] = only.words
    assert apple.q == apple.p
    assert [each.p for each in every.words if each.word == "苹果"] == [apple.p]
    assert measure_drift(*indexes, min_count=5, permutations=99, by="apd") == every
    reverse = measure_drift(*indexes[::-1], min_count=5, words=["苹果"], layer=1).words[0]
    forward = measure_drift(*indexes, min_count=5, words=["苹果"], layer=1).words[0]
    assert reverse.excess == pytest.approx(forward.excess, abs=1e-12)
