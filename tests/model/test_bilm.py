"""What a bidirectional language model must and must not see."""

import math
from dataclasses import replace

import pytest
import torch
from small_trainings import SHAPE
from torch import Tensor

from elmo_zh.bundle.weights import num_parameters
from elmo_zh.model.bilm import BiLM, drop
from elmo_zh.model.language_model import LanguageModel
from elmo_zh.model.token_layer import TokenInputs, pad_sentences
from elmo_zh.reader.lstm import mark_sentence

WORDS, PROJECTION, CELL, LAYERS = 23, 5, 11, 3


@pytest.fixture
def bilm() -> BiLM:
    bilm = BiLM(replace(SHAPE, num_tokens=WORDS, cell_dim=CELL, projection_dim=PROJECTION, num_layers=LAYERS))
    bilm.initialise(torch.Generator().manual_seed(2))
    return bilm


def activations(bilm: BiLM, *sentences: list[int]) -> Tensor:
    ids, mask = pad_sentences([mark_sentence(sentence) for sentence in sentences])
    return bilm.layer_activations(TokenInputs(ids), mask)


def test_forward_lm_is_blind_to_the_future_and_backward_lm_to_the_past(bilm: BiLM) -> None:
    before, after = activations(bilm, [3, 4, 5, 6, 7]), activations(bilm, [3, 4, 9, 6, 7])
    changed = (before != after).any(dim=0)[0]  # (T, 2P); position 3 holds the other word
    assert not changed[:3, :PROJECTION].any()
    assert changed[3:, :PROJECTION].all()
    assert not changed[4:, PROJECTION:].any()
    assert changed[:4, PROJECTION:].all()


def test_streams_restarted_at_sentence_starts_equal_single_sentences(bilm: BiLM) -> None:
    """Training on packed streams sees exactly what embedding sees."""
    first, second = mark_sentence([3, 4, 5]), mark_sentence([6, 7])
    inputs = torch.tensor([[*first[:-1], *second[:-1]], [*first[:0:-1], *second[:0:-1]]])[:, :, None]
    keep = torch.tensor([0.0, 1, 1, 1, 0, 1, 1])[:, None, None]
    state = [type(s)(s.output + 0.7, s.cell - 0.4) for s in bilm.zero_state(1)]
    with torch.no_grad():
        layers, _ = bilm(TokenInputs(inputs), state, keep)
    whole = activations(bilm, [3, 4, 5], [6, 7])
    top = layers[-1][:, :, 0]
    torch.testing.assert_close(top[0, :4], whole[-1, 0, :4, :PROJECTION])
    torch.testing.assert_close(top[0, 4:], whole[-1, 1, :3, :PROJECTION])
    torch.testing.assert_close(top[1, :4].flip(0), whole[-1, 0, 1:5, PROJECTION:])
    torch.testing.assert_close(top[1, 4:].flip(0), whole[-1, 1, 1:4, PROJECTION:])


@pytest.mark.parametrize("tied", [False, True])
def test_parameters_are_counted_and_named_once(bilm: BiLM, tied: bool) -> None:
    model = LanguageModel.build(bilm.shape, tie_softmax=tied)
    tables = WORDS * PROJECTION * (1 if tied else 2) + WORDS
    layer = 2 * PROJECTION * 4 * CELL + 4 * CELL + CELL * PROJECTION
    assert model.num_parameters() == tables + 2 * LAYERS * layer
    assert sum(tensor.numel() for tensor in model.named_tensors().values()) == model.num_parameters()
    assert num_parameters(bilm.shape) == WORDS * PROJECTION + 2 * LAYERS * layer


# Dropout: how much, how it is made up for, and what decides on it


def drop_seeded(values: torch.Tensor, share: float, seed: int = 3) -> torch.Tensor:
    torch.manual_seed(seed)
    return drop(values, share)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.95])
def test_the_share_is_dropped_and_the_rest_scaled_up(share: float) -> None:
    number = 1_000_003
    dropped = drop_seeded(torch.ones(number), share)
    kept = dropped != 0
    # Within five standard deviations, and a 65,536th.
    tolerance = 5 * math.sqrt(share * (1 - share) / number) + 2**-16
    assert float((~kept).double().mean()) == pytest.approx(share, abs=tolerance)
    (scale,) = dropped[kept].unique().tolist()
    assert scale == pytest.approx(1 / (1 - share), rel=2e-4)
    # In every part of four places, which come from one drawn number, as much.
    for place in range(4):
        part = (~kept)[place::4].double().mean()
        assert float(part) == pytest.approx(share, abs=2 * tolerance)
