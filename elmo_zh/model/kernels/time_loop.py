"""The recurrence step by step, forward and backward, for one direction or for both at once.

Every function here is in words that TorchScript knows. Shapes are those of one direction; for both at once each begins
with 2. Shape letters: see `model.bilm`; I is the width of the layer's input.
"""

import torch
from torch import Tensor

from elmo_zh.model.kernels.lstm_cell import step_backward, step_forward
from elmo_zh.model.kernels.products import multiply


def loop_forward(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    is_packed: bool,
    output: Tensor,
    cell: Tensor,
    keep: Tensor | None,
    starts: list[bool],
    cell_clip: float,
    output_clip: float,
    outputs: Tensor,
    read: Tensor,
    cells: Tensor,
    tanh_cells: Tensor,
    gates: Tensor,
) -> None:
    """Run over time and fill in the trace.

    Args:
        inputs: Shape (T, B, I), in the dtype of products.
        weight: Of input and output before, together, made ready by `pack`, shape (I + P, 4D).
        bias: With the forget gate's 1, shape (4D,).
        projection: Made ready by `pack`, shape (D, P), or None.
        is_packed: As told to `pack`.
        output: Carried in, shape (B, P).
        cell: Carried in, shape (B, D).
        keep: 0 where a sentence starts, else 1, shape (T, B, 1). None keeps all.
        starts: For each step, whether `keep` needs to be looked at.
        cell_clip: 0 means none.
        output_clip: 0 means none.
        outputs: To fill, shape (T, B, P), in the dtype of products.
        read: To fill with [x, h_before], shape (T, B, I + P), in the dtype of products; or one step long.
        cells: To fill, shape (T, B, D).
        tanh_cells: To fill, shape (T, B, D); or one step long.
        gates: To fill, shape (T, B, 4D); or one step long.
    """
    width, P = inputs.size(-1), output.size(-1)
    num_steps, is_traced = outputs.size(-3), gates.size(-3) == outputs.size(-3)
    for step in range(num_steps):
        place = step if is_traced else 0
        read_here = read.select(-3, place)
        read_here.narrow(-1, 0, width).copy_(inputs.select(-3, step))
        before = read_here.narrow(-1, width, P).copy_(output)
        if starts[step] and keep is not None:
            before.mul_(keep[step])
            cell = cell * keep[step]
        z = multiply(read_here, weight, bias, is_packed).to(cell.dtype)
        cell_here = cells.select(-3, step)
        given = step_forward(
            z, cell, cell_clip, gates.select(-3, place), cell_here, tanh_cells.select(-3, place)
        ).to(inputs.dtype)  # fmt: skip
        if projection is not None:
            given = multiply(given, projection, None, is_packed)
        output = outputs.select(-3, step).copy_(given)
        if projection is not None and output_clip > 0:
            output.clamp_(-output_clip, output_clip)
        cell = cell_here


def loop_backward(
    d_outputs: Tensor,
    weight: Tensor,
    projection: Tensor | None,
    is_packed: bool,
    first_cell: Tensor,
    keep: Tensor | None,
    starts: list[bool],
    cell_clip: float,
    output_clip: float,
    outputs: Tensor,
    cells: Tensor,
    tanh_cells: Tensor,
    gates: Tensor,
    d_inputs: Tensor,
    d_bias: Tensor,
    d_z: Tensor,
) -> None:
    """Go back over time, filling in the gradients of inputs and of z and adding to that of the bias.

    Args:
        d_outputs: In the dtype of products; changed in place: afterwards the gradient of each h before its clip.
        weight: Transposed, made ready by `pack`, shape (4D, I + P).
        projection: Transposed, made ready by `pack`, shape (P, D), or None.
        is_packed: As told to `pack`.
        first_cell: Carried in, shape (B, D).
        keep: As forward, and so are `starts` and the clips.
        starts: As forward.
        cell_clip: As forward.
        output_clip: As forward.
        outputs: From the forward run, as all that follows.
        cells: Shape (T, B, D).
        tanh_cells: Shape (T, B, D).
        gates: Shape (T, B, 4D).
        d_inputs: To fill, shape (T, B, I), in the dtype of products.
        d_bias: To add to, shape (4D,).
        d_z: To fill, shape (T, B, 4D), in the dtype of products.
    """
    width, P = d_inputs.size(-1), d_outputs.size(-1)
    num_steps = outputs.size(-3)
    in_state_dtype = torch.empty_like(gates.select(-3, 0))
    d_cell = torch.zeros_like(first_cell)
    for back in range(num_steps):
        step = num_steps - 1 - back
        d_output, d_z_here = d_outputs.select(-3, step), d_z.select(-3, step)
        if projection is None:
            d_given = d_output.clone()
        else:
            if output_clip > 0:
                clipped = torch.ops.aten.hardtanh_backward(
                    d_output, outputs.select(-3, step), -output_clip, output_clip
                )
                d_output.copy_(clipped)
            d_given = multiply(d_output, projection, None, is_packed)
        before = cells.select(-3, step - 1) if step > 0 else first_cell
        if starts[step] and keep is not None:
            before = before * keep[step]
        # Written in the dtype of the state: in place where products have the same.
        d_z_state = d_z_here if d_z.dtype == gates.dtype else in_state_dtype
        d_cell = step_backward(
            d_given.to(gates.dtype), d_cell, gates.select(-3, step), cells.select(-3, step),
            tanh_cells.select(-3, step), before, cell_clip, d_z_state,
        )  # fmt: skip
        d_bias.add_(d_z_state.sum(dim=-2))
        if d_z.dtype != gates.dtype:
            d_z_here.copy_(d_z_state)
        d_read = multiply(d_z_here, weight, None, is_packed)
        d_inputs.select(-3, step).copy_(d_read.narrow(-1, 0, width))
        if step > 0:
            d_before = d_read.narrow(-1, width, P)
            if starts[step] and keep is not None:
                d_cell, d_before = d_cell * keep[step], d_before * keep[step]
            d_outputs.select(-3, step - 1).add_(d_before)
