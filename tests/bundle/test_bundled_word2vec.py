"""The word2vec vectors in a bundle, and those of a run."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from contract.command_line import PROJECTION, SampleRun
from messages import message_of

from elmo_zh import Word2Vec
from elmo_zh.bundle.word2vec_table import read_table, shorten
from elmo_zh.errors import BundleError, RunError
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary


def test_the_bundle_of_a_run_holds_its_vectors(sample_run: SampleRun) -> None:
    """Against the text file itself, read here line by line."""
    lines = (sample_run.path / "word2vec.txt").read_text(encoding="utf-8").splitlines()[1:]
    vectors = {word: np.array(numbers, np.float32) for word, *numbers in (line.split(" ") for line in lines)}
    of_bundle, of_run = Word2Vec.load(sample_run.model), Word2Vec.load(sample_run.path)
    np.testing.assert_array_equal(of_bundle.table, of_run.table)
    assert of_bundle.dimension == PROJECTION
    words = [*list(vectors)[:50], "没有这个词", "<UNK>"]
    [found] = of_bundle.embed_tokens([words])
    for word, vector in zip(words, found, strict=True):
        np.testing.assert_array_equal(vector, vectors.get(word, np.zeros(PROJECTION)).astype(np.float16))
    assert found.dtype == np.float32
    assert of_bundle.embed_tokens([[]])[0].shape == (0, PROJECTION)


def test_further_words_get_the_mean_of_their_parts() -> None:
    """By hand: 苹果树 is 苹果 and 树, 我x is 我; of 不 and <S> there is no part, and 苹果 stays as it is."""
    table = np.array([[0, 0], [0, 0], [0, 0], [1, 2], [3, 5], [7, 11]], np.float16)
    word2vec = Word2Vec(Vocabulary((*SPECIALS, "苹果", "树", "我")), table)
    few = word2vec.of_words(["苹果树", "我x", "不", "<S>", "苹果", "我x"])
    [found] = few.embed_tokens([["苹果树", "我x", "不", "<S>", "苹果", "树苹果"]])
    np.testing.assert_array_equal(found, [[2, 3.5], [7, 11], [0, 0], [0, 0], [1, 2], [0, 0]])
    assert few.table.dtype == np.float16
    np.testing.assert_array_equal(few.table[:3], table[:3])
    assert few.table.shape == (len(SPECIALS) + 5, 2)


def test_vectors_are_rounded_to_five_significant_bits() -> None:
    """By hand: 1.03 is 16.48 sixteenths, 1.04 is 16.64, -3.1 is -24.8 eighths; 65504 would become infinite."""
    values = np.array([[1.03, 1.04], [-3.1, 65504], [0, -1e-7]], np.float16)
    np.testing.assert_array_equal(shorten(values), [[1, 1.0625], [-3.125, 63488], [0, 0]])
    drawn = np.random.default_rng(1).normal(size=(500, 7)).astype(np.float16)
    np.testing.assert_allclose(shorten(drawn), drawn, rtol=1 / 32, atol=2**-18)


@pytest.mark.parametrize(
    ("shape", "value", "told"),
    [
        *((shape, 0, "dataset vectors is f") for shape in ((7, 5), (8,), ())),
        ((8, 5), np.inf, "numbers that are not finite"),
    ],
)
def test_a_table_of_another_vocabulary_is_refused(
    tmp_path: Path, shape: tuple[int, ...], value: float, told: str
) -> None:
    with h5py.File(tmp_path / "word2vec.hdf5", "w") as file:
        file.create_dataset("vectors", data=np.full(shape, value, np.float16))
    assert told in message_of(BundleError, lambda: read_table(tmp_path / "word2vec.hdf5", 8))


def test_a_run_without_vectors(run: Path) -> None:
    (run / "word2vec.txt").unlink()
    told = message_of(RunError, lambda: Word2Vec.load(run))
    assert told.startswith(f"{run} has no word2vec vectors")
