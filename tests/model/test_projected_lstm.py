"""The hand-written recurrence against a plain autograd version of the published cell."""

import pytest
import torch
from torch import Tensor

from elmo_zh.model import projected_lstm
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM

# Distinct primes, so that a swapped axis fails.
STEPS, STREAMS, INPUT, CELL, OUTPUT = 5, 3, 7, 11, 2


def build_layer(cell_clip: float, projection_clip: float, output: int = OUTPUT) -> ProjectedLSTM:
    layer = ProjectedLSTM(INPUT, CELL, output, cell_clip, projection_clip).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return layer


def draw(*shape: int, seed: int = 5) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def plain_lstm(layer: ProjectedLSTM, inputs: Tensor, state: LSTMState, keep: Tensor | None) -> tuple[Tensor, Tensor]:
    """The cell as published, one step and one direction at a time, differentiated by autograd."""
    directions, finals = [], []
    for d in range(2):
        h, c = state.output[d], state.cell[d]
        steps = []
        for t in range(inputs.shape[1]):
            if keep is not None:
                h, c = h * keep[t], c * keep[t]
            z = inputs[d, t] @ layer.input_weight[d] + h @ layer.recurrent_weight[d] + layer.bias[d]
            i, j, f, o = z.chunk(4, dim=1)
            c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)
            if layer.clips.cell:
                c = c.clamp(-layer.clips.cell, layer.clips.cell)
            h = torch.sigmoid(o) * torch.tanh(c)
            if layer.projection is not None:
                h = h @ layer.projection[d]
                if layer.clips.output:
                    h = h.clamp(-layer.clips.output, layer.clips.output)
            steps.append(h)
        directions.append(torch.stack(steps))
        finals.append(c)
    return torch.stack(directions), torch.stack(finals)


def start_flags() -> Tensor:
    keep = torch.ones(STEPS, STREAMS, 1, dtype=torch.float64)
    keep[0, 1] = keep[2, 0] = keep[3, 1] = keep[4, 2] = 0
    return keep


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize(("cell_clip", "projection_clip"), [(0.0, 0.0), (0.3, 0.4), (3.0, 0.0)])
@pytest.mark.parametrize("output", [OUTPUT, CELL])
def test_values_and_gradients_equal_the_plain_version(
    cell_clip: float, projection_clip: float, output: int, with_starts: bool
) -> None:
    layer = build_layer(cell_clip, projection_clip, output)
    keep = start_flags() if with_starts else None
    state = LSTMState(draw(2, STREAMS, output), draw(2, STREAMS, CELL, seed=6))
    weighting = draw(2, STEPS, STREAMS, output, seed=7)
    results = []
    for run in (lambda x: layer(x, state, keep), lambda x: plain_lstm(layer, x, state, keep)):
        inputs = draw(2, STEPS, STREAMS, INPUT, seed=8).requires_grad_()
        outputs, final = run(inputs)
        gradients = torch.autograd.grad((outputs * weighting).sum(), [inputs, *layer.parameters()])
        results.append([outputs, getattr(final, "cell", final), *gradients])
    for ours, plain in zip(*results, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)


# Shorter and longer than a piece of three steps, and as long as one or two.
LENGTHS = (4, 1, 7, 3, 6)


def draw_state(num_streams: int, output: int = OUTPUT) -> LSTMState:
    return LSTMState(draw(2, num_streams, output, seed=9), draw(2, num_streams, CELL, seed=10))


def assert_states_close(found: LSTMState, expected: LSTMState) -> None:
    torch.testing.assert_close(found.output, expected.output, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.cell, expected.cell, rtol=0, atol=1e-12)


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("inference_steps", [3, 256])
@pytest.mark.parametrize("with_gradient", [False, True])
def test_in_pieces_or_not_the_state_is_that_after_each_streams_last_step_that_counts(
    monkeypatch: pytest.MonkeyPatch, with_gradient: bool, inference_steps: int, with_starts: bool
) -> None:
    monkeypatch.setattr(projected_lstm, "_INFERENCE_STEPS", inference_steps)
    layer, num_streams = build_layer(0.7, 0.4), len(LENGTHS)
    inputs, state = draw(2, 7, num_streams, INPUT), draw_state(num_streams)
    keep = None
    if with_starts:
        keep = torch.ones(7, num_streams, 1, dtype=torch.float64)
        keep[3, 0] = keep[2, 4] = keep[6, 4] = 0  # the last one is after what counts
    with torch.set_grad_enabled(with_gradient):
        outputs, after = layer(inputs, state, keep, torch.tensor(LENGTHS))
    # With a gradient nothing is run in pieces.
    whole, _ = layer(inputs, state, keep)
    torch.testing.assert_close(outputs, whole, rtol=0, atol=1e-12)
    for stream, length in enumerate(LENGTHS):
        only = slice(stream, stream + 1)
        alone = LSTMState(state.output[:, only], state.cell[:, only])
        _, expected = layer(inputs[:, :length, only], alone, None if keep is None else keep[:length, only])
        assert_states_close(LSTMState(after.output[:, only], after.cell[:, only]), expected)


@pytest.mark.parametrize("lengths", [None, torch.tensor([2, 5, 3])])
def test_no_gradient_reaches_the_state_that_is_carried(lengths: Tensor | None) -> None:
    layer = build_layer(3.0, 3.0)
    inputs, state = draw(2, STEPS, STREAMS, INPUT).requires_grad_(), draw_state(STREAMS)
    state.output.requires_grad_()
    state.cell.requires_grad_()
    outputs, after = layer(inputs, state, None, lengths)
    assert not after.output.requires_grad
    assert not after.cell.requires_grad
    before = [state.output, state.cell]
    of_inputs, *of_state = torch.autograd.grad(outputs.square().sum(), [inputs, *before], allow_unused=True)
    assert (of_inputs != 0).all()
    assert of_state == [None, None]
