"""The input of all networks: [x; ELMo] for each unit, and ELMo again at the output.

Shape letters: B texts, T units, C characters of a unit, L layers and P projection of the biLM.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmo_zh.model.bilm import drop
from elmo_zh.model.scalar_mix import ScalarMix
from elmo_zh.tasks.networks.settings import HeadSettings, Sizes
from elmo_zh.tasks.units import PLACES

PADDING, UNKNOWN_CHARACTER, FIRST_CHARACTER = range(3)


@dataclass(frozen=True, eq=False)
class Batch:
    """A padded batch of texts; tensors of unused inputs are empty.

    Attributes:
        mask: True where there is a unit, shape (B, T); T is 1 at least.
        elmo: Layers of each unit's token, float32, shape (L + 1, B, T, 2P).
        word2vec: Its word2vec vector, float32, shape (B, T, P).
        characters: Numbers of the unit's characters, 0 where padded, int64, shape (B, T, C).
        places: Place of the unit in its token, int64, shape (B, T).
    """

    mask: Tensor
    elmo: Tensor
    word2vec: Tensor
    characters: Tensor
    places: Tensor


class Dropout(nn.Module):
    """Dropout with masks that are cheap to draw (`model.bilm.drop`)."""

    def __init__(self, fraction: float) -> None:
        super().__init__()
        self.fraction = fraction

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, in training with a fraction of them set to zero."""
        return drop(values, self.fraction) if self.training else values


class CharacterEmbedding(nn.Module):
    """The mean of the learned vectors of a unit's characters, and a vector of the unit's place in its word."""

    def __init__(self, num_characters: int, dimension: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(num_characters, dimension, padding_idx=PADDING)
        self.places = nn.Embedding(len(PLACES), dimension // 5)
        self.dimension = dimension + dimension // 5

    def forward(self, batch: Batch) -> Tensor:
        """Return float32, shape (B, T, dimension)."""
        num_characters = (batch.characters != PADDING).sum(dim=2, keepdim=True).clamp(min=1)
        mean = self.characters(batch.characters).sum(dim=2) / num_characters
        return torch.cat([mean, self.places(batch.places)], dim=2)


class InputLayer(nn.Module):
    """Concatenates the inputs of each unit: word2vec, characters and the mix of ELMo's layers."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.mix = ScalarMix(sizes.num_layers) if _has_elmo(settings, "input") else None
        self.embedding = (
            CharacterEmbedding(sizes.num_characters, settings.character_dim)
            if "characters" in settings.inputs
            else None
        )
        self.has_word2vec = "word2vec" in settings.inputs
        self.dimension = (
            (sizes.elmo_dim if self.mix else 0)
            + (self.embedding.dimension if self.embedding else 0)
            + (sizes.word2vec_dim if self.has_word2vec else 0)
        )
        self.dropout = Dropout(settings.dropout)

    def forward(self, batch: Batch) -> Tensor:
        """Return float32, shape (B, T, dimension)."""
        parts = [batch.word2vec] if self.has_word2vec else []
        if self.embedding is not None:
            parts.append(self.embedding(batch))
        if self.mix is not None:
            parts.append(self.mix(batch.elmo))
        dropped: Tensor = self.dropout(torch.cat(parts, dim=2))
        return dropped


class OutputElmo(nn.Module):
    """Puts ELMo beside the output of a network, [h; ELMo], with a mix of its own; or leaves the output as it is."""

    def __init__(self, settings: HeadSettings, sizes: Sizes) -> None:
        super().__init__()
        self.mix = ScalarMix(sizes.num_layers) if _has_elmo(settings, "output") else None
        self.dimension = sizes.elmo_dim if self.mix else 0
        self.dropout = Dropout(settings.dropout)

    def forward(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Return float32, shape (B, T, length of the hidden vectors plus `dimension`)."""
        if self.mix is None:
            return hidden
        return torch.cat([hidden, self.dropout(self.mix(batch.elmo))], dim=2)


def _has_elmo(settings: HeadSettings, place: str) -> bool:
    return "elmo" in settings.inputs and settings.elmo_at in (place, "both")
