"""The recurrence of one LSTM layer as one operation with a gradient.

Its passes forward and backward are those of `kernels.recurrence_passes`; a GPU has others (`kernels.gpu_recurrence`),
and takes these, every operation for both directions, under torch.compile only.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.gpu_recurrence import run_gpu_recurrence
from elmo_zh.model.kernels.recurrence_passes import Clips, Trace, run_backward, run_forward


def run_recurrence(
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
    keep: Tensor | None,
    clips: Clips,
    buffers: BufferPool | None = None,
) -> tuple[Tensor, Tensor]:
    """Run over time.

    Args:
        inputs: Shape (2, T, B, I), in the dtype that products shall have.
        input_weight: Shape (2, I, 4D).
        recurrent_weight: Shape (2, P, 4D).
        bias: Shape (2, 4D), without the forget gate's 1.
        projection: Shape (2, D, P), or None where P = D.
        output: Carried in, shape (2, B, P); no gradient reaches it.
        cell: Carried in, shape (2, B, D); no gradient reaches it.
        keep: 0 where a sentence starts from zero state, else 1, shape (T, B, 1). None keeps all.
        clips: Of cell state and output.
        buffers: Where to take what a step backward needs, and to give it back after it; cells too, so that they must
            be read before. None takes new ones.

    Returns:
        Outputs, shape (2, T, B, P), in the dtype of the inputs, and cells, shape (2, T, B, D).
    """
    arguments = (inputs, input_weight, recurrent_weight, bias, projection, output, cell, keep)
    if torch.compiler.is_compiling():
        # The operator is for torch.compile, which takes it as a whole; calling it otherwise makes torch import its
        # compiler, more than a second.
        outputs, _, cells, _, _ = _recurrence_operator(*arguments, clips.cell, clips.output)
    elif inputs.device.type == "cuda":
        outputs, cells = run_gpu_recurrence(*arguments, clips.cell, clips.output, buffers)
    elif torch.is_grad_enabled():
        outputs, _, cells, _, _ = _Recurrence.apply(*arguments, clips, buffers)  # type: ignore[no-untyped-call]
    else:
        outputs, _, cells, _, _ = run_forward(*arguments, clips, None, is_traced=False)
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
) -> Trace:
    clips = Clips(cell_clip, output_clip)
    return run_forward(inputs, input_weight, recurrent_weight, bias, projection, output, cell, keep, clips, None)


def _operator_backward(
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
    cell_clip: float,
    output_clip: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    clips, trace = Clips(cell_clip, output_clip), (outputs, read, cells, tanh_cells, gates)
    return run_backward(
        d_outputs, input_weight, recurrent_weight, projection, first_cell, keep, *trace, clips=clips, buffers=None
    )


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
) -> Trace:
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
    projection: Tensor | None,
    _first_cell: Tensor,
    _keep: Tensor | None,
    _outputs: Tensor,
    read: Tensor,
    _cells: Tensor,
    _tanh_cells: Tensor,
    gates: Tensor,
    *_others: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return (
        read.new_empty(*read.shape[:3], input_weight.shape[1]),
        torch.empty_like(input_weight),
        torch.empty_like(recurrent_weight),
        gates.new_empty(2, gates.shape[3]),
        gates.new_empty(0) if projection is None else torch.empty_like(projection),
    )


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: Trace) -> None:
    _, input_weight, recurrent_weight, _, projection, _, first_cell, keep, *others = inputs
    ctx.save_for_backward(input_weight, recurrent_weight, projection, first_cell, keep, *output)
    ctx.others = others


def _pass_gradient_on(ctx: Any, d_outputs: Tensor, run: Callable[..., Any]) -> tuple[Tensor | None, ...]:
    """Return the gradient of each input; that of cells and gates, and of the state carried in, is not used."""
    *found, d_projection = run(d_outputs, *ctx.saved_tensors, *ctx.others)
    has_projection = ctx.saved_tensors[2] is not None
    return (*found, d_projection if has_projection else None, None, None, None, None, None)


_recurrence_operator.register_autograd(
    lambda ctx, d_outputs, *_: _pass_gradient_on(ctx, d_outputs, _recurrence_backward_operator),
    setup_context=_keep_for_backward,
)


class _Recurrence(torch.autograd.Function):
    """The same for use without torch.compile."""

    @staticmethod
    def forward(*inputs: Any) -> Trace:
        return run_forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Trace) -> None:
        _keep_for_backward(ctx, inputs, output)
        ctx.mark_non_differentiable(*output[1:])
        # Else torch fills as many zeros as the trace is long, as the gradients of what has none.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * 10
        return _pass_gradient_on(ctx, gradients[0], run_backward)
