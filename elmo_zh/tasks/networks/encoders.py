"""LSTMs over the units of a text, and pooling of their outputs.

Shape letters: B texts, T units.
"""

import torch
from torch import Tensor, nn

from elmo_zh.model.precision import FLOAT32, fastest_training_precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.tasks.networks.inputs import Dropout
from elmo_zh.tasks.networks.settings import HeadSettings


class BiLSTM(nn.Module):
    """A bidirectional LSTM over texts of any length; padding has no influence and stays zero.

    It is a layer of the biLM without projection and clips. Products of training are in bfloat16 where the processor or
    GPU has instructions for it, those of predictions in float32.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.lstm = ProjectedLSTM(input_dim, hidden_dim, hidden_dim, cell_clip=0.0, projection_clip=0.0)
        self.lstm.initialise(torch.Generator("cpu").manual_seed(int(torch.randint(2**62, (), device="cpu"))))
        self.dimension = 2 * hidden_dim

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs of both directions, float32, shape (B, T, 2 * hidden_dim)."""
        B, T, _ = inputs.shape
        steps = torch.arange(T, device=mask.device)[:, None]
        lengths = mask.sum(dim=1)
        # The place of each step of the reversed texts; padding stays where it is.
        places = torch.where(steps < lengths, lengths - 1 - steps, steps)
        texts = torch.arange(B, device=mask.device)
        forwards = inputs.transpose(0, 1)
        precision = fastest_training_precision(inputs.device) if self.training else FLOAT32
        both = torch.stack([forwards, forwards[places, texts]])
        outputs, _ = self.lstm(both, self.lstm.zero_state(B), precision=precision)
        joined = torch.cat([outputs[0], outputs[1][places, texts]], dim=2).transpose(0, 1)
        return joined * mask[:, :, None]


class MergedBiLSTM(nn.Module):
    """Two BiLSTMs with a residual connection: the second reads the input of the first plus its output.

    The outputs of both directions of the first are merged into one vector, so that both directions of the second read
    both. A linear map brings the inputs to the length of the outputs.
    """

    def __init__(self, input_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.dimension = 2 * hidden_dim
        self.project = nn.Linear(input_dim, self.dimension)
        self.first, self.second = BiLSTM(self.dimension, hidden_dim), BiLSTM(self.dimension, hidden_dim)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs of the second BiLSTM, float32, shape (B, T, 2 * hidden_dim), zeros where padded."""
        projected = self.project(inputs)
        merged = projected + self.first(projected, mask)
        outputs: Tensor = self.second(self.dropout(merged), mask)
        return outputs


def build_encoder(input_dim: int, settings: HeadSettings) -> BiLSTM | MergedBiLSTM:
    """Return the network that reads the inputs, as the settings choose it."""
    if settings.encoder == "merged":
        return MergedBiLSTM(input_dim, settings.hidden_dim, settings.dropout)
    return BiLSTM(input_dim, settings.hidden_dim)


def pool_mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over the units of each text, zeros for a text without units, shape (B, dimension)."""
    return (vectors * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def pool_max(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over the units of each text, zeros for a text without units, shape (B, dimension)."""
    lowest = vectors.masked_fill(~mask[:, :, None], -torch.inf).amax(dim=1)
    return lowest.masked_fill(~mask.any(dim=1, keepdim=True), 0.0)
