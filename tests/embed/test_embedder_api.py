"""ElmoEmbedder as programs use it: repeated and empty sentences, streams, threads, workers, lines of any length."""

import pickle
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import SampleRun
from contract.dumps import assert_all_close
from drawn_bundles import SHAPES, TOKENS, L, P, write_model
from messages import message_of
from numpy.typing import NDArray

from elmo_zh import ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.embed.embedder import EmbeddedSentence
from elmo_zh.errors import BundleError
from elmo_zh.reader import bilm
from elmo_zh.reader.lstm import BothWays, pack_both_ways
from elmo_zh.text import sentences

WORDS = ("我", "吃", "苹", "果", "。", "😀", "𠮷")
BY_CHARACTER = TextConfig(segmenter="character")
LINES = ("我吃苹果。", "", "果", "我吃苹果。", " ", "吃" * 17, "桃", "果", "")
MODES = list(SHAPES)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("bundles")
    return {
        mode: write_model(folder / mode, shape, words=WORDS, text=BY_CHARACTER, warm=mode == "character")
        for mode, shape in SHAPES.items()
    }


@pytest.fixture(params=MODES)
def bundle(request: pytest.FixtureRequest, bundles: dict[str, Path]) -> Path:
    return bundles[request.param]


@pytest.fixture
def embedder(bundle: Path) -> ElmoEmbedder:
    return ElmoEmbedder.load(bundle, "cpu")


@pytest.fixture
def token_embedder(bundles: dict[str, Path]) -> ElmoEmbedder:
    return ElmoEmbedder.load(bundles["token"], "cpu")


def characters_of(line: str) -> list[str]:
    return list(line.replace(" ", ""))


