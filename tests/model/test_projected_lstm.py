"""The hand-written recurrence against a plain autograd version of the published cell, however it is computed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from elmo_zh.model import projected_lstm
from elmo_zh.model.kernels import recurrence
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.precision import BFLOAT16, FLOAT32, Precision
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM

STEPS = 11
# Streams, input, cell and output: distinct primes, so that a swapped axis fails; in one there is no projection.
SIZES = [(3, 7, 37, 13), (1, 1, 2, 1), (19, 67, 131, 61), (5, 7, 37, 37)]
EACH_PRECISION = pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def build_layer(sizes: Sequence[int], *clips: float) -> ProjectedLSTM:
    layer = ProjectedLSTM(*sizes[1:], *clips)
    with torch.no_grad():
        for seed, parameter in enumerate(layer.parameters()):
            parameter.copy_(draw(seed, *parameter.shape) * min(0.5, 2 * sizes[2] ** -0.5))
    return layer


def draw_state(sizes: Sequence[int], dtype: torch.dtype = torch.float32) -> LSTMState:
    num_streams, _, cell_dim, output_dim = sizes
    return LSTMState(draw(5, 2, num_streams, output_dim).to(dtype), draw(6, 2, num_streams, cell_dim).to(dtype))


def start_flags(num_streams: int) -> Tensor:
    """A sentence starts at the first step of some streams, at others in the middle, and somewhere in all at once."""
    keep = torch.ones(STEPS, num_streams, 1)
    keep[0, ::2] = keep[3, 1::3] = keep[7] = 0
    return keep


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


def run(
    layer: ProjectedLSTM,
    sizes: Sequence[int],
    keep: Tensor | None = None,
    precision: Precision = FLOAT32,
    *,
    is_plain: bool = False,
) -> list[Tensor]:
    """Return outputs, last cell states, and the gradients of inputs and parameters."""
    dtype = layer.bias.dtype
    inputs, state = draw(8, 2, STEPS, *sizes[:2]).to(dtype).requires_grad_(), draw_state(sizes, dtype)
    keep = None if keep is None else keep.to(dtype)
    if is_plain:
        outputs, cell = plain_lstm(layer, inputs, state, keep)
    else:
        outputs, after = layer(inputs, state, keep, precision=precision)
        cell = after.cell
    weighting = draw(9, *outputs.shape).to(outputs.dtype)
    gradients = torch.autograd.grad((outputs * weighting).sum(), [inputs, *layer.parameters()])
    return [outputs.detach(), cell.detach(), *gradients]


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.3, 0.4), (3.0, 0.0)])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_values_and_gradients_equal_the_plain_version(
    dtype: torch.dtype, tolerance: float, sizes: Sequence[int], clips: tuple[float, float], with_starts: bool
) -> None:
    """In float32 with packed matrices, where the machine has them."""
    layer, keep = build_layer(sizes, *clips).to(dtype), start_flags(sizes[0]) if with_starts else None
    expected = run(build_layer(sizes, *clips).double(), sizes, keep, is_plain=True)
    for ours, plain in zip(run(layer, sizes, keep), expected, strict=True):
        bound = tolerance * max(1.0, float(plain.abs().max()))
        torch.testing.assert_close(ours.double(), plain, rtol=tolerance, atol=bound)


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_bfloat16_is_as_near_as_its_rounding(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], is_packed: bool
) -> None:
    """Of 8 bits; without clips, whose gradient a rounding may turn on or off."""
    if not is_packed:
        monkeypatch.setattr(recurrence, "can_pack", lambda *_: False)
    elif not can_pack(torch.zeros(1), torch.bfloat16):
        pytest.skip("matrices cannot be packed here")
    keep = start_flags(sizes[0])
    found = run(build_layer(sizes, 0.0, 0.0), sizes, keep, BFLOAT16)
    expected = run(build_layer(sizes, 0.0, 0.0).double(), sizes, keep, is_plain=True)
    for ours, plain in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert float((ours - plain).norm()) < 0.02 * float(plain.norm())
    # It was bfloat16.
    assert float((found[0] - expected[0]).norm()) > 1e-4 * float(expected[0].norm())


def assert_same_bits(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.isfinite().all()
        assert torch.equal(ours, theirs)


@EACH_PRECISION
@pytest.mark.parametrize("sizes", SIZES)
def test_compiled_and_plain_python_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], precision: Precision
) -> None:
    layer, keep = build_layer(sizes, 0.8, 0.8), start_flags(sizes[0])
    # Again and again: TorchScript watches the first runs and then compiles anew.
    compiled = [run(layer, sizes, keep, precision) for _ in range(4)]
    monkeypatch.setattr(recurrence, "scripted", lambda function, _: function)
    plain = run(layer, sizes, keep, precision)
    for result in compiled:
        assert_same_bits(result, plain)


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Let torch fill what it allocates without a content with NaN."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@EACH_PRECISION
def test_nothing_is_read_before_it_is_written(precision: Precision) -> None:
    layer, keep = build_layer(SIZES[0], 0.8, 0.8), start_flags(SIZES[0][0])
    expected = run(layer, SIZES[0], keep, precision)
    with poisoned_memory():
        assert torch.empty(3).isnan().all()
        assert_same_bits(run(layer, SIZES[0], keep, precision), expected)


# Shorter and longer than a piece of three steps, and as long as one or two.
LENGTHS = (4, 1, 7, 3, 6)
FIVE = (len(LENGTHS), 7, 11, 2)


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("inference_steps", [3, 256])
@pytest.mark.parametrize("with_gradient", [False, True])
def test_in_pieces_or_not_the_state_is_that_after_each_streams_last_step_that_counts(
    monkeypatch: pytest.MonkeyPatch, with_gradient: bool, inference_steps: int, with_starts: bool
) -> None:
    monkeypatch.setattr(projected_lstm, "_INFERENCE_STEPS", inference_steps)
    layer, state = build_layer(FIVE, 0.7, 0.4).double(), draw_state(FIVE, torch.float64)
    inputs, keep = draw(1, 2, 7, *FIVE[:2]).double(), None
    if with_starts:
        keep = torch.ones(7, len(LENGTHS), 1, dtype=torch.float64)
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
        for found, wanted in zip(after, expected, strict=True):
            torch.testing.assert_close(found[:, only], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", [None, torch.tensor([2, 5, 3, 1, 4])])
def test_no_gradient_reaches_the_state_that_is_carried(lengths: Tensor | None) -> None:
    layer, state = build_layer(FIVE, 3.0, 3.0), draw_state(FIVE)
    inputs = draw(1, 2, 5, *FIVE[:2]).requires_grad_()
    before = [part.requires_grad_() for part in state]
    outputs, after = layer(inputs, state, None, lengths)
    assert not any(part.requires_grad for part in after)
    of_inputs, *of_state = torch.autograd.grad(outputs.square().sum(), [inputs, *before], allow_unused=True)
    assert (of_inputs != 0).all()
    assert of_state == [None, None]
