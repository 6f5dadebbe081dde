"""The recurrence of one LSTM layer over time, forward and backward, on a processor or as torch.compile takes it.

With z = [x, h_before] W + b, split into i, j, f, o:
    c = clip(sigmoid(f + 1) c_before + sigmoid(i) tanh(j)),  m = sigmoid(o) tanh(c),  h = clip(m W_p).
Writing the gradient by hand lets each weight's gradient be one product over all steps. The two directions run side by
side, each on its own cores with packed matrices. Input and output before go through one product a step: batching the
input's over time is no faster once matrices are packed, and its result would leave the cache in between. Products run
in one dtype (float32 or bfloat16), cells, gates and sums in that of the bias.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.buffers import BufferPool, NoPool
from elmo_zh.model.kernels.products import can_pack, multiply_once, pack
from elmo_zh.model.kernels.scripted import scripted
from elmo_zh.model.kernels.side_by_side import side_by_side
from elmo_zh.model.kernels.time_loop import loop_backward, loop_forward

# Outputs h, (2, T, B, P), and what was read, [x, h_before], (2, T, B, I + P), in the dtype of products; cells c and
# their tanh, (2, T, B, D); gates, (2, T, B, 4D).
Trace = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
_NO_POOL = NoPool()


@dataclass(frozen=True)
class Clips:
    """Largest absolute values; 0 means none."""

    cell: float
    output: float


def run_forward(
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
    keep: Tensor | None,
    clips: Clips,
    buffers: BufferPool | None,
    *,
    is_traced: bool = True,
) -> Trace:
    """Return the trace; without `is_traced`, what is read and the last two parts are only as long as one step."""
    _, num_steps, num_streams, input_dim = inputs.shape
    D, P = cell.shape[2], output.shape[2]
    take = (buffers or _NO_POOL).take
    num_traced = num_steps if is_traced else 1
    trace = (
        inputs.new_empty(2, num_steps, num_streams, P),
        take((2, num_traced, num_streams, input_dim + P), inputs.dtype, inputs.device),
        take((2, num_steps, num_streams, D), cell.dtype, cell.device),
        take((2, num_traced, num_streams, D), cell.dtype, cell.device),
        take((2, num_traced, num_streams, 4 * D), cell.dtype, cell.device),
    )
    bias_plus_one = bias.clone()
    bias_plus_one[:, 2 * D : 3 * D] += 1.0

    def run(which: Any) -> None:
        tensors = (inputs, input_weight, recurrent_weight, bias_plus_one, projection, output, cell)
        _fill_trace(_pick(tensors, which), keep, clips, _pick(trace, which))

    _run_directions(run, inputs)
    return trace


def _run_directions(run: Callable[[Any], object], inputs: Tensor) -> None:
    """Call `run` with the index of each direction, or with one for both at once on a GPU."""
    with torch.autocast(inputs.device.type, enabled=False):
        if inputs.device.type == "cpu":
            side_by_side(run)
        else:
            run(slice(None))


def _pick(tensors: tuple[Tensor | None, ...], which: Any) -> list[Any]:
    return [None if tensor is None else tensor[which] for tensor in tensors]


def _join(input_weight: Tensor, recurrent_weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return W, shape (..., I + P, 4D)."""
    width, height = input_weight.shape[-2], input_weight.shape[-2] + recurrent_weight.shape[-2]
    joined = input_weight.new_empty(*input_weight.shape[:-2], height, input_weight.shape[-1], dtype=dtype)
    joined[..., :width, :].copy_(input_weight)
    joined[..., width:, :].copy_(recurrent_weight)
    return joined


def _fill_trace(tensors: list[Any], keep: Tensor | None, clips: Clips, trace: list[Tensor]) -> None:
    """Fill the trace of one direction, or of both at once."""
    inputs, input_weight, recurrent_weight, bias, projection, output, cell = tensors
    dtype = inputs.dtype
    is_packed = can_pack(cell, dtype)
    weight = pack(_join(input_weight, recurrent_weight, dtype), is_packed)
    project = None if projection is None else pack(projection.to(dtype), is_packed)
    starts = _find_starts(keep, inputs.shape[-3])
    run = scripted(loop_forward)
    run(inputs, weight, bias, project, is_packed, output, cell, keep, starts, clips.cell, clips.output, *trace)


def _find_starts(keep: Tensor | None, num_steps: int) -> list[bool]:
    """Return for each step whether a sentence may start there; a GPU is not asked, since it would have to wait."""
    if keep is None:
        return [False] * num_steps
    found: list[bool] = (keep == 0).flatten(1).any(dim=1).tolist() if keep.device.type == "cpu" else [True] * num_steps
    return found


def run_backward(
    d_outputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    projection: Tensor | None,
    first_cell: Tensor,
    keep: Tensor | None,
    outputs: Tensor,
    read: Tensor,
    cells: Tensor,
    tanh_cells: Tensor,
    gates: Tensor,
    clips: Clips,
    buffers: BufferPool | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of inputs, input weight, recurrent weight, bias and projection (empty without one)."""
    pool = buffers or _NO_POOL
    gradients = (
        read.new_empty(*read.shape[:3], input_weight.shape[1]),
        torch.empty_like(input_weight),
        torch.empty_like(recurrent_weight),
        gates.new_zeros(2, gates.shape[3]),
        gates.new_empty(0) if projection is None else torch.empty_like(projection),
    )
    d_z = pool.take(gates.shape, read.dtype, gates.device)

    def run(which: Any) -> None:
        tensors = (d_outputs, input_weight, recurrent_weight, projection, first_cell)
        into = _pick((*gradients[:4], None if projection is None else gradients[4], d_z), which)
        trace = _pick((outputs, read, cells, tanh_cells, gates), which)
        _fill_gradients(_pick(tensors, which), keep, clips, trace, into)

    _run_directions(run, read)
    pool.give_back(d_z, read, cells, tanh_cells, gates)
    return gradients


def _fill_gradients(
    tensors: list[Any], keep: Tensor | None, clips: Clips, trace: list[Tensor], gradients: list[Any]
) -> None:
    """Fill the gradients of one direction, or of both at once."""
    d_outputs, input_weight, recurrent_weight, projection, first_cell = tensors
    d_inputs, d_input_weight, d_recurrent_weight, d_bias, d_projection, d_z = gradients
    outputs, read, cells, tanh_cells, gates = trace
    dtype, input_dim = read.dtype, d_inputs.shape[-1]
    d_before_clip = d_outputs.to(dtype, copy=True)
    is_packed = can_pack(first_cell, dtype)
    weight = pack(_join(input_weight, recurrent_weight, dtype).mT, is_packed)
    unproject = None if projection is None else pack(projection.to(dtype).mT, is_packed)
    starts = _find_starts(keep, gates.shape[-3])
    scripted(loop_backward)(
        d_before_clip, weight, unproject, is_packed, first_cell, keep, starts, clips.cell, clips.output,
        outputs, cells, tanh_cells, gates, d_inputs, d_bias, d_z,
    )  # fmt: skip
    # From here on, products over all steps at once.
    d_weight = multiply_once(read.flatten(-3, -2).mT, d_z.flatten(-3, -2))
    d_input_weight.copy_(d_weight[..., :input_dim, :])
    d_recurrent_weight.copy_(d_weight[..., input_dim:, :])
    if projection is not None:
        given = (gates[..., 3 * first_cell.shape[-1] :] * tanh_cells).to(dtype).flatten(-3, -2)
        d_projection.copy_(multiply_once(given.mT, d_before_clip.flatten(-3, -2)))
