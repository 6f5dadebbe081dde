"""A layer by torch's own operator against ours; where there is no GPU, the operator's version for processors."""

from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from elmo_zh.model import projected_lstm
from elmo_zh.model.kernels.cells import Clips
from elmo_zh.model.kernels.library_lstm import suits_library
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM

STEPS, STREAMS, INPUT, CELL, OUTPUT = 5, 3, 7, 11, 2
NO_CLIPS = Clips(0.0, 0.0)


def build_layer(output: int, dtype: torch.dtype) -> ProjectedLSTM:
    layer = ProjectedLSTM(INPUT, CELL, output, 0.0, 0.0).to(dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return layer


def run_twice(layer: ProjectedLSTM, device: str) -> list[Tensor]:
    """Values and gradients of two consecutive stretches of a text, the state carried over."""
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, layer.bias.dtype)

    layer.to(device)
    inputs, weighting = (
        draw(2, 2 * STEPS, STREAMS, INPUT).requires_grad_(),
        draw(2, 2 * STEPS, STREAMS, layer.output_dim),
    )
    state = LSTMState(draw(2, STREAMS, layer.output_dim), draw(2, STREAMS, CELL))
    first, middle = layer(inputs[:, :STEPS], state)
    second, after = layer(inputs[:, STEPS:], middle)
    outputs = torch.cat([first, second], dim=1)
    gradients = torch.autograd.grad((outputs * weighting).sum(), [inputs, *layer.parameters()])
    assert not middle.output.requires_grad
    assert not middle.cell.requires_grad
    return [value.cpu() for value in (outputs, middle.cell, after.output, after.cell, *gradients)]


def assert_equal(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("output", [OUTPUT, CELL])
def test_values_gradients_and_states_equal_ours(
    monkeypatch: pytest.MonkeyPatch, output: int, dtype: torch.dtype, tolerance: float
) -> None:
    layer = build_layer(output, dtype)
    expected = run_twice(layer, "cpu")
    monkeypatch.setattr(projected_lstm, "suits_library", lambda *_: True)
    monkeypatch.setattr(projected_lstm, "run_recurrence", Mock(side_effect=AssertionError))
    assert_equal(run_twice(layer, "cpu"), expected, tolerance)


def test_a_processor_keeps_to_ours() -> None:
    values = torch.zeros(2, STEPS, STREAMS, INPUT)
    assert not suits_library(values, values, None, NO_CLIPS)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("output", [OUTPUT, CELL])
def test_cudnn_equals_a_processor(monkeypatch: pytest.MonkeyPatch, output: int) -> None:
    layer = build_layer(output, torch.float32)
    expected = run_twice(layer, "cpu")
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    values = torch.zeros(2, STEPS, STREAMS, INPUT, device="cuda")
    assert suits_library(values, values, None, NO_CLIPS)
    assert not suits_library(values, values, values, NO_CLIPS)
    assert not suits_library(values, values, None, Clips(3.0, 0.0))
    assert not suits_library(values.bfloat16(), values, None, NO_CLIPS)
    assert_equal(run_twice(layer, "cuda"), expected, 1e-5)
