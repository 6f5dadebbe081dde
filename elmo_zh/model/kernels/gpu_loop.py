"""The recurrence step by step on a GPU, forward and backward, for both directions at once.

Computes the same as `kernels.loops`, arranged so that a GPU has few and large operations: products with values known
for all steps are one product, before the loop forward and after it backward; each step is left with the products with
the previous output and the projection, and the cell, one kernel where Triton is available. A loop owns all tensors that
it reads and writes, so that it can be captured as a CUDA graph (`kernels.graphs`). Shape letters: see `model.bilm`.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from elmo_zh.model.kernels.cells import Clips, LayerWeights, LSTMState, step_backward, step_forward


@dataclass(frozen=True)
class CellSteps:
    """One step of the cell forward and backward; arguments as in `kernels.fused_cell`.

    Attributes:
        name: triton or torch.
        forward: Computes a step.
        backward: Computes the gradients of a step.
        fallback_reason: Why these steps replace Triton's, such as a missing package; empty if they do not.
    """

    name: str
    forward: Callable[..., None]
    backward: Callable[..., None]
    fallback_reason: str = ""


@dataclass(frozen=True)
class LoopShape:
    """Everything that a loop is built for; loops of equal shape are interchangeable.

    Attributes:
        num_steps: T.
        num_streams: B.
        cell_dim: D.
        output_dim: P.
        product_dtype: dtype of products, outputs and the input of the gates.
        state_dtype: dtype of cells, gates and bias.
        device: Device of all tensors.
        has_projection: Whether there is a projection; without one P = D.
        has_keep: Whether sentences start within the loop.
        clips: Largest values of cell state and output.
        is_traced: Whether to keep what the backward run needs.
    """

    num_steps: int
    num_streams: int
    cell_dim: int
    output_dim: int
    product_dtype: torch.dtype
    state_dtype: torch.dtype
    device: torch.device
    has_projection: bool
    has_keep: bool
    clips: Clips
    is_traced: bool


class TimeLoop:
    """A layer's loop over time.

    Attributes:
        recurrent_weight: Input, shape (2, P, 4D).
        bias: Input, with the forget gate's 1, shape (2, 4D).
        projection: Input, shape (2, D, P), or None.
        first_output: Input: the output carried in, shape (2, B, P).
        first_cell: Input: the cell state carried in, shape (2, B, D).
        keep: Input: 0 where a sentence starts, else 1, shape (T, B, 1), or None.
        z: Input: x W, the layer input's part of the gates' input; changed by `forward`. Shape (2, T, B, 4D).
        before: Filled by `forward`: the output of the previous step, shape (2, T, B, P).
        outputs: Filled by `forward`, shape (2, T, B, P).
        cells: Filled by `forward`, shape (2, T, B, D).
        tanh_cells: Filled by `forward`, shape (2, T, B, D).
        gates: Filled by `forward`, shape (2, T, B, 4D).
        d_outputs: Input; `backward` replaces it by the gradient of each h before its clip. Shape (2, T, B, P).
        d_z: Filled by `backward`, shape (2, T, B, 4D).
    """

    def __init__(self, shape: LoopShape, steps: CellSteps) -> None:
        self.shape, self._steps = shape, steps
        T, B, D, P = shape.num_steps, shape.num_streams, shape.cell_dim, shape.output_dim
        num_traced = T if shape.is_traced else 1
        new = functools.partial(torch.empty, dtype=shape.product_dtype, device=shape.device)
        new_state = functools.partial(torch.empty, dtype=shape.state_dtype, device=shape.device)
        self.recurrent_weight, self.bias = new(2, P, 4 * D), new_state(2, 4 * D)
        self.projection = new(2, D, P) if shape.has_projection else None
        self.first_output, self.first_cell = new(2, B, P), new_state(2, B, D)
        self.keep = new_state(T, B, 1) if shape.has_keep else None
        # The same for outputs, in their dtype: 0 and 1 are exact in both.
        self._keep_output = new(T, B, 1) if shape.has_keep else None
        self.z, self.before, self.outputs = new(2, T, B, 4 * D), new(2, num_traced, B, P), new(2, T, B, P)
        self.cells, self.tanh_cells = new_state(2, T, B, D), new_state(2, num_traced, B, D)
        is_one_dtype = shape.product_dtype == shape.state_dtype
        self.gates = self.z if is_one_dtype else new_state(2, num_traced, B, 4 * D)
        self._given = new(2, B, D)

    def prepare_backward(self) -> None:
        """Allocate the tensors of the backward run."""
        self.d_outputs, self.d_z = torch.empty_like(self.outputs), torch.empty_like(self.z)
        self._d_given, self._d_cell = torch.empty_like(self._given), torch.empty_like(self.first_cell)
        self._d_before = torch.empty_like(self.first_output)

    @torch.no_grad()
    def fill(
        self,
        inputs: Tensor,
        weights: LayerWeights,
        state: LSTMState,
        keep: Tensor | None,
    ) -> None:
        """Copy in all inputs, with shapes as in `run_recurrence`."""
        D = self.shape.cell_dim
        torch.bmm(inputs.flatten(1, 2), weights.input.to(inputs.dtype), out=self.z.flatten(1, 2))
        self.recurrent_weight.copy_(weights.recurrent)
        self.bias.copy_(weights.bias)[:, 2 * D : 3 * D] += 1
        if self.projection is not None and weights.projection is not None:
            self.projection.copy_(weights.projection)
        self.first_output.copy_(state.output)
        self.first_cell.copy_(state.cell)
        if self.keep is not None and keep is not None:
            self.keep.copy_(keep)
        if self._keep_output is not None and keep is not None:
            self._keep_output.copy_(keep)

    @torch.no_grad()
    def forward(self) -> None:
        """Run over time."""
        shape = self.shape
        for step in range(shape.num_steps):
            place = step if shape.is_traced else 0
            output, cell, keep = self._state_before(step)
            before, output_here, z = self.before[:, place], self.outputs[:, step], self.z[:, step]
            if self._keep_output is None:
                before.copy_(output)
            else:
                torch.mul(output, self._keep_output[step], out=before)
            z.baddbmm_(before, self.recurrent_weight)
            given = output_here if self.projection is None else self._given
            gates = z if self.gates is self.z else self.gates[:, place]
            self._steps.forward(
                z, self.bias, cell, keep, shape.clips.cell, gates, self.cells[:, step], self.tanh_cells[:, place], given
            )
            if self.projection is not None:
                torch.bmm(given, self.projection, out=output_here)
                if shape.clips.output > 0:
                    output_here.clamp_(-shape.clips.output, shape.clips.output)

    @torch.no_grad()
    def backward(self) -> None:
        """Run back over time; the gradients of weights, bias and inputs follow from `d_z` and `d_outputs`."""
        shape, clip = self.shape, self.shape.clips.output
        self._d_cell.zero_()
        for step in reversed(range(shape.num_steps)):
            d_output, d_z, (_, cell_before, keep) = self.d_outputs[:, step], self.d_z[:, step], self._state_before(step)
            d_given = d_output
            if self.projection is not None:
                if clip > 0:
                    clipped = torch.ops.aten.hardtanh_backward(d_output, self.outputs[:, step], -clip, clip)
                    d_output.copy_(clipped)
                d_given = torch.bmm(d_output, self.projection.mT, out=self._d_given)
            self._steps.backward(
                d_given, self._d_cell, self.gates[:, step], self.cells[:, step], self.tanh_cells[:, step],
                cell_before, keep, shape.clips.cell, d_z,
            )  # fmt: skip
            if step == 0:
                break
            if self._keep_output is None:
                self.d_outputs[:, step - 1].baddbmm_(d_z, self.recurrent_weight.mT)
            else:
                torch.bmm(d_z, self.recurrent_weight.mT, out=self._d_before)
                self.d_outputs[:, step - 1].addcmul_(self._d_before, self._keep_output[step])

    def _state_before(self, step: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return output and cell before a step, and its factor `keep` for them."""
        keep = None if self.keep is None else self.keep[step]
        if step == 0:
            return self.first_output, self.first_cell, keep
        return self.outputs[:, step - 1], self.cells[:, step - 1], keep


