"""One LSTM layer for both directions at once, with projection and, unlike `torch.nn.LSTM`, with clipping.

The forward and the backward LM have the same shapes and never interact, so the first axis of weights, inputs, outputs
and states is simply the direction (size 2). Shapes: see `model.bilm`.
"""

import torch
from torch import Tensor, nn

from elmo_zh.model.kernels.recurrence import Call, Clips, LSTMState, run_recurrence
from elmo_zh.model.precision import FLOAT32, Precision

# Time steps computed at a time where no gradient is needed, so that memory stays bounded for long sentences.
_INFERENCE_STEPS = 256


class ProjectedLSTM(nn.Module):
    """One LSTM layer in both directions. The bias excludes the forget gate's 1; if P = D there is no projection."""

    def __init__(
        self, input_dim: int, cell_dim: int, projection_dim: int, cell_clip: float, projection_clip: float
    ) -> None:
        super().__init__()
        self.cell_dim, self.output_dim = cell_dim, projection_dim
        self.clips = Clips(cell_clip, projection_clip)
        self.input_weight = nn.Parameter(torch.empty(2, input_dim, 4 * cell_dim))
        self.recurrent_weight = nn.Parameter(torch.empty(2, projection_dim, 4 * cell_dim))
        self.bias = nn.Parameter(torch.zeros(2, 4 * cell_dim))
        self.projection: nn.Parameter | None = None
        if projection_dim < cell_dim:
            self.projection = nn.Parameter(torch.empty(2, cell_dim, projection_dim))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights uniformly as in Glorot and Bengio (2010), with input and recurrent rows as one matrix."""
        fan_in = self.input_weight.shape[1] + self.output_dim
        bound = (6 / (fan_in + 4 * self.cell_dim)) ** 0.5
        self.input_weight.uniform_(-bound, bound, generator=generator)
        self.recurrent_weight.uniform_(-bound, bound, generator=generator)
        self.bias.zero_()
        if self.projection is not None:
            bound = (6 / (self.cell_dim + self.output_dim)) ** 0.5
            self.projection.uniform_(-bound, bound, generator=generator)

    def zero_state(self, num_streams: int) -> LSTMState:
        """Return an all-zero state."""
        output = self.bias.new_zeros(2, num_streams, self.output_dim)
        return LSTMState(output, self.bias.new_zeros(2, num_streams, self.cell_dim))

    def forward(
        self,
        inputs: Tensor,
        state: LSTMState,
        keep: Tensor | None = None,
        lengths: Tensor | None = None,
        precision: Precision = FLOAT32,
    ) -> tuple[Tensor, LSTMState]:
        """Return the outputs, shape (2, T, B, P), and, without a gradient, the state after the last real step.

        `inputs` have shape (2, T, B, I), float32, the backward LM's already reversed. `keep` is 0 where a sentence
        starts, so that no state reaches that step, otherwise 1; shape (T, B, 1), None keeps all. `lengths` counts the
        real steps of each stream, at least 1, shape (B,); None counts all.
        """
        read = inputs.to(precision.product_dtype(self.bias))
        num_steps = inputs.shape[1]
        at_a_time = num_steps if torch.is_grad_enabled() or torch.compiler.is_compiling() else _INFERENCE_STEPS
        all_outputs, last = [], state
        for start in range(0, num_steps, at_a_time):
            steps = slice(start, start + at_a_time)
            outputs, cells = self._run(read[:, steps], state, None if keep is None else keep[steps])
            state = LSTMState(outputs[:, -1].detach(), cells[:, -1].detach().clone())
            last = state if lengths is None else _state_at(lengths - 1 - start, outputs, cells, last)
            all_outputs.append(outputs)
        return all_outputs[0] if len(all_outputs) == 1 else torch.cat(all_outputs, dim=1), last

    def _run(self, inputs: Tensor, state: LSTMState, keep: Tensor | None) -> tuple[Tensor, Tensor]:
        weights = self.input_weight, self.recurrent_weight, self.bias, self.projection
        outputs, cells = run_recurrence(Call(inputs, *weights, *state, keep, *self.clips))
        return outputs.to(self.bias.dtype), cells


def _state_at(steps: Tensor, outputs: Tensor, cells: Tensor, otherwise: LSTMState) -> LSTMState:
    """Return each stream's state after its own step, or `otherwise` if that step is outside this block of steps."""
    here = (steps >= 0) & (steps < outputs.shape[1])
    streams = torch.arange(len(steps), device=steps.device)
    steps = steps.clamp(0, outputs.shape[1] - 1)

    def choose(values: Tensor, before: Tensor) -> Tensor:
        return torch.where(here[:, None], values.detach()[:, steps, streams], before.detach())

    return LSTMState(choose(outputs, otherwise.output), choose(cells, otherwise.cell))
