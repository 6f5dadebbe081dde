"""The hand-written recurrence against a plain autograd version of the published cell."""

import pytest
import torch
from torch import Tensor

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
            if layer.cell_clip:
                c = c.clamp(-layer.cell_clip, layer.cell_clip)
            h = torch.sigmoid(o) * torch.tanh(c)
            if layer.projection is not None:
                h = h @ layer.projection[d]
                if layer.projection_clip:
                    h = h.clamp(-layer.projection_clip, layer.projection_clip)
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


def test_clips_are_active_in_the_test_above() -> None:
    state = LSTMState(draw(2, STREAMS, OUTPUT), draw(2, STREAMS, CELL, seed=6))
    inputs = draw(2, STEPS, STREAMS, INPUT, seed=8)
    outputs, final = build_layer(0.3, 0.4)(inputs, state)
    assert (final.cell.abs() == 0.3).any()
    assert (outputs.abs() == 0.4).any()
    assert (outputs.abs() < 0.4).any()


def test_gradcheck() -> None:
    layer = build_layer(3.0, 3.0)
    state = LSTMState(draw(2, STREAMS, OUTPUT), draw(2, STREAMS, CELL, seed=6))
    inputs = draw(2, STEPS, STREAMS, INPUT, seed=8).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, state, start_flags())[0], [inputs])


def test_without_gradient_long_inputs_run_in_pieces_with_the_same_result() -> None:
    layer = build_layer(3.0, 3.0)
    inputs = draw(2, 523, STREAMS, INPUT)
    whole, end = layer(inputs, layer.zero_state(STREAMS))
    with torch.no_grad():
        pieces, end_of_pieces = layer(inputs, layer.zero_state(STREAMS))
    torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(end_of_pieces.cell, end.cell, rtol=0, atol=1e-12)


def test_starting_a_sentence_leaves_the_output_before_untouched() -> None:
    layer = build_layer(3.0, 3.0)
    inputs = draw(2, STEPS, STREAMS, INPUT)
    keep = torch.ones(STEPS, STREAMS, 1, dtype=torch.float64)
    keep[3, 1] = 0
    carried, _ = layer(inputs, layer.zero_state(STREAMS))
    restarted, _ = layer(inputs, layer.zero_state(STREAMS), keep)
    torch.testing.assert_close(restarted[:, :3], carried[:, :3])
    alone, _ = layer(inputs[:, 3:, 1:2], layer.zero_state(1))
    torch.testing.assert_close(restarted[:, 3:, 1:2], alone)
