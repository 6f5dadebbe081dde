"""The LSTM cell and its loops over time for training (forward and backward) and inference; TorchScript-compatible.

Shapes are for one direction; for both at once, each begins with 2.

The cell follows TensorFlow 1's LSTMCell with num_proj, as the published biLM uses it: gates in the order input,
candidate, forget, output; 1 added to the forget gate (here by the caller, with the bias); the cell state clipped before
it is read. Steps compute everything in the dtype of the state; shapes end in (B, 4D) for gates, otherwise in (B, D).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elmo_zh.model.kernels.products import InferenceProduct, inference_product, multiply
from elmo_zh.model.kernels.torch_internals import (
    clip_gradient,
    fill_sigmoid_gradient,
    fill_tanh_gradient,
    tanh_gradient,
)


class LayerWeights(NamedTuple):
    """The weights of one layer in both directions."""

    input: Tensor  # Shape (2, I, 4D), I the width of the layer's input
    recurrent: Tensor  # Shape (2, P, 4D)
    bias: Tensor  # Shape (2, 4D), without the forget gate's 1
    projection: Tensor | None  # Shape (2, D, P), or None where P = D


class LSTMState(NamedTuple):
    """The state that a layer carries from step to step; no gradient flows into a state passed in."""

    output: Tensor  # The projected output h, before any skip connection, shape (2, B, P)
    cell: Tensor  # The cell state c, shape (2, B, D)

    def first(self, num_streams: int) -> "LSTMState":
        """Return the state of the first `num_streams` streams."""
        return LSTMState(self.output[:, :num_streams], self.cell[:, :num_streams])


class Clips(NamedTuple):
    """Maximum absolute values of cell state and output; 0 means no clipping."""

    cell: float
    output: float


def step_forward(z: Tensor, before: Tensor, clip: float, gates: Tensor, cell: Tensor, tanh_cell: Tensor) -> Tensor:
    """Return the cell's output before the projection, m = o tanh(c), with c = clip(f c_before + i j).

    A clip of 0 means none. `gates` (which may be z itself), `cell` and `tanh_cell` are filled.
    """
    D = before.size(-1)
    i, j, f, o = gates.narrow(-1, 0, D), gates.narrow(-1, D, D), gates.narrow(-1, 2 * D, D), gates.narrow(-1, 3 * D, D)
    torch.sigmoid(z.narrow(-1, 0, D), out=i)
    fill_tanh(z.narrow(-1, D, D), j)
    torch.sigmoid(z.narrow(-1, 2 * D, 2 * D), out=gates.narrow(-1, 2 * D, 2 * D))
    torch.mul(f, before, out=cell).addcmul_(i, j)
    if clip > 0:
        cell.clamp_(-clip, clip)
    fill_tanh(cell, tanh_cell)
    return o * tanh_cell


def fill_tanh(values: Tensor, out: Tensor) -> None:
    """Fill `out` with tanh(x) = 2 sigmoid(2x) - 1; torch's own tanh takes six times as long on CPUs."""
    torch.mul(values, 2, out=out).sigmoid_().mul_(2).sub_(1)


def step_backward(
    d_output: Tensor,
    d_cell: Tensor,
    gates: Tensor,
    cell: Tensor,
    tanh_cell: Tensor,
    before: Tensor,
    clip: float,
    d_z: Tensor,
) -> Tensor:
    """Return the gradient of the cell state before the step.

    `d_output` (of m) and `d_cell` (from the following step) are overwritten, `d_z` is filled. The others are values
    from the forward step: gates, the clipped cell state, its tanh, and the cell state that the step started from.
    """
    D = before.size(-1)
    i, j, f, o = gates.narrow(-1, 0, D), gates.narrow(-1, D, D), gates.narrow(-1, 2 * D, D), gates.narrow(-1, 3 * D, D)
    fill_sigmoid_gradient(d_output * tanh_cell, o, d_z.narrow(-1, 3 * D, D))
    d_cell.add_(tanh_gradient(d_output.mul_(o), tanh_cell))
    if clip > 0:
        d_cell = clip_gradient(d_cell, cell, clip)
    fill_sigmoid_gradient(d_cell * j, i, d_z.narrow(-1, 0, D))
    fill_tanh_gradient(d_cell * i, j, d_z.narrow(-1, D, D))
    fill_sigmoid_gradient(d_cell * before, f, d_z.narrow(-1, 2 * D, D))
    return d_cell.mul_(f)


