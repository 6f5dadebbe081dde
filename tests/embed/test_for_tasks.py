"""What models of tasks need of an embedder: spans kept together, normalised tokens, half precision."""

import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from drawn_bundles import TOKENS, P, write_model
from messages import refusal_of

from elmo_zh import ElmoEmbedder, UnknownWordsWarning
from elmo_zh.config import TextConfig

WORDS = ("我", "吃", "苹", "果", "，", "苹果", "。", "10")


@pytest.fixture(scope="module")
def embedder(by_character: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(by_character)


@pytest.mark.parametrize(
    ("line", "keep", "tokens", "offsets"),
    [
        ("我吃苹果。", [(2, 4)], ["我", "吃", "苹果", "。"], [(0, 1), (1, 2), (2, 4), (4, 5)]),
        ("我吃苹果。", [(2, 5), (0, 2)], ["我吃", "苹果。"], [(0, 2), (2, 5)]),
        # Spaces between words, and full-width digits, which the normaliser folds.
        (" 吃  １０ 果", [(1, 6)], ["吃10", "果"], [(1, 6), (7, 8)]),
        # The normaliser removes the whole span.
        ("我\u200b吃", [(1, 2)], ["我", "吃"], [(0, 1), (2, 3)]),
        ("", [], [], []),
    ],
)
def test_spans_become_tokens(
    embedder: ElmoEmbedder,
    line: str,
    keep: list[tuple[int, int]],
    tokens: list[str],
    offsets: list[tuple[int, int]],
) -> None:
    prepared = embedder.prepare(line, keep=keep)
    assert prepared.tokens == tokens
    assert prepared.offsets.tolist() == [list(each) for each in offsets]
    assert prepared.offsets.dtype == np.int32


def test_the_vectors_are_those_of_the_kept_tokens(embedder: ElmoEmbedder) -> None:
    """Spans may be rows of an array."""
    kept, plain = embedder.embed(["我吃苹果。", "我吃苹果。"], keep=[np.array([[2, 4]]), []])
    expected = embedder.embed_tokens([["我", "吃", "苹果", "。"], ["我", "吃", "苹", "果", "。"]])
    np.testing.assert_array_equal(kept, expected[0])
    np.testing.assert_array_equal(plain, expected[1])


@pytest.mark.parametrize(
    ("keep", "told"),
    [
        ([(1, 1)], "the span (1, 1) does not fit a text of 3 characters"),
        ([(2, 4)], "the span (2, 4) does not fit a text of 3 characters"),
        ([(-1, 2)], "the span (-1, 2) does not fit a text of 3 characters"),
        ([(0, 2), (1, 3)], "the spans (0, 2) and (1, 3) overlap"),
    ],
)
def test_spans_that_do_not_fit(embedder: ElmoEmbedder, keep: list[tuple[int, int]], told: str) -> None:
    assert refusal_of(ValueError, lambda: embedder.prepare("我吃果", keep=keep)) == told
    assert "raw lines" in refusal_of(ValueError, lambda: embedder.prepare("我吃果", segmented=True, keep=keep))


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
