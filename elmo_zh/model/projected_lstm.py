"""One LSTM layer with projection and clipping, for both directions at once.

The cell follows TensorFlow 1's LSTMCell with num_proj, as the published biLM uses it: gates in the order input,
candidate, forget, output; 1 added to the forget gate; the cell state clipped before it is read; the projected output
clipped before it is carried on. `torch.nn.LSTM` cannot clip.

The forward and the backward LM have the same shapes and never meet, so direction is simply the first axis of every
tensor (size 2) and each matrix product is one batched product over it. Shapes: see `model.bilm`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from elmo_zh.model.precision import choose_product_dtype

# Time steps computed at once where no gradient is needed, so that memory stays bounded for long sentences.
_INFERENCE_STEPS = 256


@dataclass(frozen=True)
class LSTMState:
    """What a layer carries on.

    Attributes:
        output: The projected output h, before any skip connection, shape (2, B, P).
        cell: The cell state c, shape (2, B, D).
    """

    output: Tensor
    cell: Tensor

    def first(self, num_streams: int) -> "LSTMState":
        """Return the state of the first streams only."""
        return LSTMState(self.output[:, :num_streams], self.cell[:, :num_streams])


class ProjectedLSTM(nn.Module):
    """One layer of both directions.

    Attributes:
        input_weight: Shape (2, I, 4D), I the width of the input.
        recurrent_weight: Shape (2, P, 4D).
        bias: Shape (2, 4D), without the forget gate's 1.
        projection: Shape (2, D, P), or None where P = D: then the output is the cell's own.
    """

    def __init__(
        self, input_dim: int, cell_dim: int, projection_dim: int, cell_clip: float, projection_clip: float
    ) -> None:
        super().__init__()
        self.cell_dim, self.output_dim = cell_dim, projection_dim
        self.cell_clip, self.projection_clip = cell_clip, projection_clip
        self.product_dtype: torch.dtype | None = None  # None: that of the weights
        self.input_weight = nn.Parameter(torch.empty(2, input_dim, 4 * cell_dim))
        self.recurrent_weight = nn.Parameter(torch.empty(2, projection_dim, 4 * cell_dim))
        self.bias = nn.Parameter(torch.zeros(2, 4 * cell_dim))
        self.projection: nn.Parameter | None = None
        if projection_dim < cell_dim:
            self.projection = nn.Parameter(torch.empty(2, cell_dim, projection_dim))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights uniformly as Glorot and Bengio (2010), the input and recurrent rows as one matrix."""
        fan_in = self.input_weight.shape[1] + self.output_dim
        bound = (6 / (fan_in + 4 * self.cell_dim)) ** 0.5
        self.input_weight.uniform_(-bound, bound, generator=generator)
        self.recurrent_weight.uniform_(-bound, bound, generator=generator)
        self.bias.zero_()
        if self.projection is not None:
            bound = (6 / (self.cell_dim + self.output_dim)) ** 0.5
            self.projection.uniform_(-bound, bound, generator=generator)

    def zero_state(self, num_streams: int) -> LSTMState:
        """Return the state that every sentence starts from."""
        output = self.bias.new_zeros(2, num_streams, self.output_dim)
        return LSTMState(output, self.bias.new_zeros(2, num_streams, self.cell_dim))

    def forward(
        self, inputs: Tensor, state: LSTMState, keep: Tensor | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, LSTMState]:
        """Run over time.

        Args:
            inputs: Shape (2, T, B, I), float32; the backward LM's already reversed.
            state: What was carried from before; no gradient reaches it.
            keep: 0 where a sentence starts, so that nothing of the state reaches that step, else 1; float32,
                shape (T, B, 1). None keeps all.
            lengths: Steps of each stream that count, at least 1, int64, shape (B,). None counts all.

        Returns:
            The outputs, shape (2, T, B, P), and the state after the last step that counts, without a gradient.
        """
        # Without a gradient a part of the time at once will do, and memory stays bounded.
        num_steps = inputs.shape[1]
        at_once = num_steps if torch.is_grad_enabled() or torch.compiler.is_compiling() else _INFERENCE_STEPS
        all_outputs, last = [], state
        for start in range(0, num_steps, at_once):
            steps = slice(start, start + at_once)
            outputs, cells = self._run(inputs[:, steps], state, None if keep is None else keep[steps])
            state = LSTMState(outputs[:, -1].detach(), cells[:, -1].detach().clone())
            last = state if lengths is None else _state_at(lengths - 1 - start, outputs, cells, last)
            all_outputs.append(outputs)
        return all_outputs[0] if len(all_outputs) == 1 else torch.cat(all_outputs, dim=1), last

    def _run(self, inputs: Tensor, state: LSTMState, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        dtype = choose_product_dtype(self.product_dtype, self.bias)
        projection = None if self.projection is None else self.projection.to(dtype)
        # The operator is for torch.compile, which takes it as a whole; calling it otherwise makes torch import its
        # compiler, more than a second.
        run = _lstm_over_time if torch.compiler.is_compiling() else _Recurrence.apply
        outputs, cells, _ = run(  # type: ignore[no-untyped-call]
            inputs.to(dtype),
            self.input_weight.to(dtype),
            self.recurrent_weight.to(dtype),
            self.bias,
            projection,
            state.output,
            state.cell,
            keep,
            self.cell_clip,
            self.projection_clip,
        )
        return outputs, cells


def _state_at(steps: Tensor, outputs: Tensor, cells: Tensor, otherwise: LSTMState) -> LSTMState:
    """Return each stream's state after one of the steps at hand, or `otherwise` where its step is not among them."""
    here = (steps >= 0) & (steps < outputs.shape[1])
    streams = torch.arange(len(steps), device=steps.device)
    steps = steps.clamp(0, outputs.shape[1] - 1)

    def choose(values: Tensor, before: Tensor) -> Tensor:
        return torch.where(here[:, None], values.detach()[:, steps, streams], before.detach())

    return LSTMState(choose(outputs, otherwise.output), choose(cells, otherwise.cell))


def _recur(
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    bias: Tensor,
    projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
    keep: Tensor | None,
    cell_clip: float,
    projection_clip: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run the recurrence; its gradient is written out below, so that weight gradients are one product over all steps.

    With z = x W_x + h W_h + b, split into i, j, f, o:
        c = clip(sigmoid(f + 1) c_before + sigmoid(i) tanh(j)),  m = sigmoid(o) tanh(c),  h = clip(m W_p).
    Matrix products run in the dtype of the weights given (float32 or bfloat16), everything else in that of the bias.

    Returns:
        Outputs h, shape (2, T, B, P); cells c, shape (2, T, B, D); values of the gates, shape (2, T, B, 4D).
    """
    _, num_steps, num_streams, _ = inputs.shape
    D = cell.shape[2]
    dtype, state_dtype = recurrent_weight.dtype, bias.dtype
    bias_plus_one = bias.clone()
    bias_plus_one[:, 2 * D : 3 * D] += 1.0
    with torch.autocast(bias.device.type, enabled=False):
        # First the input's part of z, then, step by step, the values of the four gates.
        gates = torch.bmm(inputs.flatten(1, 2), input_weight).view(2, num_steps, num_streams, 4 * D)
        gates = gates.to(state_dtype).add_(bias_plus_one[:, None, None])
        outputs = output.new_empty(2, num_steps, num_streams, output.shape[2])
        cells = cell.new_empty(2, num_steps, num_streams, D)
        for step in range(num_steps):
            if keep is not None:
                output, cell = output * keep[step], cell * keep[step]
            z = gates[:, step]
            if dtype == state_dtype:
                z.baddbmm_(output, recurrent_weight)
            else:
                z.add_(torch.bmm(output.to(dtype), recurrent_weight))
            i, j, f, o = (z[..., k * D : (k + 1) * D] for k in range(4))
            i.sigmoid_()
            j.tanh_()
            z[..., 2 * D :].sigmoid_()
            cell = torch.mul(f, cell, out=cells[:, step]).addcmul_(i, j)
            if cell_clip > 0:
                cell.clamp_(-cell_clip, cell_clip)
            output = o * torch.tanh(cell)
            if projection is not None:
                output = torch.bmm(output.to(dtype), projection).to(state_dtype)
                if projection_clip > 0:
                    output.clamp_(-projection_clip, projection_clip)
            outputs[:, step] = output
    return outputs, cells, gates


_lstm_over_time = torch.library.custom_op("elmo_zh::lstm_over_time", _recur, mutates_args=())


@_lstm_over_time.register_fake
def _(
    inputs: Tensor,
    _input_weight: Tensor,
    _recurrent_weight: Tensor,
    bias: Tensor,
    _projection: Tensor | None,
    output: Tensor,
    cell: Tensor,
    *_others: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    num_steps, num_streams, D = inputs.shape[1], inputs.shape[2], cell.shape[2]
    return (
        output.new_empty(2, num_steps, num_streams, output.shape[2]),
        cell.new_empty(2, num_steps, num_streams, D),
        bias.new_empty(2, num_steps, num_streams, 4 * D),
    )


def _recur_backward(
    d_outputs: Tensor,
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    projection: Tensor | None,
    first_output: Tensor,
    first_cell: Tensor,
    keep: Tensor | None,
    outputs: Tensor,
    cells: Tensor,
    gates: Tensor,
    cell_clip: float,
    projection_clip: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of inputs, input weight, recurrent weight, bias and projection (empty without one)."""
    D, dtype = cells.shape[3], recurrent_weight.dtype
    with torch.autocast(cells.device.type, enabled=False):
        tanh_cells = torch.tanh(cells)
        d_outputs = d_outputs.clone(memory_format=torch.contiguous_format)
        d_gates = _step_back(
            d_outputs, recurrent_weight, projection, first_cell, keep, outputs, cells, tanh_cells, gates,
            cell_clip, projection_clip,
        )  # fmt: skip
        # From here on, products over all steps at once.
        outputs_before = torch.cat([first_output[:, None], outputs[:, :-1]], dim=1)
        if keep is not None:
            outputs_before = outputs_before * keep
        d_gates_flat = d_gates.flatten(1, 2).to(dtype)
        d_projection = recurrent_weight.new_empty(0)
        if projection is not None:
            read = (gates[..., 3 * D :] * tanh_cells).flatten(1, 2).to(dtype)
            d_projection = torch.bmm(read.transpose(1, 2), d_outputs.flatten(1, 2).to(dtype))
        d_inputs = torch.bmm(d_gates_flat, input_weight.transpose(1, 2)).view_as(inputs)
        d_input_weight = torch.bmm(inputs.flatten(1, 2).transpose(1, 2), d_gates_flat)
        d_bias = d_gates.sum(dim=(1, 2))
        d_recurrent_weight = torch.bmm(outputs_before.flatten(1, 2).to(dtype).transpose(1, 2), d_gates_flat)
    return d_inputs, d_input_weight, d_recurrent_weight, d_bias, d_projection


def _step_back(
    d_outputs: Tensor,
    recurrent_weight: Tensor,
    projection: Tensor | None,
    first_cell: Tensor,
    keep: Tensor | None,
    outputs: Tensor,
    cells: Tensor,
    tanh_cells: Tensor,
    gates: Tensor,
    cell_clip: float,
    projection_clip: float,
) -> Tensor:
    """Return the gradient of z, shape (2, T, B, 4D), going back step by step.

    `d_outputs` is changed in place: afterwards it holds the gradient of each h before its clip.
    """
    D, dtype, state_dtype = cells.shape[3], recurrent_weight.dtype, cells.dtype
    sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
    tanh_backward = torch.ops.aten.tanh_backward.grad_input
    d_gates = torch.empty_like(gates)
    d_cell = torch.zeros_like(first_cell)
    for step in reversed(range(gates.shape[1])):
        d_output = d_outputs[:, step]
        if projection is not None and projection_clip > 0:
            d_output.mul_(outputs[:, step].abs() < projection_clip)
        d_read = d_output
        if projection is not None:
            d_read = torch.bmm(d_output.to(dtype), projection.transpose(1, 2)).to(state_dtype)
        i, j, f, o = (gates[:, step, :, k * D : (k + 1) * D] for k in range(4))
        d_i, d_j, d_f, d_o = (d_gates[:, step, :, k * D : (k + 1) * D] for k in range(4))
        tanh_cell = tanh_cells[:, step]
        d_cell = d_cell + torch.ops.aten.tanh_backward(d_read * o, tanh_cell)
        if cell_clip > 0:
            d_cell.mul_(cells[:, step].abs() < cell_clip)
        cell_before = cells[:, step - 1] if step > 0 else first_cell
        if keep is not None:
            cell_before = cell_before * keep[step]
        sigmoid_backward(d_cell * j, i, grad_input=d_i)
        tanh_backward(d_cell * i, j, grad_input=d_j)
        sigmoid_backward(d_cell * cell_before, f, grad_input=d_f)
        sigmoid_backward(d_read * tanh_cell, o, grad_input=d_o)
        d_cell = d_cell * f
        d_before = torch.bmm(d_gates[:, step].to(dtype), recurrent_weight.transpose(1, 2)).to(state_dtype)
        if keep is not None:
            d_cell, d_before = d_cell * keep[step], d_before * keep[step]
        if step > 0:
            d_outputs[:, step - 1] += d_before
    return d_gates


_lstm_over_time_backward = torch.library.custom_op("elmo_zh::lstm_over_time_backward", _recur_backward, mutates_args=())


@_lstm_over_time_backward.register_fake
def _(
    _d_outputs: Tensor,
    inputs: Tensor,
    input_weight: Tensor,
    recurrent_weight: Tensor,
    projection: Tensor | None,
    _first_output: Tensor,
    _first_cell: Tensor,
    _keep: Tensor | None,
    _outputs: Tensor,
    _cells: Tensor,
    gates: Tensor,
    *_others: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return (
        torch.empty_like(inputs, memory_format=torch.contiguous_format),
        torch.empty_like(input_weight),
        torch.empty_like(recurrent_weight),
        gates.new_empty(2, gates.shape[3]),
        recurrent_weight.new_empty(0) if projection is None else torch.empty_like(projection),
    )


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    layer_inputs, input_weight, recurrent_weight, _, projection, first_output, first_cell, keep, *clips = inputs
    ctx.save_for_backward(
        layer_inputs, input_weight, recurrent_weight, projection, first_output, first_cell, keep, *output
    )
    ctx.clips = clips


def _pass_gradient_on(ctx: Any, d_outputs: Tensor, run: Callable[..., Any]) -> tuple[Tensor | None, ...]:
    """Return the gradient of each input; that of cells and gates, and of the state carried in, is not used."""
    *found, d_projection = run(d_outputs, *ctx.saved_tensors, *ctx.clips)
    has_projection = ctx.saved_tensors[3] is not None
    return (*found, d_projection if has_projection else None, None, None, None, None, None)


_lstm_over_time.register_autograd(
    lambda ctx, d_outputs, *_: _pass_gradient_on(ctx, d_outputs, _lstm_over_time_backward),
    setup_context=_keep_for_backward,
)


class _Recurrence(torch.autograd.Function):
    """The same for use without torch.compile."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        return _recur(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        _keep_for_backward(ctx, inputs, output)
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _pass_gradient_on(ctx, gradients[0], _recur_backward)
