"""Pairs of texts: soft alignment, comparison and a second BiLSTM, after ESIM (Chen et al. 2017)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_zh.tasks.networks.encoders import BiLSTM, build_encoder, pool_max, pool_mean
from elmo_zh.tasks.networks.inputs import Batch, Dropout, InputLayer, OutputElmo
from elmo_zh.tasks.networks.settings import HeadSettings, Sizes


class PairClassifier(nn.Module):
    """Both texts through one BiLSTM, each compared with what it attends to in the other, composed and pooled."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        hidden_dim = settings.hidden_dim
        self.inputs = InputLayer(settings, sizes)
        self.encoder = build_encoder(self.inputs.dimension, settings)
        self.output_elmo = OutputElmo(settings, sizes)
        encoded_dim = self.encoder.dimension
        self.compare = nn.Sequential(nn.Linear(4 * encoded_dim, hidden_dim), nn.ReLU(), Dropout(settings.dropout))
        self.compose = BiLSTM(hidden_dim + self.output_elmo.dimension, hidden_dim)
        self.output = nn.Sequential(
            Dropout(settings.dropout),
            nn.Linear(4 * self.compose.dimension, hidden_dim),
            nn.Tanh(),
            Dropout(settings.dropout),
            nn.Linear(hidden_dim, sizes.num_outputs),
        )

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each class, float32, shape (B, num_outputs)."""
        first, second = texts
        a, b = (self.encoder(self.inputs(batch), batch.mask) for batch in texts)
        attended_a, attended_b = align(a, b, first.mask, second.mask)
        pooled = [
            *self._compose(a, attended_a, first),
            *self._compose(b, attended_b, second),
        ]
        scores: Tensor = self.output(torch.cat(pooled, dim=1))
        return scores

    def _compose(self, own: Tensor, attended: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        compared = self.compare(torch.cat([own, attended, own - attended, own * attended], dim=2))
        composed = self.compose(self.output_elmo(compared, batch), batch.mask)
        return pool_mean(composed, batch.mask), pool_max(composed, batch.mask)


def align(a: Tensor, b: Tensor, mask_a: Tensor, mask_b: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each unit of one text the mean of the other's vectors, weighted by a softmax of their products.

    Args:
        a: Vectors of the first texts, shape (B, T, dimension).
        b: Vectors of the second texts, shape (B, U, dimension).
        mask_a: True where there is a unit, shape (B, T).
        mask_b: True where there is a unit, shape (B, U).

    Returns:
        Shapes (B, T, dimension) and (B, U, dimension); zeros where the other text has no units.
    """
    products = a @ b.transpose(1, 2)
    to_b = products.masked_fill(~mask_b[:, None, :], -1e9).softmax(dim=2) * mask_b[:, None, :]
    to_a = products.masked_fill(~mask_a[:, :, None], -1e9).softmax(dim=1) * mask_a[:, :, None]
    return to_b @ b, to_a.transpose(1, 2) @ a
