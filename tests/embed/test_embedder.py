"""ElmoEmbedder: with and without carried state, and the outputs that TensorFlow Hub's modules have."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from contract.command_line import PROJECTION, SampleRun
from contract.dumps import WIDTH, assert_all_close
from messages import message_of, refusal_of
from parity import numpy_oracle as oracle
from parity.numpy_bilm import Array, run_bilm

from elmo_zh import ElmoEmbedder
from elmo_zh.errors import ElmoZhError

# Known words and unknown ones, equal sentences, an empty one, and one that is longer than the others together.
SENTENCES: tuple[list[str], ...] = (
    ["我", "喜欢", "吃", "苹果", "。"],
    ["春天", "的", "花", "开", "了"],
    [],
    ["我", "喜欢", "吃", "苹果", "。"],
    ["齉龘"],
    ["的", "花", "。"] * 7,
    ["吃"],
)


def zero_start(model: Path) -> list[Array]:
    reference = oracle.load_bundle(model)
    return [oracle.layer_activations(reference, words) for words in SENTENCES]


def carried(model: Path) -> list[Array]:
    """As bilm-tf does: both LMs read both marks, and the state goes on from sentence to sentence."""
    reference, state, found = oracle.load_bundle(model), None, []
    for words in SENTENCES:
        activations, state = run_bilm(reference.bilm, oracle.token_vectors(reference, words), state)
        found.append(activations[:, 1:-1])
    return found


@pytest.fixture
def stateful(sample_run: SampleRun) -> ElmoEmbedder:
    return ElmoEmbedder.load(str(sample_run.model), "cpu", stateful=True)


def test_every_sentence_starts_from_zeros_and_equals_the_oracle(sample_run: SampleRun, embedder: ElmoEmbedder) -> None:
    expected = zero_start(sample_run.model)
    small = ElmoEmbedder(embedder.bundle, "cpu", batch_tokens=5)
    for found in (
        *(each.embed_tokens(SENTENCES) for each in (embedder, embedder, small)),
        embedder.embed_tokens(SENTENCES[::-1])[::-1],
        [embedder.embed_tokens([words])[0] for words in SENTENCES],
    ):
        assert {vectors.dtype for vectors in found} == {np.dtype("float32")}
        assert_all_close(found, expected, 1e-5)


def test_a_stateful_embedder_equals_the_oracle_that_carries_its_state(
    sample_run: SampleRun, stateful: ElmoEmbedder
) -> None:
    assert stateful.is_stateful
    expected = carried(sample_run.model)
    assert_all_close(stateful.embed_tokens(SENTENCES), expected, 1e-5)
    # All but the first sentence notice, also the one after the empty line.
    differences = [np.abs(a - b).max(initial=0) for a, b in zip(expected, zero_start(sample_run.model), strict=True)]
    assert differences[0] == 0
    assert min(differences[1:2] + differences[3:]) > 1e-3
    without_empty = ElmoEmbedder(stateful.bundle, "cpu", stateful=True)
    without_empty.embed_tokens(SENTENCES[:2])
    found = without_empty.embed_tokens(SENTENCES[3:4])[0]
    assert np.abs(found - expected[3]).max() > 1e-4


def test_a_stateful_embedder_goes_on_from_call_to_call_until_it_is_reset(
    sample_run: SampleRun, stateful: ElmoEmbedder
) -> None:
    expected = carried(sample_run.model)
    for _ in range(2):
        assert_all_close([stateful.embed_tokens([words])[0] for words in SENTENCES], expected, 1e-5)
        stateful.reset_state()


def test_a_state_that_was_saved_goes_on_in_another_embedder(sample_run: SampleRun, stateful: ElmoEmbedder) -> None:
    stateful.embed_tokens(SENTENCES[:4])
    saved = stateful.state_arrays()
    assert sorted(saved) == ["cell_0", "cell_1", "output_0", "output_1"]
    expected = stateful.embed_tokens(SENTENCES[4:])
    other = ElmoEmbedder.load(sample_run.model, "cpu", stateful=True)
    other.embed_tokens(SENTENCES[:1])
    other.restore_state(saved)
    assert_all_close(other.embed_tokens(SENTENCES[4:]), expected, 0)
    # What was saved stays as it was.
    stateful.restore_state(saved)
    assert_all_close(stateful.embed_tokens(SENTENCES[4:]), expected, 0)


def outputs_expected(embedder: ElmoEmbedder, sentences: Any, weights: Any) -> dict[str, Any]:
    longest = max(map(len, sentences))
    expected = {
        "word_emb": np.zeros((len(sentences), longest, PROJECTION)),
        **{name: np.zeros((len(sentences), longest, WIDTH)) for name in ("lstm_outputs1", "lstm_outputs2", "elmo")},
        "default": np.zeros((len(sentences), WIDTH)),
        "sequence_len": np.array([len(words) for words in sentences]),
    }
    for row, vectors in enumerate(embedder.embed_tokens(sentences)):
        n = vectors.shape[1]
        expected["word_emb"][row, :n] = vectors[0, :, :PROJECTION]
        expected["lstm_outputs1"][row, :n], expected["lstm_outputs2"][row, :n] = vectors[1:]
        expected["elmo"][row, :n] = sum(weight * layer for weight, layer in zip(weights, vectors, strict=True))
        if n:
            expected["default"][row] = expected["elmo"][row, :n].mean(axis=0)
    return expected


def assert_outputs(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == ["word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "default", "sequence_len"]
    assert [found[name].dtype for name in found] == [np.float32] * 5 + [np.int32]
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-6, err_msg=name)


EQUAL = [1 / 3] * 3


def test_outputs_of_strings_split_on_spaces(embedder: ElmoEmbedder) -> None:
    strings = ["我 喜欢  吃 ", "", " 花　开 了"]
    split = [["我", "喜欢", "吃"], [], ["花　开", "了"]]
    assert_outputs(embedder.outputs(strings), outputs_expected(embedder, split, EQUAL))


def test_outputs_of_padded_lists(embedder: ElmoEmbedder) -> None:
    """Whatever the padding is, it counts for nothing, and the longest sentence decides the shape."""
    padded = [["我", "喜欢", "吃", "花"], ["花", "", "", ""], ["", "x", "", "我"], ["我", "吃", "了", ""]]
    words = [["我", "喜欢", "吃"], ["花"], [], ["我", "吃"]]
    for lengths in ([3, 1, 0, 2], np.array([3, 1, 0, 2], np.int32)):
        found = embedder.outputs(padded, lengths)
        assert found["elmo"].shape == (4, 3, WIDTH)
        assert_outputs(found, outputs_expected(embedder, words, EQUAL))


@pytest.mark.parametrize("weights", [None, [0.5, -2.0, 3.0]])
def test_outputs_of_lists_of_words(embedder: ElmoEmbedder, weights: Any) -> None:
    found = embedder.outputs(SENTENCES, layer_weights=weights)
    assert_outputs(found, outputs_expected(embedder, SENTENCES, weights or EQUAL))


@pytest.mark.parametrize("lengths", [[2], [2, 1, 0], [3, 1], [-1, 1], []])
def test_lengths_that_do_not_fit(embedder: ElmoEmbedder, lengths: list[int]) -> None:
    told = refusal_of(ValueError, lambda: embedder.outputs([["我", "吃"], ["花"]], lengths))
    assert told == f"sequence_len is {lengths}; expected one length per sentence, from 0 to its word count"


def test_a_prepared_line_of_tokens_is_left_as_it_is(embedder: ElmoEmbedder) -> None:
    line = embedder.prepare(" 我  喜\u200b欢 Ａ\u3000角", segmented=True)
    assert line.tokens == ["我", "喜\u200b欢", "Ａ\u3000角"]
    assert line.offsets.tolist() == [[1, 2], [4, 7], [8, 11]]
    assert embedder.prepare("", segmented=True).offsets.shape == embedder.prepare("").offsets.shape == (0, 2)


def test_no_cuda(sample_run: SampleRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for Python too: it names no option of the command line."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert message_of(ElmoZhError, lambda: ElmoEmbedder.load(sample_run.model, "cuda")) == (
        f"device cuda: torch {torch.__version__} finds no CUDA device. Choose device cpu or auto, or install a CUDA"
        " build of torch and NVIDIA's driver."
    )
