"""LSTMs over the units of a text, and pooling of their outputs.

Shape letters: B texts, T units.
"""

import torch
from torch import Tensor, nn

from elmo_zh.model.precision import FLOAT32, PRECISIONS
from elmo_zh.model.precision_choice import choose_precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.tasks.networks.inputs import Dropout
from elmo_zh.tasks.networks.settings import HeadSettings


class BiLSTM(nn.Module):
    """A bidirectional LSTM over texts of any length; padding has no influence and stays zero.

    It is a layer of the biLM without projection and clips.

    Attributes:
        training_precision: Precision of products in training; predictions are in float32.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.lstm = ProjectedLSTM(input_dim, hidden_dim, hidden_dim, cell_clip=0.0, projection_clip=0.0)
        self.lstm.initialise(torch.Generator("cpu").manual_seed(int(torch.randint(2**62, (), device="cpu"))))
        self.dimension, self.training_precision = 2 * hidden_dim, FLOAT32

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs of both directions, float32, shape (B, T, 2 * hidden_dim)."""
        B, T, _ = inputs.shape
        steps = torch.arange(T, device=mask.device)[:, None]
        lengths = mask.sum(dim=1)
        # The place of each step of the reversed texts; padding stays where it is.
        places = torch.where(steps < lengths, lengths - 1 - steps, steps)
        texts = torch.arange(B, device=mask.device)
        forwards = inputs.transpose(0, 1)
        precision = self.training_precision if self.training else FLOAT32
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


def choose_lstm_precision(network: nn.Module, batch_size: int, known: str = "") -> str:
    """Let a network's LSTMs train in the faster precision, or in a known one; return its name, "" without LSTMs."""
    name = known
    for module in network.modules():
        if isinstance(module, BiLSTM):
            width, num_columns = module.lstm.input_weight.shape[1:]
            width += module.lstm.output_dim
            device = module.lstm.bias.device
            name = name or choose_precision(device, batch_size, width, num_columns).precision.name
            module.training_precision = PRECISIONS[name]
    return name


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