class PreparedWeights(NamedTuple):
    """A layer's weights as a training loop takes them; the backward loop takes transposed matrices."""

    # For input and previous output together, prepared by `pack`, shape (I + P, 4D); backward its transpose.
    matrix: Tensor
    bias: Tensor | None  # With the forget gate's 1, shape (4D,); None backward
    projection: Tensor | None  # Prepared by `pack`, shape (D, P), or None; backward its transpose
    is_packed: bool  # The value given to `pack`


class SentenceStarts(NamedTuple):
    """The steps at which sentences start from a zero state."""

    keep: Tensor | None  # 0 where a sentence starts, else 1, shape (T, B, 1). None keeps all.
    may_start: list[bool]  # For each step, whether `keep` may hold a 0


class Trace(NamedTuple):
    """The values of a forward pass that the backward pass needs."""

    outputs: Tensor  # h, shape (T, B, P), in the dtype of products
    read: Tensor  # [x, h_before], shape (T, B, I + P), in the dtype of products; without a trace one step long
    cells: Tensor  # c, shape (T, B, D)
    tanh_cells: Tensor  # tanh c, shape (T, B, D); without a trace one step long
    gates: Tensor  # Shape (T, B, 4D); without a trace one step long


class StepGradients(NamedTuple):
    """The gradients that the backward loop fills in, step by step."""

    inputs: Tensor  # Shape (T, B, I), in the dtype of products
    bias: Tensor  # Shape (4D,)
    z: Tensor  # Gradient of the input of the gates, shape (T, B, 4D), in the dtype of products


def loop_forward(
    inputs: Tensor, weights: PreparedWeights, state: LSTMState, starts: SentenceStarts, clips: Clips, trace: Trace
) -> None:
    """Run forward over time and fill the trace."""
    output, cell, keep = state.output, state.cell, starts.keep
    width, P = inputs.size(-1), output.size(-1)
    num_steps, is_traced = trace.outputs.size(-3), trace.gates.size(-3) == trace.outputs.size(-3)
    for step in range(num_steps):
        place = step if is_traced else 0
        read_here = trace.read.select(-3, place)
        read_here.narrow(-1, 0, width).copy_(inputs.select(-3, step))
        before = read_here.narrow(-1, width, P).copy_(output)
        if starts.may_start[step] and keep is not None:
            before.mul_(keep[step])
            cell = cell * keep[step]
        z = multiply(read_here, weights.matrix, weights.bias, weights.is_packed).to(cell.dtype)
        cell_here, tanh_here = trace.cells.select(-3, step), trace.tanh_cells.select(-3, place)
        given = step_forward(z, cell, clips.cell, trace.gates.select(-3, place), cell_here, tanh_here).to(inputs.dtype)
        projection = weights.projection
        if projection is not None:
            given = multiply(given, projection, None, weights.is_packed)
        output = trace.outputs.select(-3, step).copy_(given)
        if projection is not None and clips.output > 0:
            output.clamp_(-clips.output, clips.output)
        cell = cell_here


