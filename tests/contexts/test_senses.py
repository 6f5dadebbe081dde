"""Usages of a word: clusters of drawn vectors with known truth, and the command on a drawn model."""

from pathlib import Path

import numpy as np
import pytest
from contexts.texts import indexed, write_text
from contract.command_line import elmo_zh

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'scikit-learn>=1.6'")

from elmo_zh import ContextIndex, ElmoEmbedder, find_senses
from elmo_zh.contexts import nearest as nearest_module
from elmo_zh.contexts import senses as senses_module
from elmo_zh.contexts.senses import (
    ClusterChoice,
    choose_number,
    find_clusters,
    join_directions,
    telling_words,
    usage_layer,
    usage_vectors,
)
from elmo_zh.errors import ElmoZhError

# 苹果 stands between two kinds of neighbours, and one line is repeated.
LINES = (
    *(f"{'今天 ' * number}我们 吃 苹果 。" for number in range(6)),
    *(f"苹果 手机 {'很 贵 ' * number}" for number in range(6)),
    "我们 吃 苹果 。",
    "今天 米饭",
)


@pytest.fixture(scope="module")
def senses_index(embedder: ElmoEmbedder, tmp_path_factory: pytest.TempPathFactory) -> ContextIndex:
    folder = tmp_path_factory.mktemp("senses")
    return indexed(embedder, [write_text(folder / "a.txt", LINES)], folder / "a.index", min_count=1)


