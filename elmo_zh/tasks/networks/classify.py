"""Text classification: a BiLSTM pooled by maximum and attention, or a linear model on pooled vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_zh.tasks.networks.encoders import build_encoder, pool_max, pool_mean
from elmo_zh.tasks.networks.inputs import Batch, Dropout, InputLayer, OutputElmo
from elmo_zh.tasks.networks.settings import HeadSettings, Sizes


class AttentionPool(nn.Module):
    """The sum of a text's vectors weighted by learned attention (Yang et al. 2016)."""

    def __init__(self, dimension: int, hidden_dim: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(dimension, hidden_dim), nn.Tanh(), nn.Linear(hidden_dim, 1))

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return float32, shape (B, dimension), zeros for a text without units."""
        scores = self.score(vectors)[:, :, 0].masked_fill(~mask, -1e9)
        weights = scores.softmax(dim=1) * mask
        pooled: Tensor = (weights[:, :, None] * vectors).sum(dim=1)
        return pooled


class BiLSTMClassifier(nn.Module):
    """[x; ELMo] -> BiLSTM -> [h; ELMo] -> maximum and attention -> one hidden layer -> classes, or a number."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.encoder = build_encoder(self.inputs.dimension, settings)
        self.output_elmo = OutputElmo(settings, sizes)
        dimension = self.encoder.dimension + self.output_elmo.dimension
        self.attention = AttentionPool(dimension, settings.hidden_dim)
        self.output = nn.Sequential(
            Dropout(settings.dropout),
            nn.Linear(2 * dimension, settings.hidden_dim),
            nn.ReLU(),
            Dropout(settings.dropout),
            nn.Linear(settings.hidden_dim, sizes.num_outputs),
        )

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, float32, shape (B, num_outputs)."""
        [batch] = texts
        hidden = self.output_elmo(self.encoder(self.inputs(batch), batch.mask), batch)
        pooled = torch.cat([pool_max(hidden, batch.mask), self.attention(hidden, batch.mask)], dim=1)
        scores: Tensor = self.output(pooled)
        return scores


class LinearClassifier(nn.Module):
    """[x; ELMo] -> mean over the units -> classes, or a number."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.output = nn.Linear(self.inputs.dimension, sizes.num_outputs)

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, float32, shape (B, num_outputs)."""
        [batch] = texts
        scores: Tensor = self.output(pool_mean(self.inputs(batch), batch.mask))
        return scores
