"""The recurrence of one LSTM layer on a GPU, with its gradient; `kernels.recurrence` has the processor's."""

from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.cells import Clips, LayerWeights, LSTMState
from elmo_zh.model.kernels.gpu_loop import LoopShape, TimeLoop, choose_steps
from elmo_zh.model.kernels.graphs import CapturedLoop

# False launches each operation on its own.
_USE_GRAPHS = True


def run_gpu_recurrence(
    inputs: Tensor,
    weights: LayerWeights,
    state: LSTMState,
    keep: Tensor | None,
    clips: Clips,
    pool: BufferPool | None,
) -> tuple[Tensor, Tensor]:
    """Run over time; as `recurrence.run_recurrence`.

    With a pool, loops are captured as graphs and used again: training has the same shapes at every step. Cells must
    then be read before the next step.
    """
    shape = LoopShape(
        num_steps=inputs.shape[1],
        num_streams=inputs.shape[2],
        cell_dim=state.cell.shape[2],
        output_dim=state.output.shape[2],
        product_dtype=inputs.dtype,
        state_dtype=weights.bias.dtype,
        device=inputs.device,
        has_projection=weights.projection is not None,
        has_keep=keep is not None,
        clips=clips,
        is_traced=torch.is_grad_enabled(),
    )
    # Triton launches kernels on the current device, whatever the tensors'.
    on_device = torch.cuda.device_of(inputs)  # type: ignore[no-untyped-call]
    with on_device, torch.autocast(inputs.device.type, enabled=False):
        if shape.is_traced:
            outputs, cells = _GPURecurrence.apply(  # type: ignore[no-untyped-call]
                inputs, *weights, *state, keep, shape, pool
            )
            return outputs, cells
        loop = TimeLoop(shape, choose_steps(shape.device, shape.state_dtype))
        loop.fill(inputs, weights, state, keep)
        loop.forward()
    return loop.outputs, loop.cells


def _take_loop(shape: LoopShape, pool: BufferPool | None) -> TimeLoop:
    """Return a captured loop that is free, else a new one, captured where graphs are used and capturing works.

    Where it fails, the pool keeps the reason, and training reports it.
    """
    steps = choose_steps(shape.device, shape.state_dtype)
    if pool is None or not _USE_GRAPHS or pool.capture_failure:
        return TimeLoop(shape, steps)
    if free := pool.captured[shape]:
        loop: TimeLoop = free.pop()
        return loop
    try:
        return CapturedLoop(shape, steps)
    except RuntimeError as error:
        pool.capture_failure = f"{type(error).__name__}: {error}"
        return TimeLoop(shape, steps)


class _GPURecurrence(torch.autograd.Function):
    """Passes its gradient to the inputs and the weights, not to the state carried in."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        inputs, *tensors, keep, shape, pool = arguments
        weights = LayerWeights(*tensors[:4])
        loop = _take_loop(shape, pool)
        loop.fill(inputs, weights, LSTMState(*tensors[4:]), keep)
        loop.forward()
        ctx.loop, ctx.pool = loop, pool
        ctx.save_for_backward(inputs, weights.input)
        ctx.set_materialize_grads(False)
        # Outputs outlive the loop's next use: layers above and callers keep them.
        outputs = loop.outputs.clone() if isinstance(loop, CapturedLoop) else loop.outputs.detach()
        cells = loop.cells.detach()
        ctx.mark_non_differentiable(cells)
        return outputs, cells

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        d_outputs, loop = gradients[0], ctx.loop
        if d_outputs is None:
            return (None,) * 10
        assert loop is not None, "each forward run has at most one run backward"
        inputs, input_weight = ctx.saved_tensors
        if not isinstance(loop, CapturedLoop):
            loop.prepare_backward()
        with torch.autocast(inputs.device.type, enabled=False):
            loop.d_outputs.copy_(d_outputs)
            loop.backward()
            found = _gradients(loop, inputs, input_weight)
        if isinstance(loop, CapturedLoop):
            ctx.loop = None
            ctx.pool.captured[loop.shape].append(loop)
        return (*found, None, None, None, None, None)


def _gradients(loop: TimeLoop, inputs: Tensor, input_weight: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of inputs, input weight, recurrent weight, bias and projection, each over all steps."""
    d_z, D, state_dtype = loop.d_z.flatten(1, 2), loop.shape.cell_dim, loop.shape.state_dtype
    d_inputs = torch.bmm(d_z, input_weight.to(d_z.dtype).mT).view(inputs.shape)
    d_projection = None
    if loop.projection is not None:
        given = (loop.gates[..., 3 * D :] * loop.tanh_cells).to(d_z.dtype).flatten(1, 2)
        d_projection = torch.bmm(given.mT, loop.d_outputs.flatten(1, 2)).to(state_dtype)
    return (
        d_inputs,
        torch.bmm(inputs.flatten(1, 2).mT, d_z).to(input_weight.dtype),
        torch.bmm(loop.before.flatten(1, 2).mT, d_z).to(input_weight.dtype),
        d_z.sum(dim=1, dtype=state_dtype),
        d_projection,
    )
