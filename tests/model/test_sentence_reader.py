"""Reading packed sentences against `BiLM.layer_activations`, which a NumPy oracle covers (tests/parity)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from drawn_bilms import LENGTHS, PLAIN, draw_bilm, draw_sentences
from numpy.typing import NDArray
from torch import Tensor

from elmo_zh.model.bilm import BiLM, State
from elmo_zh.model.precision import BFLOAT16, FLOAT32, INT8, PRECISIONS, Precision
from elmo_zh.model.sentence_reader import SentenceReader
from elmo_zh.model.token_layer import TokenInputs, pad_sentences
from elmo_zh.reader.lstm import pack_both_ways


def expected_layers(bilm: BiLM, sentences: Sequence[NDArray[np.int64]]) -> Tensor:
    """All tokens but the marks, sentence by sentence, (L + 1, M, 2P)."""
    ids, mask = pad_sentences(sentences)
    layers = bilm.layer_activations(TokenInputs(ids), mask)
    return torch.cat([layers[:, row, 1 : len(words) - 1] for row, words in enumerate(sentences)], dim=1)


def read(
    bilm: BiLM, sentences: Sequence[NDArray[np.int64]], state: State | None = None, precision: Precision = FLOAT32
) -> tuple[Tensor, State]:
    reader = SentenceReader(bilm, precision)
    start = bilm.start_state(len(sentences)) if state is None else state
    return reader.read(bilm.token_table.weight.detach(), pack_both_ways(sentences), start)


def assert_close(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def assert_states_close(found: State, expected: State) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours.output, theirs.output)
        assert_close(ours.cell, theirs.cell)


def test_a_state_of_each_sentence_is_carried_in_and_stays_as_it_was() -> None:
    bilm, sentences = draw_bilm(PLAIN), draw_sentences(LENGTHS)
    generator = torch.Generator().manual_seed(7)
    state = [
        type(zero)(*(torch.randn(part.shape, generator=generator) * 0.3 for part in (zero.output, zero.cell)))
        for zero in bilm.zero_state(len(sentences))
    ]
    before = [type(carried)(carried.output.clone(), carried.cell.clone()) for carried in state]
    found, after = read(bilm, sentences, state)
    assert_states_close(state, before)
    ids, mask = pad_sentences(sentences)
    with torch.no_grad():
        layers, expected = bilm.read_sentences(bilm.token_layer(TokenInputs(ids)), mask, state)
    assert_states_close(after, expected)
    assert_close(found, torch.cat([layers[:, r, 1 : len(s) - 1] for r, s in enumerate(sentences)], dim=1))
    assert not torch.allclose(found, expected_layers(bilm, sentences), atol=1e-2)


@pytest.mark.parametrize("precision", PRECISIONS.values(), ids=list(PRECISIONS))
def test_sentences_do_not_depend_on_each_other(precision: Precision) -> None:
    bilm, sentences = draw_bilm(PLAIN), draw_sentences(LENGTHS)
    together, _ = read(bilm, sentences, precision=precision)
    alone = torch.cat([read(bilm, [words], precision=precision)[0] for words in sentences], dim=1)
    assert_close(together, alone, 1e-6)


@pytest.mark.parametrize(("precision", "bound"), [(BFLOAT16, 0.03), (INT8, 0.06)])
@pytest.mark.parametrize("changes", [{}, {"projection_dim": 13}, {"cell_clip": 0.7, "projection_clip": 0.3}], ids=str)
def test_lower_precision_stays_close(precision: Precision, bound: float, changes: dict[str, Any]) -> None:
    """And really is lower; but the token layer is exact."""
    bilm, sentences = draw_bilm(replace(PLAIN, **changes), warm=True), draw_sentences(LENGTHS)
    exact, exact_state = read(bilm, sentences)
    found, state = read(bilm, sentences, precision=precision)
    assert found.dtype == torch.float32
    assert {part.dtype for each in state for part in (each.output, each.cell)} == {torch.float32}
    assert torch.equal(found[0], exact[0])
    difference = (found[1:] - exact[1:]).abs().amax(dim=(1, 2)) / exact[1:].abs().amax(dim=(1, 2))
    assert (difference > 1e-4).all()
    assert (difference < bound).all()
    for ours, theirs in zip(state, exact_state, strict=True):
        assert (ours.cell - theirs.cell).abs().max() < bound * theirs.cell.abs().max()
