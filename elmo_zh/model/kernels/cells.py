"""The LSTM cell: its weights, its state, and one time step, forward and backward; compatible with TorchScript.

The cell follows TensorFlow 1's LSTMCell with num_proj, as the published biLM uses it: gates in the order input,
candidate, forget, output; 1 added to the forget gate (here by the caller, with the bias); the cell state clipped before
it is read. Steps compute everything in the dtype of the state; shapes end in (B, 4D) for gates, else (B, D).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elmo_zh.model.kernels.torch_internals import (
    clip_gradient,
    fill_sigmoid_gradient,
    fill_tanh_gradient,
    tanh_gradient,
)


class LayerWeights(NamedTuple):
    """The weights of one layer, both directions.

    Attributes:
        input: Shape (2, I, 4D), I the width of the layer's input.
        recurrent: Shape (2, P, 4D).
        bias: Shape (2, 4D), without the forget gate's 1.
        projection: Shape (2, D, P), or None where P = D.
    """

    input: Tensor
    recurrent: Tensor
    bias: Tensor
    projection: Tensor | None


class LSTMState(NamedTuple):
    """The state that a layer carries from step to step; no gradient flows into a state carried in.

    Attributes:
        output: The projected output h, before any skip connection, shape (2, B, P).
        cell: The cell state c, shape (2, B, D).
    """

    output: Tensor
    cell: Tensor

    def first(self, num_streams: int) -> "LSTMState":
        """Return the state of the first streams only."""
        return LSTMState(self.output[:, :num_streams], self.cell[:, :num_streams])


class Clips(NamedTuple):
    """Largest absolute values of cell state and output; 0 means no clip."""

    cell: float
    output: float


def step_forward(z: Tensor, before: Tensor, clip: float, gates: Tensor, cell: Tensor, tanh_cell: Tensor) -> Tensor:
    """Return the cell's output before the projection, m = o tanh(c), with c = clip(f c_before + i j).

    Args:
        z: Input of the gates.
        before: The previous cell state, zero where a sentence starts.
        clip: Largest absolute value of the cell state; 0 means none.
        gates: Filled with the values of the gates; may be z itself.
        cell: Filled with the cell state.
        tanh_cell: Filled with its tanh.
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
    """Fill `out` with tanh(x) = 2 sigmoid(2x) - 1: torch's own tanh takes six times as long on processors.

    The absolute error stays that of one or two roundings.
    """
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

    Args:
        d_output: Gradient of m; overwritten.
        d_cell: Gradient of the cell state from the following step; overwritten.
        gates: Values of the gates, from the step forward, as the next three arguments.
        cell: The clipped cell state.
        tanh_cell: Its tanh.
        before: The cell state that the step started from.
        clip: As forward.
        d_z: Filled with the gradient of z.
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
