"""What a GPU computes in one layer, against a processor; needs no pytest, since `benchmarks/gpu.py` runs it too.

Checks take the device as text: cuda, or cpu to go through the GPU's code on a processor, where a graph is the function
that it was made of.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import Mock, patch

import torch
from torch import Tensor

from elmo_zh.model import projected_lstm
from elmo_zh.model.kernels import gpu_recurrence, graphs
from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.cells import Clips, LSTMState
from elmo_zh.model.kernels.gpu_loop import PLAIN_STEPS, CellSteps, kernel_fallback
from elmo_zh.model.kernels.library_lstm import suits_library
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.model.projected_lstm import ProjectedLSTM

STEPS, STREAMS, INPUT, CELL, OUTPUT = 5, 3, 7, 11, 2
CLIPS, NO_CLIPS = (0.3, 0.4), Clips(0.0, 0.0)
TRAINED_STEPS = 3


@contextmanager
def on_gpu_path(device: str) -> Iterator[None]:
    """On a processor: go through the GPU's recurrence, with graphs that are the functions that they were made of."""

    def capture(functions: Sequence[Callable[[], None]], _: torch.device) -> list[SimpleNamespace]:
        return [SimpleNamespace(replay=function) for function in functions]

    if device != "cpu":
        yield
        return
    with (
        patch.object(graphs, "_capture", capture),
        patch.object(projected_lstm, "run_recurrence", gpu_recurrence.run_gpu_recurrence),
    ):
        yield


