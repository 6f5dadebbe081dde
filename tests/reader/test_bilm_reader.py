"""Reading packed sentences against `BiLM.layer_activations`, which a NumPy oracle covers (tests/parity)."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from drawn_bilms import LENGTHS, PLAIN, draw_any, draw_bilm, draw_sentences
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from elmo_zh.model.bilm import BiLM
from elmo_zh.model.kernels.recurrence import LSTMState
from elmo_zh.model.language_model import weights_of
from elmo_zh.model.token_layer import TokenInputs, pad_sentences
from elmo_zh.reader.bilm import LayerState, State
from elmo_zh.reader.lstm import Floats, PackedSentences


def expected(bilm: BiLM, sentences: Sequence[NDArray[np.int64]], state: State | None = None) -> tuple[Floats, State]:
    """All tokens but the marks, sentence by sentence, (L + 1, M, 2P), and the state after each sentence."""
    ids, mask = pad_sentences(sentences)
    start = bilm.start_state(len(mask))
    if state is not None:
        start = [LSTMState(*map(torch.from_numpy, layer)) for layer in state]
    with torch.no_grad():
        layers, after = bilm.read_sentences(bilm.token_layer(TokenInputs(ids)), mask, start)
    tokens = torch.cat([layers[:, row, 1 : len(words) - 1] for row, words in enumerate(sentences)], dim=1)
    return tokens.numpy(), [LayerState(layer.output.numpy(), layer.cell.numpy()) for layer in after]


def read(bilm: BiLM, sentences: Sequence[NDArray[np.int64]], state: State | None = None) -> tuple[Floats, State]:
    weights = weights_of(bilm, None)
    start = weights.reader.start_state(len(sentences)) if state is None else state
    return weights.reader.read(weights.token_table, sentences, start)


def assert_states_close(found: State, others: State) -> None:
    for ours, theirs in zip(found, others, strict=True):
        np.testing.assert_allclose(ours.output, theirs.output, rtol=0, atol=1e-5)
        np.testing.assert_allclose(ours.cell, theirs.cell, rtol=0, atol=1e-5)


def assert_reads_as_the_bilm(bilm: BiLM, sentences: Sequence[NDArray[np.int64]]) -> None:
    found, after = read(bilm, sentences)
    layers, state = expected(bilm, sentences)
    np.testing.assert_allclose(found, layers, rtol=0, atol=1e-5)
    assert_states_close(after, state)


@pytest.mark.parametrize("num_threads", ["1", "2"])
@pytest.mark.parametrize("lengths", [LENGTHS, (0, 0, 0), (67, 1)])
def test_sentences_of_all_lengths(lengths: tuple[int, ...], num_threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", num_threads)
    assert_reads_as_the_bilm(draw_bilm(PLAIN), draw_sentences(lengths))


@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_random_models_and_sentences(data: st.DataObject) -> None:
    assert_reads_as_the_bilm(*draw_any(data))


def test_a_batch_of_more_rows_than_are_computed_at_once() -> None:
    assert_reads_as_the_bilm(draw_bilm(PLAIN), draw_sentences([29] * 67 + [1100]))


def test_a_state_of_each_sentence_is_carried_in_and_stays_as_it_was() -> None:
    bilm, sentences = draw_bilm(PLAIN), draw_sentences(LENGTHS)
    draw = np.random.default_rng(7)
    state = [
        LayerState(*(draw.normal(0, 0.3, part.shape).astype(np.float32) for part in zero))
        for zero in weights_of(bilm, None).reader.zero_state(len(sentences))
    ]
    before = [LayerState(*(part.copy() for part in layer)) for layer in state]
    found, after = read(bilm, sentences, state)
    assert_states_close(state, before)
    layers, state_after = expected(bilm, sentences, state)
    np.testing.assert_allclose(found, layers, rtol=0, atol=1e-5)
    assert_states_close(after, state_after)
    assert not np.allclose(found, expected(bilm, sentences)[0], atol=1e-2)


def test_top_outputs_are_those_before_each_predicted_word() -> None:
    """The forward LM reads all but the last mark, the backward LM all but the first; each has its state after that."""
    bilm, sentences = draw_bilm(PLAIN, warm=True), draw_sentences(LENGTHS)
    weights = weights_of(bilm, None)
    outputs, after = weights.reader.top_outputs(
        weights.token_table, sentences, weights.reader.start_state(len(sentences))
    )
    P = PLAIN.projection_dim
    packed = PackedSentences.of_lengths([len(sentence) - 1 for sentence in sentences])
    for number, (sentence, rows) in enumerate(zip(sentences, packed.rows(), strict=True)):
        # With a further mark on each side, nothing that is read here is a mark.
        layers, _ = expected(bilm, [np.concatenate([[2], sentence[:-1], [2]])[1:]])
        _, forward_state = expected(bilm, [sentence[:-1]])
        _, backward_state = expected(bilm, [sentence[1:]])
        np.testing.assert_allclose(outputs[0, rows[1:]], layers[-1, :, :P], rtol=0, atol=1e-5)
        for layer, forward, backward in zip(after, forward_state, backward_state, strict=True):
            np.testing.assert_allclose(layer.cell[0, number], forward.cell[0, 0], rtol=0, atol=1e-5)
            np.testing.assert_allclose(layer.cell[1, number], backward.cell[1, 0], rtol=0, atol=1e-5)
            np.testing.assert_allclose(layer.output[1, number], backward.output[1, 0], rtol=0, atol=1e-5)