def one_by_one(embedder: ElmoEmbedder, lines: Sequence[str] = LINES) -> list[NDArray[np.float32]]:
    return [embedder.embed_tokens([characters_of(line)])[0] for line in lines]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers of tokens of the sentences of every batch that is computed."""
    found: list[list[int]] = []

    def note(sentences: Sequence[NDArray[np.int64]]) -> BothWays:
        found.append([len(sentence) - 2 for sentence in sentences])
        return pack_both_ways(sentences)

    monkeypatch.setattr(bilm, "pack_both_ways", note)
    return found


# Lists of sentences


def test_each_different_sentence_is_computed_once(embedder: ElmoEmbedder, batches: list[list[int]]) -> None:
    embedder.embed(LINES)
    assert sorted(length for batch in batches for length in batch) == [1, 1, 5, 17]


def test_equal_sentences_have_equal_vectors_in_memory_of_their_own(embedder: ElmoEmbedder) -> None:
    found = embedder.embed(LINES)
    expected = [vectors.copy() for vectors in found]
    for first, second in ((0, 3), (2, 7)):
        assert np.array_equal(found[first], found[second])
    for number, vectors in enumerate(found):
        assert vectors.flags.writeable
        assert vectors.base is None
        assert not any(np.shares_memory(vectors, other) for other in found[:number])
        vectors += 1
        assert_all_close(found[number + 1 :], expected[number + 1 :], 0)
    # Nor is anything of them kept for later.
    assert_all_close(embedder.embed(LINES), expected, 0)


@pytest.mark.parametrize("sentences", [[], [""], ["", " ", ""]])
def test_no_words_at_all(embedder: ElmoEmbedder, sentences: list[str], batches: list[list[int]]) -> None:
    empty = [np.zeros((L + 1, 0, 2 * P), np.float32) for _ in sentences]
    assert_all_close(embedder.embed(sentences), empty)
    assert_all_close(embedder.embed_tokens([[] for _ in sentences]), empty)
    assert_all_close([sentence.vectors for sentence in embedder.embed_iter(sentences)], empty)
    assert batches == []


def test_generators_are_read_once_and_in_order(embedder: ElmoEmbedder) -> None:
    found, expected = embedder.embed(line for line in LINES), one_by_one(embedder)
    assert [vectors.shape for vectors in found] == [(L + 1, n, 2 * P) for n in (5, 0, 1, 5, 0, 17, 1, 1, 0)]
    assert {vectors.dtype for vectors in found} == {np.dtype("float32")}
    assert_all_close(found, expected)
    assert_all_close(embedder.embed_tokens(tuple(characters_of(line)) for line in LINES), expected)
    assert_all_close([each.vectors for each in embedder.embed_iter(line for line in LINES)], expected)


def test_tokens_beside_vectors(bundle: Path) -> None:
    """In token mode 桃 cannot be told from other unknown words, in character mode it can."""
    embedder = ElmoEmbedder.load(bundle, "cpu")
    lines = ["我 吃\u3000桃。", "", "\ufeff果"]
    found = embedder.embed(lines, return_tokens=True)
    assert [sentence.tokens for sentence in found] == [["我", "吃", "桃", "。"], [], ["果"]]
    assert [sentence.offsets.tolist() for sentence in found] == [[[0, 1], [2, 3], [4, 5], [5, 6]], [], [[1, 2]]]
    assert found[1].offsets.shape == (0, 2)
    unknown = embedder.bundle.info["mode"] == "token"
    assert [sentence.is_unknown.tolist() for sentence in found] == [[False, False, unknown, False], [], [False]]
    assert {sentence.offsets.dtype for sentence in found} == {np.dtype("int32")}
    assert {sentence.is_unknown.dtype for sentence in found} == {np.dtype("bool")}
    assert_all_close([sentence.vectors for sentence in found], embedder.embed(lines), 0)


# Streams of sentences


def assert_embedded(found: Sequence[EmbeddedSentence], expected: Sequence[EmbeddedSentence]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tokens == theirs.tokens
        np.testing.assert_array_equal(ours.offsets, theirs.offsets)
        np.testing.assert_array_equal(ours.is_unknown, theirs.is_unknown)
        np.testing.assert_allclose(ours.vectors, theirs.vectors, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("num_sentences", "num_tokens"), [(1, 100), (9, 100), (100, 7)])
def test_a_stream_gives_what_a_list_gives(
    embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch, num_sentences: int, num_tokens: int
) -> None:
    expected = embedder.embed(LINES, return_tokens=True)
    monkeypatch.setattr(sentences, "WINDOW_ITEMS", num_sentences)
    monkeypatch.setattr(sentences, "WINDOW_TOKENS", num_tokens)
    assert_embedded(list(embedder.embed_iter(LINES)), expected)


def noted(lines: Sequence[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


def test_a_stream_reads_no_more_than_a_window_ahead(
    token_embedder: ElmoEmbedder, monkeypatch: pytest.MonkeyPatch, batches: list[list[int]]
) -> None:
    monkeypatch.setattr(sentences, "WINDOW_ITEMS", 3)
    taken: list[str] = []
    lines = ["我", "吃", "苹果", "果。", "桃", "我吃", "吃。"]
    stream = token_embedder.embed_iter(noted(lines, taken))
    assert taken == []
    for number in range(7):
        next(stream)
        assert len(taken) == min(7, 3 * (number // 3 + 1))
    assert next(stream, None) is None
    assert [sum(batch) for batch in batches] == [4, 5, 2]


# Threads and processes


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_threads_share_an_embedder(bundle: Path, precision: str) -> None:
    """Each of them asks for its own sentences, over and over; the first call is not yet made before."""
    alone, shared = (ElmoEmbedder.load(bundle, "cpu", precision) for _ in range(2))
    texts = [[*LINES[number:], "我吃" * number, "桃" * number] for number in range(5)]
    expected = [alone.embed(lines) for lines in texts]

    def embed_often(lines: Sequence[str]) -> list[list[NDArray[np.float32]]]:
        return [shared.embed(lines) for _ in range(7)]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(embed_often, texts))
    for theirs, ours in zip(expected, found, strict=True):
        for vectors in ours:
            assert_all_close(vectors, theirs)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"precision": "int8"},
        {"precision": "bfloat16", "unknown": "backoff"},
        {"batch_tokens": 7},
        {"stateful": True},
    ],
    ids=str,
)
def test_a_pickled_embedder_gives_the_same_vectors(token_embedder: ElmoEmbedder, settings: dict[str, Any]) -> None:
    """A stateful one starts from zeros."""
    embedder = ElmoEmbedder(token_embedder.bundle, "cpu", **settings)
    expected = embedder.embed(LINES)
    pickled = pickle.dumps(embedder)
    copy = pickle.loads(pickled)
    assert len(pickled) < 1000
    for name in ("precision", "unknown", "batch_tokens", "is_stateful"):
        assert getattr(copy, name) == getattr(embedder, name)
    assert copy.bundle.digest == embedder.bundle.digest
    assert_all_close(copy.embed(LINES), expected, 0)


# Precision


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_vectors_of_lower_precision_point_the_same_way(sample_run: SampleRun, precision: str) -> None:
    """Cosine to float32, the mean of each layer, on held-out text of a trained model."""
    lines = [line.split(" ") for line in sample_run.heldout.read_text(encoding="utf-8").splitlines()]
    exact, found = (
        np.concatenate(ElmoEmbedder.load(sample_run.model, "cpu", each).embed_tokens(lines), axis=1).astype(np.float64)
        for each in ("float32", precision)
    )
    cosines = (exact * found).sum(axis=2) / np.linalg.norm(exact, axis=2) / np.linalg.norm(found, axis=2)
    assert (cosines.mean(axis=1) >= 0.999).all()
    assert cosines.min() > 0.99
    assert not np.array_equal(exact, found)


def test_half_precision(token_embedder: ElmoEmbedder) -> None:
    half = ElmoEmbedder(token_embedder.bundle, "cpu", dtype="float16")
    lines = ["我吃苹果。", "", "我吃苹果。"]
    for found, exact in zip(half.embed(lines), token_embedder.embed(lines), strict=True):
        assert found.dtype == np.float16
        assert found.tolist() == exact.astype(np.float16).tolist()
    assert pickle.loads(pickle.dumps(half)).dtype == "float16"
    [sentence] = half.embed_iter(["果"])
    assert (sentence.vectors.dtype, sentence.vectors.shape) == (np.float16, (3, 1, 2 * P))
    stateful = ElmoEmbedder(token_embedder.bundle, "cpu", stateful=True, dtype="float16")
    assert stateful.embed(["果"])[0].dtype == np.float16


def test_another_model_in_its_place_is_refused(bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bundles["token"], tmp_path / "model"))
    embedder = ElmoEmbedder.load(folder, "cpu")
    pickled, digest = pickle.dumps(embedder), embedder.bundle.digest
    shutil.rmtree(folder)
    write_model(folder, TOKENS, words=WORDS, text=BY_CHARACTER, seed=5)
    found = message_of(BundleError, lambda: pickle.loads(pickled))
    assert found == f"{folder} has changed since it was loaded. Restore it (digest {digest}), or load it again."
    shutil.rmtree(folder)
    assert f"{folder.name} does not exist" in message_of(BundleError, lambda: pickle.loads(pickled))


def test_a_stream_of_strings_and_of_lists(embedder: ElmoEmbedder) -> None:
    strings, lists = ["我吃桃", "", "果"], [["我", "吃", "桃"], [], ["果"]]
    mixed = [strings[0], lists[1], strings[2], lists[0]]
    found = list(embedder.embed_iter(mixed))
    assert [sentence.tokens for sentence in found] == [lists[0], [], lists[2], lists[0]]
    assert_all_close([each.vectors for each in found], embedder.embed([*strings, strings[0]]))
    # Offsets are those in the string; in a list, as if one space stood between its words.
    assert found[0].offsets.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert found[3].offsets.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert next(embedder.embed_iter([["今天", "很好"]])).offsets.tolist() == [[0, 2], [3, 5]]