def loop_backward(
    d_outputs: Tensor,
    weights: PreparedWeights,
    first_cell: Tensor,
    starts: SentenceStarts,
    clips: Clips,
    trace: Trace,
    gradients: StepGradients,
) -> None:
    """Run backward over time with transposed weights; fill the gradients of inputs and z, and add to the bias gradient.

    `d_outputs`, in the dtype of products, is replaced by the gradient of each h before its clip. `first_cell` is the
    state carried in, shape (B, D).
    """
    d_inputs, d_z, gates, keep = gradients.inputs, gradients.z, trace.gates, starts.keep
    width, P = d_inputs.size(-1), d_outputs.size(-1)
    num_steps = trace.outputs.size(-3)
    in_state_dtype = torch.empty_like(gates.select(-3, 0))
    d_cell = torch.zeros_like(first_cell)
    for back in range(num_steps):
        step = num_steps - 1 - back
        d_output, d_z_here = d_outputs.select(-3, step), d_z.select(-3, step)
        projection = weights.projection
        if projection is None:
            d_given = d_output.clone()
        else:
            if clips.output > 0:
                d_output.copy_(clip_gradient(d_output, trace.outputs.select(-3, step), clips.output))
            d_given = multiply(d_output, projection, None, weights.is_packed)
        before = trace.cells.select(-3, step - 1) if step > 0 else first_cell
        if starts.may_start[step] and keep is not None:
            before = before * keep[step]
        # Computed in the dtype of the state: in place if products have the same.
        d_z_state = d_z_here if d_z.dtype == gates.dtype else in_state_dtype
        d_cell = step_backward(
            d_given.to(gates.dtype), d_cell, gates.select(-3, step), trace.cells.select(-3, step),
            trace.tanh_cells.select(-3, step), before, clips.cell, d_z_state,
        )  # fmt: skip
        gradients.bias.add_(d_z_state.sum(dim=-2))
        if d_z.dtype != gates.dtype:
            d_z_here.copy_(d_z_state)
        d_read = multiply(d_z_here, weights.matrix, None, weights.is_packed)
        d_inputs.select(-3, step).copy_(d_read.narrow(-1, 0, width))
        if step > 0:
            d_before = d_read.narrow(-1, width, P)
            if starts.may_start[step] and keep is not None:
                d_cell, d_before = d_cell * keep[step], d_before * keep[step]
            d_outputs.select(-3, step - 1).add_(d_before)


class InferenceWeights(NamedTuple):
    """The weights of one direction of a layer, prepared for inference."""

    # For input and previous output together, (I + P, 4D), with a bias that holds the forget gate's 1.
    gates: InferenceProduct
    projection: InferenceProduct | None  # (D, P), or None


def infer_layer(
    inputs: Tensor, counts: list[int], weights: InferenceWeights, state: LSTMState, clips: Clips, outputs: Tensor
) -> None:
    """Run one direction of a layer over whole sentences; each step skips sentences that have already ended.

    `inputs`, float32, shape (N, I), has the sentences' first tokens, then their second ones and so on, longest sentence
    first; `counts` says how many sentences have a token at each step. `outputs`, shape (N, P), is filled; the state,
    shapes (B, P) and (B, D), is replaced by each sentence's final state.
    """
    output, cell = state.output, state.cell
    width, P = inputs.size(1), output.size(1)
    read = torch.empty([output.size(0), width + P], dtype=weights.gates.rows_dtype)
    tanh_cell = torch.empty_like(cell)
    projection = weights.projection
    first = 0
    for num_sentences in counts:
        read_here, cell_here = read.narrow(0, 0, num_sentences), cell.narrow(0, 0, num_sentences)
        output_here = output.narrow(0, 0, num_sentences)
        read_here.narrow(1, 0, width).copy_(inputs.narrow(0, first, num_sentences))
        read_here.narrow(1, width, P).copy_(output_here)
        z = inference_product(read_here, weights.gates)
        given = step_forward(z, cell_here, clips.cell, z, cell_here, tanh_cell.narrow(0, 0, num_sentences))
        if projection is not None:
            output_here.copy_(inference_product(given.to(projection.rows_dtype), projection))
            if clips.output > 0:
                output_here.clamp_(-clips.output, clips.output)
        else:
            output_here.copy_(given)
        outputs.narrow(0, first, num_sentences).copy_(output_here)
        first += num_sentences
