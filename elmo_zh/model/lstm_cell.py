"""One time step of the cell, element by element, forward and backward.

The cell follows TensorFlow 1's LSTMCell with num_proj, as the published biLM uses it: gates in the order input,
candidate, forget, output; 1 added to the forget gate (here by the caller, with the bias); the cell state clipped before
it is read. Everything here is in the dtype of the state; shapes end in (B, 4D) for gates, else (B, D).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward


def step_forward(z: Tensor, before: Tensor, clip: float, gates: Tensor, cell: Tensor, tanh_cell: Tensor) -> Tensor:
    """Return what the cell gives out, m = o tanh(c), with c = clip(f c_before + i j).

    Args:
        z: What goes into the gates, overwritten.
        before: The cell state before, zero where a sentence starts.
        clip: Largest absolute value of the cell state; 0 means none.
        gates: Filled with the values of the gates; may be z itself.
        cell: Filled with the cell state.
        tanh_cell: Filled with its tanh.
    """
    z_i, z_j, z_fo = z.split_with_sizes((before.shape[-1], before.shape[-1], 2 * before.shape[-1]), dim=-1)
    i, j, f, o = gates.chunk(4, dim=-1)
    torch.sigmoid(z_i, out=i)
    _tanh(z_j, out=j)
    torch.sigmoid(z_fo, out=gates[..., 2 * before.shape[-1] :])
    torch.mul(f, before, out=cell).addcmul_(i, j)
    if clip > 0:
        cell.clamp_(-clip, clip)
    _tanh(cell, out=tanh_cell)
    return o * tanh_cell


def _tanh(values: Tensor, *, out: Tensor) -> None:
    """Fill `out` with tanh(x) = 2 sigmoid(2x) - 1: on processors, torch takes six times as long for its own tanh.

    The absolute error stays that of a rounding.
    """
    torch.mul(values, 2, out=out).sigmoid_().mul_(2).sub_(1)


@dataclass(frozen=True)
class CellTrace:
    """What a step forward leaves for the step back.

    Attributes:
        gates: Values of the gates.
        cell: The clipped cell state.
        tanh_cell: Its tanh.
        before: The cell state that the step started from.
    """

    gates: Tensor
    cell: Tensor
    tanh_cell: Tensor
    before: Tensor


def step_backward(d_read: Tensor, d_cell: Tensor, trace: CellTrace, clip: float, d_z: Tensor) -> Tensor:
    """Return the gradient of the cell state before the step.

    Args:
        d_read: Gradient of m; overwritten.
        d_cell: Gradient of the cell state from the step after; overwritten.
        trace: Of the step forward.
        clip: As forward.
        d_z: Filled with the gradient of z.
    """
    i, j, f, o = trace.gates.chunk(4, dim=-1)
    d_i, d_j, d_f, d_o = d_z.chunk(4, dim=-1)
    _sigmoid_backward(d_read * trace.tanh_cell, o, grad_input=d_o)
    d_cell.add_(_tanh_backward(d_read.mul_(o), trace.tanh_cell))
    if clip > 0:
        # The gradient of a clip: none where the value stands at the bound.
        d_cell = torch.ops.aten.hardtanh_backward(d_cell, trace.cell, -clip, clip)
    _sigmoid_backward(d_cell * j, i, grad_input=d_i)
    _tanh_backward.grad_input(d_cell * i, j, grad_input=d_j)
    _sigmoid_backward(d_cell * trace.before, f, grad_input=d_f)
    return d_cell.mul_(f)
