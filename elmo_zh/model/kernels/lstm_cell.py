"""One time step of the cell, element by element, forward and backward; in words that TorchScript knows.

The cell follows TensorFlow 1's LSTMCell with num_proj, as the published biLM uses it: gates in the order input,
candidate, forget, output; 1 added to the forget gate (here by the caller, with the bias); the cell state clipped before
it is read. Everything here is in the dtype of the state; shapes end in (B, 4D) for gates, else (B, D).
"""

import torch
from torch import Tensor


def step_forward(z: Tensor, before: Tensor, clip: float, gates: Tensor, cell: Tensor, tanh_cell: Tensor) -> Tensor:
    """Return what the cell gives out, m = o tanh(c), with c = clip(f c_before + i j).

    Args:
        z: What goes into the gates.
        before: The cell state before, zero where a sentence starts.
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
    """Fill `out` with tanh(x) = 2 sigmoid(2x) - 1: on processors, torch takes six times as long for its own tanh.

    The absolute error stays that of one or two roundings.
    """
    torch.mul(values, 2, out=out).sigmoid_().mul_(2).sub_(1)


def step_backward(
    d_read: Tensor,
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
        d_read: Gradient of m; overwritten.
        d_cell: Gradient of the cell state from the step after; overwritten.
        gates: Values of the gates, as all that follows from the step forward.
        cell: The clipped cell state.
        tanh_cell: Its tanh.
        before: The cell state that the step started from.
        clip: As forward.
        d_z: Filled with the gradient of z.
    """
    D = before.size(-1)
    i, j, f, o = gates.narrow(-1, 0, D), gates.narrow(-1, D, D), gates.narrow(-1, 2 * D, D), gates.narrow(-1, 3 * D, D)
    torch.ops.aten.sigmoid_backward(d_read * tanh_cell, o, grad_input=d_z.narrow(-1, 3 * D, D))
    d_cell.add_(torch.ops.aten.tanh_backward(d_read.mul_(o), tanh_cell))
    if clip > 0:
        # The gradient of a clip: none where the value stands at the bound.
        d_cell = torch.ops.aten.hardtanh_backward(d_cell, cell, -clip, clip)
    torch.ops.aten.sigmoid_backward(d_cell * j, i, grad_input=d_z.narrow(-1, 0, D))
    torch.ops.aten.tanh_backward(d_cell * i, j, grad_input=d_z.narrow(-1, D, D))
    torch.ops.aten.sigmoid_backward(d_cell * before, f, grad_input=d_z.narrow(-1, 2 * D, D))
    return d_cell.mul_(f)
