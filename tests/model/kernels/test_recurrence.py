"""However the recurrence is computed (packed, compiled, on two threads, in used memory), it is the plain cell's."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import torch
from model.test_projected_lstm import plain_lstm
from torch import Tensor

from elmo_zh.model.bilm import BiLM, BiLMShape
from elmo_zh.model.kernels import passes
from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.products import can_pack
from elmo_zh.model.precision import BFLOAT16, FLOAT32, Precision
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM
from elmo_zh.model.token_encoder import TokenInputs

# Distinct primes, so that a swapped axis fails.
STEPS, STREAMS, INPUT, CELL, OUTPUT = 11, 3, 7, 37, 13
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
    """Return outputs, cells and all gradients."""
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


@contextmanager
def threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_float32_equals_the_plain_version(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], is_packed: bool, with_starts: bool
) -> None:
    if not is_packed:
        monkeypatch.setattr(passes, "can_pack", lambda *_: False)
    elif not can_pack(torch.zeros(1), torch.float32):
        pytest.skip("matrices cannot be packed here")
    keep = start_flags(sizes[0]) if with_starts else None
    for ours, plain in zip(run(build_layer(sizes), sizes, keep), run_plain(sizes, keep), strict=True):
        torch.testing.assert_close(ours.double(), plain, rtol=1e-5, atol=1e-5 * max(1.0, float(plain.abs().max())))


@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_bfloat16_is_as_near_as_its_rounding(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], is_packed: bool
) -> None:
    """Of 8 bits; without clips, whose gradient a rounding may turn on or off."""
    if not is_packed:
        monkeypatch.setattr(passes, "can_pack", lambda *_: False)
    elif not can_pack(torch.zeros(1), torch.bfloat16):
        pytest.skip("matrices cannot be packed here")
    keep = start_flags(sizes[0])
    found = run(build_layer(sizes, clip=0.0), sizes, keep, BFLOAT16)
    expected = run(build_layer(sizes, clip=0.0).double(), sizes, keep, is_plain=True)
    for ours, plain in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert float((ours - plain).norm()) < 0.02 * float(plain.norm())
    # It was bfloat16.
    assert float((found[0] - expected[0]).norm()) > 1e-4 * float(expected[0].norm())


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
@pytest.mark.parametrize("sizes", SIZES)
def test_one_thread_and_two_give_the_same_bits(sizes: Sequence[int], precision: Precision) -> None:
    results = []
    for number in (1, 2):
        with threads(number):
            results.append(run(build_layer(sizes), sizes, start_flags(sizes[0]), precision))
            assert torch.get_num_threads() == number
    assert_same_bits(*results)


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
@pytest.mark.parametrize("sizes", SIZES)
def test_compiled_and_plain_python_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], precision: Precision
) -> None:
    layer, keep = build_layer(sizes), start_flags(sizes[0])
    # Again and again: TorchScript watches the first runs and then compiles anew.
    compiled = [run(layer, sizes, keep, precision) for _ in range(4)]
    monkeypatch.setattr(passes, "scripted", lambda function: function)
    plain = run(layer, sizes, keep, precision)
    for result in compiled:
        assert_same_bits(result, plain)


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
def test_with_and_without_a_gradient_the_outputs_have_the_same_bits(precision: Precision) -> None:
    sizes = SIZES[2]
    layer, keep = build_layer(sizes), start_flags(sizes[0])
    outputs, cell, *_ = run(layer, sizes, keep, precision)
    inputs = draw(8, 2, STEPS, sizes[0], sizes[1])
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found, after = layer(inputs, draw_state(sizes), keep, precision=precision)
        assert_same_bits([found.clone(), after.cell.clone()], [outputs, cell])


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
@pytest.mark.parametrize("cell_dim", [131, 128])
def test_a_stream_does_not_depend_on_those_beside_it(cell_dim: int, precision: Precision) -> None:
    """Not in one bit where cells are as wide as is usual; else torch rounds exp otherwise at the end of a tensor."""
    sizes = (19, 67, cell_dim, 61)
    has_same_bits = cell_dim == 128 and can_pack(torch.zeros(1), precision.dtype)
    tolerance = 0.0 if has_same_bits else 1e-6 if precision is FLOAT32 else 0.02
    layer, inputs, state = build_layer(sizes), draw(8, 2, STEPS, sizes[0], sizes[1]), draw_state(sizes)
    with torch.no_grad():
        whole, after = layer(inputs, state, start_flags(sizes[0]), precision=precision)
        for some in (slice(0, 1), slice(5, 7), slice(18, 19), slice(2, 19)):
            alone = LSTMState(state.output[:, some], state.cell[:, some])
            outputs, end = layer(inputs[:, :, some], alone, start_flags(sizes[0])[:, some], precision=precision)
            for found, expected in ((outputs, whole[:, :, some]), (end.cell, after.cell[:, some])):
                torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


class PoisonedPool(BufferPool):
    """What is taken is not a number anywhere, and so is what was given back, at once."""

    def __init__(self) -> None:
        super().__init__()
        self.in_use: set[int] = set()

    def take(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        buffer = super().take(shape, dtype, device).fill_(math.nan)
        # No two at the same time in one place.
        assert buffer.data_ptr() not in self.in_use
        self.in_use.add(buffer.data_ptr())
        return buffer

    def give_back(self, *buffers: Tensor) -> None:
        for buffer in buffers:
            buffer.data.fill_(math.nan)  # unseen by autograd, which refuses to read what has changed
            self.in_use.remove(buffer.data_ptr())
        super().give_back(*buffers)

    def num_free(self) -> int:
        return sum(len(free) for free in self._free.values())


def forward(
    layer: ProjectedLSTM, state: LSTMState, seed: int, precision: Precision = FLOAT32
) -> tuple[Tensor, Tensor, LSTMState]:
    """Return what was read, a loss, and the state after."""
    inputs = draw(seed, 2, STEPS, STREAMS, INPUT).requires_grad_()
    outputs, after = layer(inputs, state, start_flags(STREAMS), precision=precision)
    return inputs, (outputs * draw(seed + 1, *outputs.shape)).sum(), after


def train_two_steps(layer: ProjectedLSTM, precision: Precision = FLOAT32) -> list[Tensor]:
    state, results = draw_state(SIZES[0]), []
    for seed in (17, 19):
        inputs, loss, state = forward(layer, state, seed, precision)
        gradients = torch.autograd.grad(loss, [inputs, *layer.parameters()])
        results += [loss.detach(), *gradients, state.output, state.cell]
        with torch.no_grad():
            for parameter, gradient in zip(layer.parameters(), gradients[1:], strict=True):
                parameter.sub_(gradient, alpha=0.01)
    return results


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16], ids=lambda precision: precision.name)
def test_steps_in_used_memory_have_the_same_bits(precision: Precision) -> None:
    expected = train_two_steps(build_layer(SIZES[0]), precision)
    layer, pool = build_layer(SIZES[0]), PoisonedPool()
    layer.buffer_pool = pool
    assert_same_bits(train_two_steps(layer, precision), expected)
    assert not pool.in_use
    # What is read, cells, their tanh, gates, and the gradient of what goes into the gates: one set for both steps.
    assert pool.num_free() == 5


@pytest.mark.parametrize("first_backward", [0, 1])
def test_two_runs_forward_and_then_both_backward(first_backward: int) -> None:
    results = []
    for pool in (None, PoisonedPool()):
        layer = build_layer(SIZES[0])
        layer.buffer_pool = pool
        for _ in range(2):  # the second time in used memory
            runs = [forward(layer, draw_state(SIZES[0], seed), seed) for seed in (23, 29)]
            gradients = {}
            for which in (first_backward, 1 - first_backward):
                inputs, loss, _ = runs[which]
                gradients[which] = torch.autograd.grad(loss, [inputs, *layer.parameters()])
        results.append([*gradients[0], *gradients[1], *(run[1].detach() for run in runs)])
    assert_same_bits(*results)


def test_a_run_forward_without_one_backward_leaves_the_next_steps_alone() -> None:
    layer, pool = build_layer(SIZES[0]), PoisonedPool()
    expected = train_two_steps(build_layer(SIZES[0]))
    layer.buffer_pool = pool
    forward(layer, draw_state(SIZES[0]), 23)
    pool.in_use.clear()  # its memory is free, though the pool does not get it
    _, loss, after = forward(layer, draw_state(SIZES[0]), 29)
    state = after.output.clone(), after.cell.clone()
    with torch.no_grad():  # such as an evaluation
        forward(layer, draw_state(SIZES[0]), 31)
    assert_same_bits(train_two_steps(layer), expected)
    assert_same_bits([after.output, after.cell], state)
    layer = build_layer(SIZES[0])
    assert_same_bits([loss.detach()], [forward(layer, draw_state(SIZES[0]), 29)[1].detach()])


def test_layers_that_share_a_pool_do_not_share_memory_at_a_time() -> None:
    shape = BiLMShape(
        num_tokens=31, cell_dim=CELL, projection_dim=OUTPUT, num_layers=3, cell_clip=3.0, projection_clip=3.0,
        skip_connections=True,
    )  # fmt: skip
    results = []
    for pool in (None, PoisonedPool()):
        model = BiLM(shape)
        model.initialise(torch.Generator().manual_seed(3))
        for layer in model.layers:
            layer.buffer_pool = pool
        state, values = model.zero_state(STREAMS), []
        for seed in (37, 41, 43):
            ids = torch.randint(0, 31, (2, STEPS, STREAMS), generator=torch.Generator().manual_seed(seed))
            activations, state = model(TokenInputs(ids), state, start_flags(STREAMS))
            loss = (activations[-1] * draw(seed, *activations[-1].shape)).sum()
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            values += [*(value.detach() for value in activations), *(g.to_dense() for g in gradients)]
            values += [part for layer in state for part in (layer.output, layer.cell)]
        results.append(values)
    assert_same_bits(*results)
    model.reuse_buffers()
    assert len({id(layer.buffer_pool) for layer in model.layers}) == 1


def test_the_pool_gives_what_has_the_shape_and_dtype_and_nothing_twice() -> None:
    pool, cpu = BufferPool(), torch.device("cpu")
    first = pool.take((3, 5), torch.float32, cpu)
    pool.give_back(first, first)
    for shape, dtype in (((5, 3), torch.float32), ((3, 5), torch.bfloat16), ((3, 5, 1), torch.float32)):
        other = pool.take(shape, dtype, cpu)
        assert other is not first
        assert (tuple(other.shape), other.dtype) == (shape, dtype)
    assert pool.take(torch.Size([3, 5]), torch.float32, cpu) is first
    assert pool.take((3, 5), torch.float32, cpu) is not first
