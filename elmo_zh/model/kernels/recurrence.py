"""The recurrence of one LSTM layer over time, as one operation with a gradient.

With z = [x, h_before] W + b, split into i, j, f, o: c = clip(sigmoid(f + 1) c_before + sigmoid(i) tanh(j)), m =
sigmoid(o) tanh(c), h = clip(m W_p). Writing the gradient by hand lets each weight's gradient be one product over all
steps. On a CPU the two directions run side by side, each on half of the threads; elsewhere every operation computes
both. Products run in one dtype (float32 or bfloat16); cells, gates and sums have the dtype of the bias.

The cell follows TensorFlow 1's LSTMCell with num_proj, as the published biLM uses it: gates in the order input,
candidate, forget, output; 1 added to the forget gate, with the bias; the cell state clipped before it is read. The
steps and the loops over time are compatible with TorchScript. Their shapes are for one direction; for both at once,
each begins with 2. `aten.*_backward` are the derivatives that autograd itself uses, in one pass over memory.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from elmo_zh.model.kernels.execution import scripted, side_by_side
from elmo_zh.model.kernels.products import can_pack, multiply, multiply_once, pack


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


class Clips(NamedTuple):
    """Maximum absolute values of cell state and output; 0 means no clipping."""

    cell: float
    output: float


def step_forward(z: Tensor, before: Tensor, clip: float, gates: Tensor, cell: Tensor, tanh_cell: Tensor) -> Tensor:
    """Return the cell's output before the projection, m = o tanh(c), with c = clip(f c_before + i j).

    A clip of 0 means no clipping. `gates` (which may be z itself), `cell` and `tanh_cell` are filled.
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
    """A layer's weights as the loops over time take them; the backward loop takes transposed matrices."""

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
    read: Tensor  # [x, h_before], shape (T, B, I + P), in the dtype of products
    cells: Tensor  # c, shape (T, B, D)
    tanh_cells: Tensor  # tanh c, shape (T, B, D)
    gates: Tensor  # Shape (T, B, 4D)


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
    for step in range(trace.outputs.size(-3)):
        read_here = trace.read.select(-3, step)
        read_here.narrow(-1, 0, width).copy_(inputs.select(-3, step))
        before = read_here.narrow(-1, width, P).copy_(output)
        if starts.may_start[step] and keep is not None:
            before.mul_(keep[step])
            cell = cell * keep[step]
        z = multiply(read_here, weights.matrix, weights.bias, weights.is_packed).to(cell.dtype)
        cell_here, tanh_here = trace.cells.select(-3, step), trace.tanh_cells.select(-3, step)
        given = step_forward(z, cell, clips.cell, trace.gates.select(-3, step), cell_here, tanh_here).to(inputs.dtype)
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
    cell state carried in, shape (B, D).
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


def fill_sigmoid_gradient(d_output: Tensor, output: Tensor, out: Tensor) -> None:
    """Fill `out` with the gradient with respect to a sigmoid's input."""
    torch.ops.aten.sigmoid_backward(d_output, output, grad_input=out)


def fill_tanh_gradient(d_output: Tensor, output: Tensor, out: Tensor) -> None:
    """Fill `out` with the gradient with respect to a tanh's input."""
    torch.ops.aten.tanh_backward(d_output, output, grad_input=out)


def tanh_gradient(d_output: Tensor, output: Tensor) -> Tensor:
    """Return the gradient with respect to a tanh's input."""
    result: Tensor = torch.ops.aten.tanh_backward(d_output, output)
    return result


def clip_gradient(d_output: Tensor, value: Tensor, clip: float) -> Tensor:
    """Return the gradient with respect to a value before clipping: zero where the value is at the bound."""
    result: Tensor = torch.ops.aten.hardtanh_backward(d_output, value, -clip, clip)
    return result


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
    outputs, cells = _Recurrence.apply(*call)  # type: ignore[no-untyped-call]
    return outputs, cells


def run_forward(call: Call) -> Trace:
    """Run the forward pass for both directions, and return the trace."""
    inputs, cell, weights = call.inputs, call.cell, call.weights
    D, trace = cell.shape[2], _empty_trace(call)
    bias_plus_one = weights.bias.clone()
    bias_plus_one[:, 2 * D : 3 * D] += 1.0
    weights, state = weights._replace(bias=bias_plus_one), LSTMState(call.output, cell)

    def run(which: Any) -> None:
        _fill_trace(
            inputs[which], _pick(weights, which), _pick(state, which), call.keep, call.clips, _pick(trace, which)
        )

    _run_directions(run, inputs)
    return trace


def _empty_trace(call: Call) -> Trace:
    inputs, cell = call.inputs, call.cell
    *sizes, input_dim = inputs.shape  # (2, T, B, I)
    D, P = cell.shape[2], call.output.shape[2]
    return Trace(
        outputs=inputs.new_empty(*sizes, P),
        read=inputs.new_empty(*sizes, input_dim + P),
        cells=cell.new_empty(*sizes, D),
        tanh_cells=cell.new_empty(*sizes, D),
        gates=cell.new_empty(*sizes, 4 * D),
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
    """Return the weights as a loop uses them: the input and recurrent ones joined; transposed for the backward loop."""
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
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        call = Call(*arguments)
        trace = run_forward(call)
        ctx.save_for_backward(*call.weights, call.cell, call.keep, *trace)
        ctx.clips = call.clips
        ctx.mark_non_differentiable(trace.cells)
        # Otherwise torch would allocate zeros as the gradient of the cells, which have none.
        ctx.set_materialize_grads(False)
        return trace.outputs, trace.cells

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if gradients[0] is None:
            return (None,) * len(Call._fields)
        d_inputs, d_weights = run_backward(gradients[0], ctx.saved_tensors, ctx.clips)
        return d_inputs, *d_weights, *_NO_GRADIENTS


# For state, starts and clips.
_NO_GRADIENTS = (None,) * (len(Call._fields) - 1 - len(LayerWeights._fields))
