"""The GPU's loop against the processor's, on a processor without graphs; tests/test_gpu_checks.py runs it on a GPU."""

import importlib.util
import os
import sys
from collections.abc import Iterator

import pytest
import torch
from gpu_layers import (
    CELL,
    INPUT,
    OUTPUT,
    STEPS,
    STREAMS,
    build_layer,
    draw,
    on_gpu_path,
    start_flags,
    train_layers,
)
from torch import Tensor

from elmo_zh.model.kernels import gpu_loop, gpu_recurrence, graphs
from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.cells import Clips, LayerWeights
from elmo_zh.model.kernels.gpu_loop import PLAIN_STEPS, CellSteps, LoopShape, TimeLoop
from elmo_zh.model.kernels.recurrence import run_recurrence
from elmo_zh.model.precision import FLOAT32
from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM

HAS_GPU = torch.cuda.is_available()
needs_triton = pytest.mark.skipif(
    HAS_GPU or importlib.util.find_spec("triton") is None,
    reason="needs Triton, and no GPU: Triton's interpreter is chosen once for all kernels",
)


def run_recurrences(
    layer: ProjectedLSTM, on_gpu_path: bool, with_starts: bool, product_dtype: torch.dtype
) -> list[Tensor]:
    """Values, and gradients where they are asked for, of one of the two recurrences."""
    dtype = layer.bias.dtype
    inputs = draw(2, STEPS, STREAMS, INPUT, seed=8, dtype=product_dtype).requires_grad_()
    state = LSTMState(
        draw(2, STREAMS, layer.output_dim, seed=5, dtype=dtype), draw(2, STREAMS, CELL, seed=6, dtype=dtype)
    )
    weights = LayerWeights(layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)
    arguments = (inputs, weights, state, start_flags(dtype) if with_starts else None, layer.clips, None)
    run = gpu_recurrence.run_gpu_recurrence if on_gpu_path else run_recurrence
    outputs, cells = run(*arguments)
    if not torch.is_grad_enabled():
        return [outputs, cells]
    weighting = draw(*outputs.shape, seed=7, dtype=dtype)
    return [outputs, cells, *torch.autograd.grad((outputs * weighting).sum(), [inputs, *layer.parameters()])]


def assert_recurrences_equal(layer: ProjectedLSTM, with_starts: bool, dtype: torch.dtype, tolerance: float) -> None:
    expected, found = (run_recurrences(layer, on_gpu_path, with_starts, dtype) for on_gpu_path in (False, True))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("with_gradient", [False, True])
@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.3, 0.4), (3.0, 0.0)])
@pytest.mark.parametrize("output", [OUTPUT, CELL])
def test_the_loop_equals_the_processors(
    output: int, clips: tuple[float, float], with_starts: bool, with_gradient: bool
) -> None:
    with torch.set_grad_enabled(with_gradient):
        assert_recurrences_equal(build_layer(clips, output), with_starts, torch.float64, 1e-12)


@pytest.mark.parametrize("with_gradient", [False, True])
def test_products_in_bfloat16_leave_cells_in_float32(with_gradient: bool) -> None:
    layer = build_layer((0.7, 0.4), OUTPUT, torch.float32)
    with torch.set_grad_enabled(with_gradient):
        found = run_recurrences(layer, True, True, torch.bfloat16)
        assert [found[0].dtype, found[1].dtype] == [torch.bfloat16, torch.float32]
        assert_recurrences_equal(layer, True, torch.bfloat16, 0.1)


@needs_triton
@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.3, 0.4)])
@pytest.mark.parametrize("output", [OUTPUT, CELL])
def test_the_loop_with_fused_cells_equals_the_processors(
    monkeypatch: pytest.MonkeyPatch, output: int, clips: tuple[float, float], with_starts: bool
) -> None:
    os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are defined
    from elmo_zh.model.kernels.fused_cell import fused_backward, fused_forward

    steps = CellSteps("triton", fused_forward, fused_backward)
    monkeypatch.setattr(gpu_recurrence, "choose_steps", lambda *_: steps)
    layer = build_layer(clips, output, torch.float32)
    assert_recurrences_equal(layer, with_starts, torch.float32, 1e-5)
    assert_recurrences_equal(layer, with_starts, torch.bfloat16, 0.1)


