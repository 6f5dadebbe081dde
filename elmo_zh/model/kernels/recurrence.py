"""The recurrence of one LSTM layer over time, as one operation with a gradient.

With z = [x, h_before] W + b, split into i, j, f, o: c = clip(sigmoid(f + 1) c_before + sigmoid(i) tanh(j)), m =
sigmoid(o) tanh(c), h = clip(m W_p). Writing the gradient by hand lets each weight's gradient be one product over all
steps. On a CPU the two directions run side by side, each on its own cores with packed matrices; elsewhere every
operation computes both. Products run in one dtype (float32 or bfloat16), cells, gates and sums in the dtype of the
bias.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from elmo_zh.model.kernels.cells import (
    Clips,
    LayerWeights,
    LSTMState,
    PreparedWeights,
    SentenceStarts,
    StepGradients,
    Trace,
    loop_backward,
    loop_forward,
)
from elmo_zh.model.kernels.execution import side_by_side
from elmo_zh.model.kernels.products import can_pack, multiply_once, pack
from elmo_zh.model.kernels.torch_internals import scripted


class Call(NamedTuple):
    """The arguments of one forward run, flattened for the autograd function."""

    inputs: Tensor  # Shape (2, T, B, I), in the dtype of matrix products
    input_weight: Tensor  # Shape (2, I, 4D)
    recurrent_weight: Tensor  # Shape (2, P, 4D)
    bias: Tensor  # Shape (2, 4D), without the forget gate's 1
    projection: Tensor | None  # Shape (2, D, P), or None where P = D
    output: Tensor  # The output carried in, shape (2, B, P); no gradient reaches it
    cell: Tensor  # The cell state carried in, shape (2, B, D); no gradient reaches it
    keep: Tensor | None  # 0 where a sentence starts from zero state, else 1, shape (T, B, 1). None keeps all.
    cell_clip: float  # Largest absolute value of the cell state; 0 means none
    output_clip: float  # Largest absolute value of the output; 0 means none

    @property
    def weights(self) -> LayerWeights:
        """The weights of the layer, as one tuple."""
        return LayerWeights(self.input_weight, self.recurrent_weight, self.bias, self.projection)

    @property
    def clips(self) -> Clips:
        """The limits of the cell state and of the output."""
        return Clips(self.cell_clip, self.output_clip)


def run_recurrence(call: Call) -> tuple[Tensor, Tensor]:
    """Return outputs (2, T, B, P), in the inputs' dtype, and cell states (2, T, B, D), which have no gradient."""
    if torch.compiler.is_compiling():
        # torch.compile leaves the recurrence alone. As a decorator, `disable` would make every program import torch's
        # compiler, which takes more than a second.
        return torch.compiler.disable(run_recurrence)(call)  # type: ignore[no-any-return, no-untyped-call]
    if not torch.is_grad_enabled():
        trace = run_forward(call, is_traced=False)
        return trace.outputs, trace.cells
    outputs, _, cells, *_ = _Recurrence.apply(*call)  # type: ignore[no-untyped-call]
    return outputs, cells


def run_forward(call: Call, *, is_traced: bool = True) -> Trace:
    """Run forward and return the trace of both directions; unless `is_traced`, most of it is one step long."""
    inputs, cell, weights = call.inputs, call.cell, call.weights
    D, trace = cell.shape[2], _empty_trace(call, num_traced=inputs.shape[1] if is_traced else 1)
    bias_plus_one = weights.bias.clone()
    bias_plus_one[:, 2 * D : 3 * D] += 1.0
    weights, state = weights._replace(bias=bias_plus_one), LSTMState(call.output, cell)

    def run(which: Any) -> None:
        _fill_trace(
            inputs[which], _pick(weights, which), _pick(state, which), call.keep, call.clips, _pick(trace, which)
        )

    _run_directions(run, inputs)
    return trace


def _empty_trace(call: Call, num_traced: int) -> Trace:
    inputs, cell = call.inputs, call.cell
    _, num_steps, num_streams, input_dim = inputs.shape
    D, P = cell.shape[2], call.output.shape[2]
    return Trace(
        outputs=inputs.new_empty(2, num_steps, num_streams, P),
        read=inputs.new_empty(2, num_traced, num_streams, input_dim + P),
        cells=cell.new_empty(2, num_steps, num_streams, D),
        tanh_cells=cell.new_empty(2, num_traced, num_streams, D),
        gates=cell.new_empty(2, num_traced, num_streams, 4 * D),
    )


def run_backward(d_outputs: Tensor, saved: Sequence[Any], clips: Clips) -> tuple[Tensor, LayerWeights]:
    """Return the gradients of inputs and weights, given the outputs' gradient and the saved forward run."""
    weights, first_cell, keep, trace = _unpack(saved)
    d_inputs, d_weights = _empty_gradients(saved)
    d_weights.bias.zero_()
    d_z = torch.empty_like(trace.gates, dtype=trace.read.dtype)

    def run(which: Any) -> None:
        own = _pick(weights, which), _pick(trace, which)
        filled = StepGradients(d_inputs[which], d_weights.bias[which], d_z[which])
        before_clip = _run_back(d_outputs[which], *own, first_cell[which], keep, clips, filled)
        _fill_weight_gradients(before_clip, own[1], filled.z, _pick(d_weights, which))

    _run_directions(run, trace.read)
    return d_inputs, d_weights