def build_layer(clips: tuple[float, float], output: int, dtype: torch.dtype = torch.float64) -> ProjectedLSTM:
    layer = ProjectedLSTM(INPUT, CELL, output, *clips).to(dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return layer


def draw(*shape: int, seed: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def start_flags(dtype: torch.dtype) -> Tensor:
    keep = torch.ones(STEPS, STREAMS, 1, dtype=dtype)
    keep[0, 1] = keep[2, 0] = keep[3, 1] = keep[4, 2] = 0
    return keep


def train_layers(device: str, precision: Precision = FLOAT32, with_starts: bool = True) -> list[Tensor]:
    """Three steps of two layers of one shape with one pool, the state carried on."""
    pool, layers = BufferPool(), [build_layer(CLIPS, INPUT, torch.float32).to(device) for _ in range(2)]
    states = [layer.zero_state(STREAMS) for layer in layers]
    parameters = [parameter for layer in layers for parameter in layer.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    told = []
    for layer in layers:
        layer.buffer_pool = pool
    for step in range(TRAINED_STEPS):
        hidden = draw(2, STEPS, STREAMS, INPUT, seed=step, dtype=torch.float32).to(device)
        keep = start_flags(torch.float32).to(device) if with_starts else None
        for index, layer in enumerate(layers):
            hidden, states[index] = layer(hidden, states[index], keep, precision=precision)
        optimizer.zero_grad()
        hidden.square().mean().backward()
        optimizer.step()
        told += [hidden.detach().cpu(), states[0].cell.cpu()]
    assert not pool.capture_failure, pool.capture_failure
    return [*told, *(parameter.detach().cpu() for parameter in parameters)]


def require_close(found: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def check_kernels_work(device: str) -> None:
    """Triton's kernels compile, and their results are right."""
    assert not (reason := kernel_fallback(torch.device(device))), reason


def check_layers_train_as_on_a_processor(
    device: str, precision: Precision, tolerance: float, with_starts: bool
) -> None:
    with on_gpu_path(device):
        found = train_layers(device, precision, with_starts)
    require_close(found, train_layers("cpu", precision, with_starts), tolerance)


def check_graphs_change_no_bit(device: str, precision: Precision) -> None:
    with on_gpu_path(device):
        captured = train_layers(device, precision)
        with patch.object(gpu_recurrence, "_USE_GRAPHS", False):
            plain = train_layers(device, precision)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(captured, plain, strict=True))


def check_two_layers_share_two_captured_loops(device: str) -> None:
    pool, layer = BufferPool(), build_layer(CLIPS, INPUT, torch.float32).to(device)
    layer.buffer_pool = pool
    with on_gpu_path(device):
        for _ in range(TRAINED_STEPS):
            hidden = torch.randn(2, STEPS, STREAMS, INPUT, device=device)
            for _ in range(2):
                hidden, _ = layer(hidden, layer.zero_state(STREAMS))
            hidden.sum().backward()
    assert not pool.capture_failure, pool.capture_failure
    assert [len(loops) for loops in pool.captured.values()] == [2]


def check_layer_embeds_as_on_a_processor(device: str) -> None:
    layer = build_layer(CLIPS, OUTPUT, torch.float32)
    inputs = draw(2, STEPS, STREAMS, INPUT, seed=1, dtype=torch.float32)
    lengths = torch.tensor([2, 5, 3])

    @torch.inference_mode()
    def embed(where: str) -> list[Tensor]:
        layer.to(where)
        state = LSTMState(*(value[:, :1].expand(-1, STREAMS, -1) for value in layer.zero_state(1)))
        outputs, after = layer(inputs.to(where), state, None, lengths.to(where))
        return [outputs.cpu(), after.output.cpu(), after.cell.cpu()]

    expected = embed("cpu")
    with on_gpu_path(device):
        require_close(embed(device), expected, 1e-5)


def run_twice(layer: ProjectedLSTM, device: str) -> list[Tensor]:
    """Values and gradients of two consecutive stretches of a text, the state carried over."""
    generator = torch.Generator().manual_seed(5)

    def draw_on_device(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, layer.bias.dtype)

    layer.to(device)
    inputs, weighting = (
        draw_on_device(2, 2 * STEPS, STREAMS, INPUT).requires_grad_(),
        draw_on_device(2, 2 * STEPS, STREAMS, layer.output_dim),
    )
    state = LSTMState(draw_on_device(2, STREAMS, layer.output_dim), draw_on_device(2, STREAMS, CELL))
    first, middle = layer(inputs[:, :STEPS], state)
    second, after = layer(inputs[:, STEPS:], middle)
    outputs = torch.cat([first, second], dim=1)
    gradients = torch.autograd.grad((outputs * weighting).sum(), [inputs, *layer.parameters()])
    assert not middle.output.requires_grad
    assert not middle.cell.requires_grad
    return [value.cpu() for value in (outputs, middle.cell, after.output, after.cell, *gradients)]


def check_library_equals_a_processor(device: str, output: int) -> None:
    """On a processor, torch's own version for processors takes the place of cuDNN's."""
    layer = build_layer((0.0, 0.0), output, torch.float32)
    expected = run_twice(layer, "cpu")
    if device == "cpu":
        with patch.object(projected_lstm, "suits_library", lambda *_: True):
            return require_close(run_twice(layer, device), expected, 1e-5)
    values = torch.zeros(2, STEPS, STREAMS, INPUT, device=device)
    with patch.object(torch.backends.cudnn, "allow_tf32", False):
        assert suits_library(values, values, None, NO_CLIPS)
        assert not suits_library(values, values, values, NO_CLIPS)
        assert not suits_library(values, values, None, Clips(3.0, 0.0))
        assert not suits_library(values.bfloat16(), values, None, NO_CLIPS)
        with patch.object(projected_lstm, "run_recurrence", Mock(side_effect=AssertionError)):
            require_close(run_twice(layer, device), expected, 1e-5)
    return None


# More than one block of columns, the last one not full.
CELL_STEPS, CELL_STREAMS, WIDE_CELL = 3, 5, 263


def check_cells_equal_torchs(steps: CellSteps, device: str, dtype: torch.dtype, clip: float, has_keep: bool) -> None:
    plain, fused = (run_both_ways(each, device, dtype, clip, has_keep) for each in (PLAIN_STEPS, steps))
    # A GPU's fast exponential is less exact than the one that Triton's interpreter has.
    atol = 2e-6 if device == "cpu" else 2e-5
    for name, value in plain.items():
        # What is rounded to bfloat16 may fall to the other side; cells and gates are float32 all the same.
        rtol = 1e-2 if value.dtype == torch.bfloat16 else 0
        torch.testing.assert_close(
            fused[name], value, rtol=rtol, atol=atol, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert (plain["cell"].abs() == 0.4).any() == (clip == 0.4)


def run_both_ways(steps: CellSteps, device: str, dtype: torch.dtype, clip: float, has_keep: bool) -> dict[str, Tensor]:
    """One step among three, so that the directions lie apart as they do in a loop."""
    generator = torch.Generator().manual_seed(3)

    def draw_step(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(2, CELL_STEPS, *shape, generator=generator).to(device, dtype)[:, 1]

    D = WIDE_CELL
    z, bias = draw_step(CELL_STREAMS, 4 * D, dtype=dtype), draw_step(4 * D).contiguous()
    before = draw_step(CELL_STREAMS, D)
    keep = torch.tensor([1.0, 0, 1, 1, 0], device=device)[:, None] if has_keep else None
    gates, cell, tanh_cell = draw_step(CELL_STREAMS, 4 * D), draw_step(CELL_STREAMS, D), draw_step(CELL_STREAMS, D)
    given, d_z = draw_step(CELL_STREAMS, D, dtype=dtype), draw_step(CELL_STREAMS, 4 * D, dtype=dtype)
    steps.forward(z, bias, before, keep, clip, gates, cell, tanh_cell, given)
    d_given, d_cell = draw_step(CELL_STREAMS, D, dtype=dtype), draw_step(CELL_STREAMS, D).contiguous()
    steps.backward(d_given, d_cell, gates, cell, tanh_cell, before, keep, clip, d_z)
    return {"gates": gates, "cell": cell, "tanh": tanh_cell, "given": given, "d_z": d_z, "d_cell": d_cell}