def _plain_forward(
    z: Tensor,
    bias: Tensor,
    before: Tensor,
    keep: Tensor | None,
    clip: float,
    gates: Tensor,
    cell: Tensor,
    tanh_cell: Tensor,
    given: Tensor,
) -> None:
    before = before if keep is None else before * keep
    given.copy_(step_forward(z + bias[:, None], before, clip, gates, cell, tanh_cell))


def _plain_backward(
    d_given: Tensor,
    d_cell: Tensor,
    gates: Tensor,
    cell: Tensor,
    tanh_cell: Tensor,
    before: Tensor,
    keep: Tensor | None,
    clip: float,
    d_z: Tensor,
) -> None:
    before = before if keep is None else before * keep
    d_z_state = torch.empty_like(gates)
    d_output = d_given.to(gates.dtype, copy=True)
    d_before = step_backward(d_output, d_cell, gates, cell, tanh_cell, before, clip, d_z_state)
    d_cell.copy_(d_before if keep is None else d_before * keep)
    d_z.copy_(d_z_state)


PLAIN_STEPS = CellSteps("torch", _plain_forward, _plain_backward)


def choose_steps(device: torch.device, state_dtype: torch.dtype) -> CellSteps:
    """Return Triton's steps where they are available and work, else torch's."""
    if device.type != "cuda" or state_dtype != torch.float32:
        return PLAIN_STEPS
    return _fused_steps_or_plain(device)


def kernel_fallback(device: torch.device) -> str:
    """Return why a GPU computes LSTM cells by torch's operations, which are slower than Triton's kernels; else ""."""
    return choose_steps(device, torch.float32).fallback_reason


@functools.cache
def _fused_steps_or_plain(device: torch.device) -> CellSteps:
    """Try Triton's steps: only most of torch's builds bring Triton, and it needs a C compiler on the machine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations within Triton
            from elmo_zh.model.kernels.fused_cell import fused_backward, fused_forward

            steps = CellSteps("triton", fused_forward, fused_backward)
            found, expected = (_try_steps(each, device) for each in (steps, PLAIN_STEPS))
    # Triton's own errors, the driver's and the compiler's have no common base; torch's operations need none of them.
    except Exception as error:
        return replace(PLAIN_STEPS, fallback_reason=f"{type(error).__name__}: {error}")
    if not torch.allclose(found, expected, rtol=1e-3, atol=1e-4):
        return replace(PLAIN_STEPS, fallback_reason="its results are wrong on this device")
    return steps


def _try_steps(steps: CellSteps, device: torch.device) -> Tensor:
    """Return the gradient of z after one step forward and backward on test values."""
    z = torch.linspace(-2, 2, 2 * 3 * 20, device=device).view(2, 3, 20)
    before = torch.linspace(-1, 1, 2 * 3 * 5, device=device).view(2, 3, 5)
    cell, tanh_cell, given = before.clone(), before.clone(), before.clone()
    gates, d_z, bias = z.clone(), z.clone(), z[:, 0].contiguous()
    with torch.cuda.device(device):
        steps.forward(z, bias, before, None, 0.5, gates, cell, tanh_cell, given)
        steps.backward(given, before.clone(), gates, cell, tanh_cell, before, None, 0.5, d_z)
    return d_z
