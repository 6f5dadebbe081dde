"""What models of tasks need of an embedder: normalised tokens, half precision."""

import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from drawn_bundles import TOKENS, P, write_model

from elmo_zh import ElmoEmbedder, UnknownWordsWarning
from elmo_zh.config import TextConfig

WORDS = ("我", "吃", "苹", "果", "，", "苹果", "。", "10")


@pytest.fixture(scope="module")
def embedder(by_character: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(by_character)


@pytest.mark.parametrize(
    ("given", "known"),
    [(["我", ",", "１０", "吃", "."], ["我", "，", "10", "吃", "。"]), (["桃", "!"], ["桃", "!"])],
    ids=["known", "unknown"],
)
def test_tokens_are_normalised_on_request(embedder: ElmoEmbedder, given: list[str], known: list[str]) -> None:
    np.testing.assert_array_equal(embedder.embed_tokens([given], normalise=True)[0], embedder.embed_tokens([known])[0])


@pytest.mark.parametrize(("num_commas", "is_warned"), [(4, False), (5, True)])
def test_a_warning_names_the_forms(tmp_path: Path, num_commas: int, is_warned: bool) -> None:
    embedder = ElmoEmbedder.load(write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig()))
    sentences: list[Sequence[str]] = [["我"] * 400, [","] * num_commas]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        embedder.embed_tokens(sentences)
        embedder.embed_tokens(sentences)
    told = [str(warning.message) for warning in found if warning.category is UnknownWordsWarning]
    assert len(told) == is_warned
    assert all("5 of 405 tokens" in line and "',' as '，'" in line for line in told)
    assert all(warning.filename == __file__ for warning in found)


def test_half_precision(embedder: ElmoEmbedder) -> None:
    half = ElmoEmbedder(embedder.bundle, "cpu", dtype="float16")
    lines = ["我吃苹果。", "", "我吃苹果。"]
    for found, exact in zip(half.embed(lines), embedder.embed(lines), strict=True):
        assert found.dtype == np.float16
        assert found.tolist() == exact.astype(np.float16).tolist()
    assert pickle.loads(pickle.dumps(half)).dtype == "float16"
    [sentence] = half.embed_iter(["果"])
    assert (sentence.vectors.dtype, sentence.vectors.shape) == (np.float16, (3, 1, 2 * P))
    stateful = ElmoEmbedder(embedder.bundle, "cpu", stateful=True, dtype="float16")
    assert stateful.embed(["果"])[0].dtype == np.float16