def _unpack(saved: Sequence[Any]) -> tuple[LayerWeights, Tensor, Tensor | None, Trace]:
    """Return the weights, the cell state passed in, `keep` and the trace from their flat form."""
    return LayerWeights(*saved[:4]), saved[4], saved[5], Trace(*saved[6:])


def _empty_gradients(saved: Sequence[Any]) -> tuple[Tensor, LayerWeights]:
    weights, _, _, trace = _unpack(saved)
    d_inputs = trace.read.new_empty(*trace.read.shape[:3], weights.input.shape[1])
    empty: list[Any] = [None if weight is None else torch.empty_like(weight) for weight in weights]
    return d_inputs, LayerWeights(*empty)


_Tensors = TypeVar("_Tensors", LayerWeights, LSTMState, Trace)


def _pick(tensors: _Tensors, which: Any) -> _Tensors:
    """Return the tensors for one direction, or for both at once."""
    picked: list[Any] = [None if tensor is None else tensor[which] for tensor in tensors]
    return type(tensors)(*picked)


def _run_directions(run: Callable[[Any], object], inputs: Tensor) -> None:
    """Call `run` with the index of each direction on a CPU, and elsewhere once for both directions."""
    with torch.autocast(inputs.device.type, enabled=False):
        if inputs.device.type == "cpu":
            side_by_side(run)
        else:
            run(slice(None))


def _fill_trace(
    inputs: Tensor, weights: LayerWeights, state: LSTMState, keep: Tensor | None, clips: Clips, trace: Trace
) -> None:
    prepared = _prepare(weights, inputs.dtype)
    loop = scripted(loop_forward, inputs.device)
    loop(inputs, prepared, state, _find_starts(keep, inputs.shape[-3]), clips, trace)


def _run_back(
    d_outputs: Tensor,
    weights: LayerWeights,
    trace: Trace,
    first_cell: Tensor,
    keep: Tensor | None,
    clips: Clips,
    filled: StepGradients,
) -> Tensor:
    """Fill in the step gradients of one direction, or both; return the gradient of each h before clipping."""
    dtype = trace.read.dtype
    d_before_clip = d_outputs.to(dtype, copy=True)
    prepared = _prepare(weights, dtype, is_backward=True)
    loop = scripted(loop_backward, d_outputs.device)
    loop(d_before_clip, prepared, first_cell, _find_starts(keep, trace.gates.shape[-3]), clips, trace, filled)
    return d_before_clip


def _fill_weight_gradients(d_before_clip: Tensor, trace: Trace, d_z: Tensor, d_weights: LayerWeights) -> None:
    """Fill in the gradients of the matrices with products over all steps at once."""
    d_matrix = multiply_once(trace.read.flatten(-3, -2).mT, d_z.flatten(-3, -2))
    input_dim = d_weights.input.shape[-2]
    d_weights.input.copy_(d_matrix[..., :input_dim, :])
    d_weights.recurrent.copy_(d_matrix[..., input_dim:, :])
    if d_weights.projection is not None:
        D = trace.cells.shape[-1]
        given = (trace.gates[..., 3 * D :] * trace.tanh_cells).to(d_z.dtype).flatten(-3, -2)
        d_weights.projection.copy_(multiply_once(given.mT, d_before_clip.flatten(-3, -2)))


def _prepare(weights: LayerWeights, dtype: torch.dtype, *, is_backward: bool = False) -> PreparedWeights:
    """Return the weights as the loops use them, with W, shape (..., I + P, 4D), transposed for the backward run."""
    is_packed = can_pack(weights.bias, dtype)

    def prepare(matrix: Tensor) -> Tensor:
        matrix = matrix.to(dtype)
        return pack(matrix.mT if is_backward else matrix, is_packed)

    joined = prepare(torch.cat([weights.input, weights.recurrent], dim=-2))
    projection = None if weights.projection is None else prepare(weights.projection)
    return PreparedWeights(joined, None if is_backward else weights.bias, projection, is_packed)


def _find_starts(keep: Tensor | None, num_steps: int) -> SentenceStarts:
    """Return where sentences start. On a GPU any step may be a start: to find out which, the CPU would have to wait."""
    if keep is None:
        return SentenceStarts(None, [False] * num_steps)
    if keep.device.type != "cpu":
        return SentenceStarts(keep, [True] * num_steps)
    return SentenceStarts(keep, (keep == 0).flatten(1).any(dim=1).tolist())


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(*arguments: Any) -> tuple[Tensor, ...]:
        return tuple(run_forward(Call(*arguments)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call = Call(*inputs)
        ctx.save_for_backward(*call.weights, call.cell, call.keep, *output)
        ctx.clips = call.clips
        ctx.mark_non_differentiable(*output[1:])
        # Otherwise torch would allocate zeros, as large as the trace, as the gradients of outputs that have none.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * len(Call._fields)
        d_inputs, d_weights = run_backward(gradients[0], ctx.saved_tensors, ctx.clips)
        return d_inputs, *d_weights, *_NO_GRADIENTS


# For state, starts and clips.
_NO_GRADIENTS = (None,) * (len(Call._fields) - 1 - len(LayerWeights._fields))
