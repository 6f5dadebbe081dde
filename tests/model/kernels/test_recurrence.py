"""However the recurrence is computed (packed, compiled, on two threads, in used memory), it is the plain cell's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import torch
from model.test_projected_lstm import plain_lstm
from torch import Tensor

from elmo_zh.model.kernels import recurrence
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.precision import BFLOAT16, FLOAT32, Precision
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM

# Distinct primes, so that a swapped axis fails.
STEPS, STREAMS, INPUT, CELL, OUTPUT = 11, 3, 7, 37, 13
EACH_PRECISION = pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
SIZES = [(STREAMS, INPUT, CELL, OUTPUT), (1, 1, 2, 1), (19, 67, 131, 61), (5, INPUT, CELL, CELL)]


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def build_layer(sizes: Sequence[int], clip: float = 0.8) -> ProjectedLSTM:
    _, input_dim, cell_dim, output_dim = sizes
    layer = ProjectedLSTM(input_dim, cell_dim, output_dim, clip, clip)
    layer.initialise(torch.Generator().manual_seed(3))
    with torch.no_grad():
        layer.bias.copy_(draw(4, *layer.bias.shape))
    return layer


def draw_state(sizes: Sequence[int], seed: int = 5) -> LSTMState:
    num_streams, _, cell_dim, output_dim = sizes
    return LSTMState(draw(seed, 2, num_streams, output_dim), draw(seed + 1, 2, num_streams, cell_dim))


def start_flags(num_streams: int) -> Tensor:
    """A sentence starts at the first step of some streams, at others in the middle, and somewhere in all at once."""
    keep = torch.ones(STEPS, num_streams, 1)
    keep[0, ::2] = keep[3, 1::3] = keep[7] = 0
    return keep


def run(
    layer: ProjectedLSTM,
    sizes: Sequence[int],
    keep: Tensor | None = None,
    precision: Precision = FLOAT32,
    *,
    is_plain: bool = False,
) -> list[Tensor]:
    inputs = draw(8, 2, STEPS, sizes[0], sizes[1]).to(layer.bias.dtype).requires_grad_()
    state = draw_state(sizes)
    if is_plain:
        exact = LSTMState(state.output.double(), state.cell.double())
        outputs, cell = plain_lstm(layer, inputs, exact, None if keep is None else keep.double())
    else:
        outputs, after = layer(inputs, state, keep, precision=precision)
        cell = after.cell
    weighting = draw(9, *outputs.shape).to(outputs.dtype)
    gradients = torch.autograd.grad((outputs * weighting).sum(), [inputs, *layer.parameters()])
    return [outputs.detach(), cell.detach(), *gradients]


def run_plain(sizes: Sequence[int], keep: Tensor | None) -> list[Tensor]:
    return run(build_layer(sizes).double(), sizes, keep, is_plain=True)


def assert_same_bits(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.isfinite().all()
        assert torch.equal(ours, theirs)


def set_packing(monkeypatch: pytest.MonkeyPatch, is_packed: bool, dtype: torch.dtype) -> None:
    if not is_packed:
        monkeypatch.setattr(recurrence, "can_pack", lambda *_: False)
    elif not can_pack(torch.zeros(1), dtype):
        pytest.skip("matrices cannot be packed here")


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_float32_equals_the_plain_version(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], is_packed: bool, with_starts: bool
) -> None:
    set_packing(monkeypatch, is_packed, torch.float32)
    keep = start_flags(sizes[0]) if with_starts else None
    for ours, plain in zip(run(build_layer(sizes), sizes, keep), run_plain(sizes, keep), strict=True):
        torch.testing.assert_close(ours.double(), plain, rtol=1e-5, atol=1e-5 * max(1.0, float(plain.abs().max())))


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_bfloat16_is_as_near_as_its_rounding(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], is_packed: bool
) -> None:
    """Of 8 bits; without clips, whose gradient a rounding may turn on or off."""
    set_packing(monkeypatch, is_packed, torch.bfloat16)
    keep = start_flags(sizes[0])
    found = run(build_layer(sizes, clip=0.0), sizes, keep, BFLOAT16)
    expected = run(build_layer(sizes, clip=0.0).double(), sizes, keep, is_plain=True)
    for ours, plain in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert float((ours - plain).norm()) < 0.02 * float(plain.norm())
    # It was bfloat16.
    assert float((found[0] - expected[0]).norm()) > 1e-4 * float(expected[0].norm())


@EACH_PRECISION
@pytest.mark.parametrize("sizes", SIZES)
def test_compiled_and_plain_python_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], precision: Precision
) -> None:
    layer, keep = build_layer(sizes), start_flags(sizes[0])
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
    layer, keep = build_layer(SIZES[0]), start_flags(STREAMS)
    expected = run(layer, SIZES[0], keep, precision)
    with poisoned_memory():
        assert torch.empty(3).isnan().all()
        assert_same_bits(run(layer, SIZES[0], keep, precision), expected)
