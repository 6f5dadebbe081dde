"""The recurrence of one LSTM layer as one operation with a gradient.

Its passes forward and backward are those of `kernels.passes`; a GPU has others (`kernels.gpu_recurrence`), and takes
these, every operation for both directions, under torch.compile only.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.cells import Clips, LayerWeights, LSTMState
from elmo_zh.model.kernels.gpu_recurrence import run_gpu_recurrence
from elmo_zh.model.kernels.loops import Trace
from elmo_zh.model.kernels.passes import run_backward, run_forward

# Custom operators and autograd functions take and return plain tensors: those of a trace, and the gradients of inputs
# and weights, the last of them empty where there is no projection.
_FiveTensors = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
_NUM_ARGUMENTS = 10


def run_recurrence(
    inputs: Tensor,
    weights: LayerWeights,
    state: LSTMState,
    keep: Tensor | None,
    clips: Clips,
    buffers: BufferPool | None = None,
) -> tuple[Tensor, Tensor]:
    """Run over time.

    Args:
        inputs: Shape (2, T, B, I), in the dtype of matrix products.
        weights: The layer's weights.
        state: Carried in; no gradient reaches it.
        keep: 0 where a sentence starts from zero state, else 1, shape (T, B, 1). None keeps all.
        clips: Largest values of cell state and output.
        buffers: Where to take the tensors that the backward run needs; they are given back after it, the cells too,
            which must be read before. None takes new ones.

    Returns:
        Outputs, shape (2, T, B, P), in the dtype of the inputs, and cells, shape (2, T, B, D).
    """
    if torch.compiler.is_compiling():
        # The operator is for torch.compile, which takes it as a whole; calling it otherwise makes torch import its
        # compiler, more than a second.
        outputs, _, cells, _, _ = _recurrence_operator(inputs, *weights, *state, keep, *clips)
    elif inputs.device.type == "cuda":
        outputs, cells = run_gpu_recurrence(inputs, weights, state, keep, clips, buffers)
    elif torch.is_grad_enabled():
        outputs, _, cells, _, _ = _Recurrence.apply(  # type: ignore[no-untyped-call]
            inputs, *weights, *state, keep, clips, buffers
        )
    else:
        outputs, _, cells, _, _ = run_forward(inputs, weights, state, keep, clips, None, is_traced=False)
    return outputs, cells


def _operator_forward(
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
    keep: Tensor | None,
    cell_clip: float,
    output_clip: float,
) -> _FiveTensors:
    weights, clips = LayerWeights(input_weight, recurrent_weight, bias, projection), Clips(cell_clip, output_clip)
    outputs, read, cells, tanh_cells, gates = run_forward(inputs, weights, LSTMState(output, cell), keep, clips, None)
    return outputs, read, cells, tanh_cells, gates


def _operator_backward(
    d_outputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    first_cell: Tensor,
    keep: Tensor | None,
    outputs: Tensor,
    read: Tensor,
    cells: Tensor,
    tanh_cells: Tensor,
    gates: Tensor,
    cell_clip: float,
    output_clip: float,
) -> _FiveTensors:
    saved = (
        input_weight,
        recurrent_weight,
        bias,
        projection,
        first_cell,
        keep,
        outputs,
        read,
        cells,
        tanh_cells,
        gates,
    )
    return _differentiate(d_outputs, *saved, Clips(cell_clip, output_clip), None)


def _differentiate(d_outputs: Tensor, *saved: Any) -> _FiveTensors:
    """Return the gradients of inputs and weights from what `_save_for_backward` saved, clips and buffers last."""
    *tensors, clips, buffers = saved
    weights, (first_cell, keep), trace = LayerWeights(*tensors[:4]), tensors[4:6], Trace(*tensors[6:])
    d_inputs, d_weights, _ = run_backward(d_outputs, weights, first_cell, keep, clips, trace, buffers)
    d_input_weight, d_recurrent_weight, d_bias, d_projection = d_weights
    assert d_projection is not None
    return d_inputs, d_input_weight, d_recurrent_weight, d_bias, d_projection


_recurrence_operator = torch.library.custom_op("elmo_zh::recurrence", _operator_forward, mutates_args=())
_recurrence_backward_operator = torch.library.custom_op(
    "elmo_zh::recurrence_backward", _operator_backward, mutates_args=()
)


@_recurrence_operator.register_fake
def _(
    inputs: Tensor,
    _input_weight: Tensor,
    _recurrent_weight: Tensor,
    _bias: Tensor,
    _projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
    *_others: Any,
) -> _FiveTensors:
    _, num_steps, num_streams, input_dim = inputs.shape
    D, P = cell.shape[2], output.shape[2]
    return (
        inputs.new_empty(2, num_steps, num_streams, P),
        inputs.new_empty(2, num_steps, num_streams, input_dim + P),
        cell.new_empty(2, num_steps, num_streams, D),
        cell.new_empty(2, num_steps, num_streams, D),
        cell.new_empty(2, num_steps, num_streams, 4 * D),
    )


@_recurrence_backward_operator.register_fake
def _(
    _d_outputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    _first_cell: Tensor,
    _keep: Tensor | None,
    _outputs: Tensor,
    read: Tensor,
    *_others: Any,
) -> _FiveTensors:
    return (
        read.new_empty(*read.shape[:3], input_weight.shape[1]),
        torch.empty_like(input_weight),
        torch.empty_like(recurrent_weight),
        torch.empty_like(bias),
        bias.new_empty(0) if projection is None else torch.empty_like(projection),
    )


def _save_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, *weights, _, first_cell, keep = inputs[:8]
    ctx.save_for_backward(*weights, first_cell, keep, *output)
    ctx.others = inputs[8:]


def _pass_gradient_on(ctx: Any, d_outputs: Tensor, run: Callable[..., _FiveTensors]) -> tuple[Tensor | None, ...]:
    """Return the gradient of each input; those of cells, gates and the state carried in are not used."""
    *found, d_projection = run(d_outputs, *ctx.saved_tensors, *ctx.others)
    has_projection = ctx.saved_tensors[3] is not None
    return (*found, d_projection if has_projection else None, None, None, None, None, None)


_recurrence_operator.register_autograd(
    lambda ctx, d_outputs, *_: _pass_gradient_on(ctx, d_outputs, _recurrence_backward_operator),
    setup_context=_save_for_backward,
)


class _Recurrence(torch.autograd.Function):
    """The same for use without torch.compile."""

    @staticmethod
    def forward(inputs: Tensor, *others: Any) -> tuple[Tensor, ...]:
        *tensors, keep, clips, buffers = others
        return tuple(run_forward(inputs, LayerWeights(*tensors[:4]), LSTMState(*tensors[4:]), keep, clips, buffers))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _save_for_backward(ctx, inputs, output)
        ctx.mark_non_differentiable(*output[1:])
        # Otherwise torch allocates zeros as long as the trace, as the gradients of what has none.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * _NUM_ARGUMENTS
        return _pass_gradient_on(ctx, gradients[0], _differentiate)