def drawn_groups(sizes: tuple[int, ...], distance: float, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors around as many centres, and the number of the centre of each."""
    generator = np.random.default_rng(seed)
    centres = distance * np.eye(31)[: len(sizes)]
    truth = np.repeat(np.arange(len(sizes)), sizes)
    order = generator.permutation(len(truth))
    vectors = 3 + centres[truth] + 0.3 * generator.standard_normal((len(truth), 31))
    return vectors[order].astype(np.float16), truth[order]


@pytest.mark.parametrize("sizes", [(60, 30), (50, 40, 20), (70, 30, 20, 15)])
def test_groups_far_apart_are_found(sizes: tuple[int, ...]) -> None:
    vectors, truth = drawn_groups(sizes, 6.0)
    found = find_clusters(vectors)
    np.testing.assert_array_equal(found.labels, truth)  # the largest is the first
    assert found.choice.candidate == found.choice.number == len(sizes) == len(found.centres)
    for label in range(len(sizes)):
        np.testing.assert_allclose(found.centres[label], found.places[truth == label].mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_cloud_is_one_cluster_whatever_its_shape(seed: int) -> None:
    generator = np.random.default_rng(seed)
    cloud = generator.standard_normal((90, 31)) * np.linspace(5, 0.1, 31)
    found = find_clusters(cloud + 20)
    assert len(found.centres) == 1
    assert not found.labels.any()
    assert len(find_clusters(np.ones((50, 7))).centres) == 1
    assert choose_number(np.eye(9), 1) == ClusterChoice()


def test_blurred_groups_are_two_whatever_number_is_the_candidate() -> None:
    vectors, truth = drawn_groups((60, 50, 40), 1.1)
    found = find_clusters(vectors)
    assert found.choice.candidate == 3
    assert found.choice.silhouette < 0.5
    assert found.choice.number == len(found.centres) == 2
    # Each group stays whole.
    assert all(np.bincount(found.labels[truth == group], minlength=2).min() <= 3 for group in range(3))


def test_directions_of_an_occurrence_and_of_its_surroundings() -> None:
    """Worked by hand: both from their mean, of length 1; an occurrence without words around it does not count."""
    own = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    around = np.array([[0.5, 0.1], [0.1, 0.5], [0.0, 0.0]])
    found = join_directions(own, around)
    assert found.shape == (3, 4)
    root = np.sqrt(0.5)
    np.testing.assert_allclose(found[:, 2:], [[root, -root], [-root, root], [0, 0]], atol=1e-12)
    from_mean = own - [1.6 / 3, 0.6]
    np.testing.assert_allclose(found[:, :2], from_mean / np.linalg.norm(from_mean, axis=1, keepdims=True), atol=1e-12)


def test_vectors_of_usages_have_those_of_the_other_words_in_the_line(
    senses_index: ContextIndex, embedder: ElmoEmbedder, tmp_path: Path
) -> None:
    numbers = senses_index.occurrences("苹果")
    free, units = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (np.array(senses_index.vectors(layer), np.float64) for layer in (0, 1))
    )
    everything = [senses_index.occurrence(number) for number in range(len(senses_index))]
    around, near = [], []
    for number in numbers.tolist():
        beside = [each.number for each in everything if each.line == everything[number].line and each.number != number]
        assert senses_index.occurrences_beside(number).tolist() == beside
        around.append(units[beside].mean(axis=0))
        distances = np.abs([everything[each].token - everything[number].token for each in beside])
        own = free[beside].T @ np.where(distances <= 8, 1 / (1 + 0.15 * distances), 0)
        near.append(own / np.linalg.norm(own))
    expected = join_directions(units[numbers], np.stack(around), np.stack(near))
    np.testing.assert_allclose(usage_vectors(senses_index, 1, numbers), expected, atol=1e-9)
    without = indexed(embedder, [write_text(tmp_path / "a.txt", LINES)], tmp_path / "a.index", min_count=1, layers=(1,))
    found = usage_vectors(without, 1, numbers)
    np.testing.assert_allclose(
        found, np.where(np.arange(found.shape[1]) * 3 < 2 * found.shape[1], expected, 0), atol=1e-9
    )
    assert usage_layer(senses_index) == 1


def test_usages_of_a_word(senses_index: ContextIndex) -> None:
    found = find_senses(senses_index, "苹果", num_usages=2, layer=1)
    assert found.layer == 1
    assert found.is_repeated.tolist() == [False] * 12 + [True]
    assert found.labels[12] == found.labels[0]
    assert sum(usage.share for usage in found.usages) == pytest.approx(1)
    vectors = np.array(senses_index.vectors(1)[found.occurrences], np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for usage in found.usages:
        own = np.flatnonzero((found.labels == usage.number) & ~found.is_repeated)
        assert usage.share == len(own) / 12 == len(usage.nearest) / 12
        centre = units[own].mean(axis=0)
        np.testing.assert_allclose(usage.centre, centre, atol=1e-12)
        cosines = units[own] @ centre / np.linalg.norm(centre)
        np.testing.assert_allclose(found.cosines[own], cosines, atol=1e-12)
        shown = [each.cosine for each in usage.nearest]
        np.testing.assert_allclose(shown, np.sort(cosines)[::-1], atol=1e-12)
        assert "苹果" not in usage.words
        assert {each.occurrence.word for each in usage.nearest} == {"苹果"}


@pytest.mark.parametrize(("block", "num_nearest"), [(4096, 200), (7, 5)])
def test_telling_words_of_many_words_in_blocks(
    senses_index: ContextIndex, monkeypatch: pytest.MonkeyPatch, block: int, num_nearest: int
) -> None:
    """Words and their ranks are those of a plain product over the whole index, whatever the blocks."""
    monkeypatch.setattr(nearest_module, "_BLOCK", block)
    monkeypatch.setattr(senses_module, "_NUM_NEAREST", num_nearest)
    vectors = np.array(senses_index.vectors(2), np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    spelled = [senses_index.occurrence(row).word for row in range(len(senses_index))]
    generator = np.random.default_rng(3)
    words = [
        (word, vectors[generator.choice(len(vectors), count)]) for word, count in (("苹果", 3), ("很", 2), ("吃", 1))
    ]
    compared: list[int] = []
    answers = telling_words(senses_index, words, 2, 4, compared.append)
    assert sum(compared) == len(senses_index)
    for (word, centres), found in zip(words, answers, strict=True):
        cosines = units @ (centres / np.linalg.norm(centres, axis=1, keepdims=True)).T
        for usage, told in enumerate(found):
            mine = cosines[:, usage]
            others = np.delete(cosines, usage, axis=1)
            leads = (mine - others.max(axis=1) if others.shape[1] else 0 * mine).round(6)
            rows = [row for row in range(len(mine)) if leads[row] >= 0 and spelled[row] != word]
            rows = sorted(rows, key=lambda row: (-mine[row].round(6), row))[:num_nearest]
            rows.sort(key=lambda row: (-(mine[row] + leads[row]).round(6), row))
            assert told == list(dict.fromkeys(spelled[row] for row in rows))[:4]


def test_wrong_input(senses_index: ContextIndex) -> None:
    for word, num_usages, layer, message in (
        ("苹", None, None, "苹 is not in .*\\. Use a word"),
        ("米饭", None, None, "米饭 has too few different .* for 2 usages: 1 "),
        ("苹果", 13, None, "苹果 has too few different .* for 13 usages: 12 "),
        (
            "苹果",
            2,
            0,
            "苹果 has too few different occurrences in layer 0 .* for 2 usages: 1 .* choose another --layer",
        ),
        ("苹果", 2, 7, "has no vectors for layer 7"),
    ):
        with pytest.raises(ElmoZhError, match=message):
            find_senses(senses_index, word, num_usages=num_usages, layer=layer)


def test_the_command(senses_index: ContextIndex) -> None:
    arguments = ("senses", "苹果", "--index", senses_index.path, "--usages", "2")
    found = elmo_zh(*arguments, "--json", "--output", "a.tsv", "--by", "source")
    result = found.result()
    assert list(result["by"].values()) == [[usage["occurrences"] for usage in result["usages"]]]
    assert (result["occurrences"], result["repeated"], result["output"]) == (12, 1, "a.tsv")
    assert sum(usage["occurrences"] for usage in result["usages"]) == 12
    written = Path("a.tsv").read_bytes()
    rows = [row.split("\t") for row in written.decode().splitlines()[1:]]
    labels = find_senses(senses_index, "苹果", num_usages=2).labels
    assert [tuple(map(int, row[:2])) for row in rows] == [*zip(senses_index.occurrences("苹果"), labels, strict=True)]
    assert [row[3] for row in rows] == ["0"] * 12 + ["1"]
    shown = elmo_zh(*arguments, "--output", "a.tsv", "--force")
    assert Path("a.tsv").read_bytes() == written
    assert [line.split() for line in shown.stdout.splitlines()[1:4]] == [
        ["layer:", "1"], ["occurrences:", "12"], ["repeated:", "1"]
    ]  # fmt: skip
    assert shown.stdout.endswith(f"elmo-zh explore {senses_index.path} --word 苹果\n")


def test_of_very_many_vectors_a_sample_is_clustered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(senses_module, "MOST_FITTED", 40)
    vectors, truth = drawn_groups((120, 70), 6.0)
    np.testing.assert_array_equal(find_clusters(vectors).labels, truth)