def test_a_loop_may_go_back_again_and_others_may_run_meanwhile() -> None:
    layer = build_layer((0.3, 0.4), OUTPUT)
    state = LSTMState(
        draw(2, STREAMS, OUTPUT, seed=5, dtype=torch.float64), draw(2, STREAMS, CELL, seed=6, dtype=torch.float64)
    )
    weights = LayerWeights(layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)

    def run(seed: int) -> Tensor:
        inputs = draw(2, STEPS, STREAMS, INPUT, seed=seed, dtype=torch.float64)
        outputs, _ = gpu_recurrence.run_gpu_recurrence(inputs, weights, state, None, layer.clips, None)
        return outputs.square().sum()

    first = run(1)
    expected = torch.autograd.grad(first, layer.recurrent_weight, retain_graph=True)[0]
    run(2)
    assert torch.equal(torch.autograd.grad(first, layer.recurrent_weight)[0], expected)


def test_without_cuda_cells_are_torchs() -> None:
    assert gpu_loop.choose_steps(torch.device("cpu"), torch.float32) is PLAIN_STEPS
    assert not PLAIN_STEPS.fallback_reason


def test_without_triton_the_reason_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "elmo_zh.model.kernels.fused_cell", None)
    steps = gpu_loop._fused_steps_or_plain.__wrapped__(torch.device("cpu"))
    assert (steps.name, steps.forward) == (PLAIN_STEPS.name, PLAIN_STEPS.forward)
    assert steps.fallback_reason.startswith("ModuleNotFoundError: ")


@pytest.fixture
def pretended_graphs() -> Iterator[None]:
    """On a processor: training goes through the GPU's recurrence, and a graph is the function that it was made of."""
    with on_gpu_path("cpu"):
        yield


@pytest.mark.parametrize("with_starts", [False, True])
def test_loops_used_again_train_as_new_ones(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, with_starts: bool
) -> None:
    processors = train_layers("cpu", FLOAT32, with_starts)
    request.getfixturevalue("pretended_graphs")
    again = train_layers("cpu", FLOAT32, with_starts)
    monkeypatch.setattr(gpu_recurrence, "_USE_GRAPHS", False)
    for ours, new, theirs in zip(again, train_layers("cpu", FLOAT32, with_starts), processors, strict=True):
        assert torch.equal(ours, new)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("pretended_graphs")
def test_a_loop_is_free_again_after_its_way_back_only() -> None:
    pool, layer = BufferPool(), build_layer((0.3, 0.4), INPUT, torch.float32)
    layer.buffer_pool = pool
    inputs, state = torch.ones(2, STEPS, STREAMS, INPUT), layer.zero_state(STREAMS)
    first, _ = layer(inputs, state)
    kept = first.detach().clone()
    second, _ = layer(2 * inputs, state)
    assert not any(pool.captured.values())
    first.sum().backward()
    third, _ = layer(3 * inputs, state)
    assert torch.equal(first, kept)
    (second.sum() + third.sum()).backward()
    assert [len(loops) for loops in pool.captured.values()] == [2]


def test_where_capturing_fails_operations_start_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    shape = LoopShape(
        num_steps=STEPS, num_streams=STREAMS, cell_dim=CELL, output_dim=OUTPUT, product_dtype=torch.float32,
        state_dtype=torch.float32, device=torch.device("cpu"), has_projection=True, has_keep=False,
        clips=Clips(3.0, 3.0), is_traced=True,
    )  # fmt: skip
    monkeypatch.setattr(graphs, "_capture", fail)
    pool = BufferPool()
    for _ in range(2):
        assert type(gpu_recurrence._take_loop(shape, pool)) is TimeLoop
        monkeypatch.setattr(graphs, "_capture", None)  # not tried again
    assert pool.capture_failure == "RuntimeError: operation not permitted when stream is capturing"
