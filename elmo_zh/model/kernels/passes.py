"""The recurrence of one LSTM layer over time, forward and backward, on a processor or under torch.compile.

With z = [x, h_before] W + b, split into i, j, f, o:
    c = clip(sigmoid(f + 1) c_before + sigmoid(i) tanh(j)),  m = sigmoid(o) tanh(c),  h = clip(m W_p).
Writing the gradient by hand lets each weight's gradient be one product over all steps. The two directions run side by
side, each on its own cores with packed matrices. Input and previous output go through one product a step: batching the
input's over time is no faster once matrices are packed, and its result would leave the cache in between. Products run
in one dtype (float32 or bfloat16), cells, gates and sums in that of the bias.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from elmo_zh.model.kernels.buffers import BufferPool, NoPool
from elmo_zh.model.kernels.cells import Clips, LayerWeights, LSTMState
from elmo_zh.model.kernels.execution import scripted, side_by_side
from elmo_zh.model.kernels.loops import (
    PreparedWeights,
    SentenceStarts,
    StepGradients,
    Trace,
    loop_backward,
    loop_forward,
)
from elmo_zh.model.kernels.products import can_pack, multiply_once, pack

_NO_POOL = NoPool()


class Gradients(NamedTuple):
    """Gradients of a layer.

    Attributes:
        inputs: Shape (2, T, B, I), in the dtype of products.
        weights: As the layer's weights; that of the projection is empty where there is none.
        z: Gradient of the input of the gates, shape (2, T, B, 4D), in the dtype of products.
    """

    inputs: Tensor
    weights: LayerWeights
    z: Tensor


_Tensors = TypeVar("_Tensors", LayerWeights, LSTMState, Trace)


def run_forward(
    inputs: Tensor,
    weights: LayerWeights,
    state: LSTMState,
    keep: Tensor | None,
    clips: Clips,
    buffers: BufferPool | None,
    *,
    is_traced: bool = True,
) -> Trace:
    """Return the trace, its tensors beginning with the direction; arguments as `recurrence.run_recurrence`.

    Without `is_traced`, `read`, `tanh_cells` and `gates` are only one step long.
    """
    _, num_steps, num_streams, input_dim = inputs.shape
    cell, D, P = state.cell, state.cell.shape[2], state.output.shape[2]
    take = (buffers or _NO_POOL).take
    num_traced = num_steps if is_traced else 1
    trace = Trace(
        outputs=inputs.new_empty(2, num_steps, num_streams, P),
        read=take((2, num_traced, num_streams, input_dim + P), inputs.dtype, inputs.device),
        cells=take((2, num_steps, num_streams, D), cell.dtype, cell.device),
        tanh_cells=take((2, num_traced, num_streams, D), cell.dtype, cell.device),
        gates=take((2, num_traced, num_streams, 4 * D), cell.dtype, cell.device),
    )
    bias_plus_one = weights.bias.clone()
    bias_plus_one[:, 2 * D : 3 * D] += 1.0
    weights = weights._replace(bias=bias_plus_one)

    def run(which: Any) -> None:
        _fill_trace(inputs[which], _pick(weights, which), _pick(state, which), keep, clips, _pick(trace, which))

    _run_directions(run, inputs)
    return trace


def _run_directions(run: Callable[[Any], object], inputs: Tensor) -> None:
    """Call `run` with the index of each direction, or with one for both at once on a GPU."""
    with torch.autocast(inputs.device.type, enabled=False):
        if inputs.device.type == "cpu":
            side_by_side(run)
        else:
            run(slice(None))


def _pick(tensors: _Tensors, which: Any) -> _Tensors:
    """Return the tensors of one direction, or of both at once."""
    picked: list[Any] = [None if tensor is None else tensor[which] for tensor in tensors]
    return type(tensors)(*picked)


def _join(weights: LayerWeights, dtype: torch.dtype) -> Tensor:
    """Return W, shape (..., I + P, 4D)."""
    width, height = weights.input.shape[-2], weights.input.shape[-2] + weights.recurrent.shape[-2]
    joined = weights.input.new_empty(*weights.input.shape[:-2], height, weights.input.shape[-1], dtype=dtype)
    joined[..., :width, :].copy_(weights.input)
    joined[..., width:, :].copy_(weights.recurrent)
    return joined


def _fill_trace(
    inputs: Tensor, weights: LayerWeights, state: LSTMState, keep: Tensor | None, clips: Clips, trace: Trace
) -> None:
    """Fill the trace of one direction, or of both at once."""
    dtype = inputs.dtype
    is_packed = can_pack(state.cell, dtype)
    matrix = pack(_join(weights, dtype), is_packed)
    projection = None if weights.projection is None else pack(weights.projection.to(dtype), is_packed)
    prepared = PreparedWeights(matrix, weights.bias, projection, is_packed)
    scripted(loop_forward)(inputs, prepared, state, _find_starts(keep, inputs.shape[-3]), clips, trace)


def _find_starts(keep: Tensor | None, num_steps: int) -> SentenceStarts:
    """Return where sentences start; a GPU is not asked at which steps, since the processor would have to wait."""
    if keep is None:
        return SentenceStarts(None, [False] * num_steps)
    if keep.device.type != "cpu":
        return SentenceStarts(keep, [True] * num_steps)
    return SentenceStarts(keep, (keep == 0).flatten(1).any(dim=1).tolist())


def run_backward(
    d_outputs: Tensor,
    weights: LayerWeights,
    first_cell: Tensor,
    keep: Tensor | None,
    clips: Clips,
    trace: Trace,
    buffers: BufferPool | None,
) -> Gradients:
    """Return the gradients of a run forward.

    Args:
        d_outputs: Gradient of the outputs.
        weights: As forward, as the next three arguments.
        first_cell: The cell state carried in.
        keep: As forward.
        clips: As forward.
        trace: From the forward run; its tensors but the outputs are given back.
        buffers: Where they came from.
    """
    pool, gates = buffers or _NO_POOL, trace.gates
    gradients = Gradients(
        inputs=trace.read.new_empty(*trace.read.shape[:3], weights.input.shape[1]),
        weights=LayerWeights(
            torch.empty_like(weights.input),
            torch.empty_like(weights.recurrent),
            gates.new_zeros(2, gates.shape[3]),
            gates.new_empty(0) if weights.projection is None else torch.empty_like(weights.projection),
        ),
        z=pool.take(gates.shape, trace.read.dtype, gates.device),
    )
    has_projection = weights.projection is not None

    def run(which: Any) -> None:
        d_weights = gradients.weights if has_projection else gradients.weights._replace(projection=None)
        filled = Gradients(gradients.inputs[which], _pick(d_weights, which), gradients.z[which])
        starts = _find_starts(keep, gates.shape[-3])
        _fill_gradients(
            d_outputs[which], _pick(weights, which), first_cell[which], starts, clips, _pick(trace, which), filled
        )

    _run_directions(run, trace.read)
    pool.give_back(gradients.z, trace.read, trace.cells, trace.tanh_cells, gates)
    return gradients


def _fill_gradients(
    d_outputs: Tensor,
    weights: LayerWeights,
    first_cell: Tensor,
    starts: SentenceStarts,
    clips: Clips,
    trace: Trace,
    gradients: Gradients,
) -> None:
    """Fill the gradients of one direction, or of both at once."""
    dtype, input_dim, d_weights = trace.read.dtype, gradients.inputs.shape[-1], gradients.weights
    d_before_clip = d_outputs.to(dtype, copy=True)
    is_packed = can_pack(first_cell, dtype)
    matrix = pack(_join(weights, dtype).mT, is_packed)
    projection = None if weights.projection is None else pack(weights.projection.to(dtype).mT, is_packed)
    prepared = PreparedWeights(matrix, None, projection, is_packed)
    in_loop = StepGradients(gradients.inputs, d_weights.bias, gradients.z)
    scripted(loop_backward)(d_before_clip, prepared, first_cell, starts, clips, trace, in_loop)
    # From here on, products over all steps at once.
    d_matrix = multiply_once(trace.read.flatten(-3, -2).mT, gradients.z.flatten(-3, -2))
    d_weights.input.copy_(d_matrix[..., :input_dim, :])
    d_weights.recurrent.copy_(d_matrix[..., input_dim:, :])
    if d_weights.projection is not None:
        given = (trace.gates[..., 3 * first_cell.shape[-1] :] * trace.tanh_cells).to(dtype).flatten(-3, -2)
        d_weights.projection.copy_(multiply_once(given.mT, d_before_clip.flatten(-3, -2)))
