"""The bidirectional language model (biLM) of Peters et al. (2018), "Deep contextualized word representations".

Shape letters, here and everywhere in the model: B sentences or streams, T tokens, P projection, D cell, L layers,
V vocabulary, S sampled negatives. A first axis of 2 is the direction: 0 the forward LM, 1 the backward LM.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.model.projected_lstm import LSTMState, ProjectedLSTM
from elmo_zh.model.token_encoder import TokenTable


@dataclass(frozen=True, kw_only=True)
class BiLMShape:
    """What decides the biLM's parameters and function; 0 as a clip means none."""

    num_tokens: int
    cell_dim: int
    projection_dim: int
    num_layers: int
    cell_clip: float
    projection_clip: float
    skip_connections: bool

    def num_parameters(self) -> int:
        """Return how many numbers the biLM has, the softmax not included."""
        P, D = self.projection_dim, self.cell_dim
        layer = 2 * P * 4 * D + 4 * D + (D * P if P < D else 0)
        return self.num_tokens * P + 2 * self.num_layers * layer


State = list[LSTMState]


class BiLM(nn.Module):
    """Two stacks of LSTM layers over one token table, one reading forward, one reading backward."""

    def __init__(self, shape: BiLMShape) -> None:
        super().__init__()
        self.shape = shape
        self.product_dtype: torch.dtype | None = None
        self.token_table = TokenTable(shape.num_tokens, shape.projection_dim)
        self.layers = nn.ModuleList(
            ProjectedLSTM(
                shape.projection_dim, shape.cell_dim, shape.projection_dim, shape.cell_clip, shape.projection_clip
            )
            for _ in range(shape.num_layers)
        )

    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights."""
        self.token_table.initialise(generator)
        for layer in self._lstms():
            layer.initialise(generator)

    def set_product_dtype(self, dtype: torch.dtype | None) -> None:
        """Choose the precision of the LSTM's matrix products; None is that of the weights."""
        self.product_dtype = dtype
        for layer in self._lstms():
            layer.product_dtype = dtype

    def zero_state(self, num_streams: int) -> State:
        """Return the state that every sentence starts from, one entry a layer."""
        return [layer.zero_state(num_streams) for layer in self._lstms()]

    def _lstms(self) -> list[ProjectedLSTM]:
        return [layer for layer in self.layers if isinstance(layer, ProjectedLSTM)]

    def forward(
        self, token_ids: Tensor, state: State, keep: Tensor | None = None, dropout: float = 0.0
    ) -> tuple[list[Tensor], State]:
        """Run both LMs over streams of tokens.

        A skip connection adds to the output of each layer but the first its input, as dropout left it; the state
        carried on stays without it. Dropout falls on each layer's input and on the top output.

        Args:
            token_ids: What each LM reads in its order of reading, int64, shape (2, T, B).
            state: Carried in, one entry a layer.
            keep: 0 where a sentence starts from zero state, else 1; float32, shape (T, B, 1). None carries on.
            dropout: Share to drop.

        Returns:
            The token layer and then each LSTM layer's outputs, each (2, T, B, P), and the state after the last step.
        """
        hidden = self.token_table(token_ids)
        activations, new_state = [hidden], []
        for index, (layer, carried) in enumerate(zip(self._lstms(), state, strict=True)):
            hidden = functional.dropout(hidden, dropout)
            output, after = layer(hidden, carried, keep)
            hidden = output + hidden if index > 0 and self.shape.skip_connections else output
            activations.append(hidden)
            new_state.append(after)
        activations[-1] = functional.dropout(hidden, dropout)
        return activations, new_state

    @torch.no_grad()
    def layer_activations(self, token_ids: Tensor, mask: Tensor) -> Tensor:
        """Return every layer's output for a padded batch of whole sentences.

        Each sentence starts from zero state, so its vectors do not depend on the batch.

        Args:
            token_ids: Ids with <S> and </S> in place, any id where padded, int64, shape (B, T).
            mask: True where there is a token, shape (B, T); a sentence's tokens come first.

        Returns:
            Shape (L + 1, B, T, 2P), float32. The token layer comes first, written twice so that all layers have
            one width; then the LSTM layers upward, forward LM first in the last axis. Padded positions are zero.
        """
        order = reversal(mask)
        read = torch.stack([token_ids, token_ids.gather(1, order)]).transpose(1, 2)
        activations, _ = self(read, self.zero_state(len(token_ids)))
        layers = torch.stack(activations)  # (L + 1, 2, T, B, P)
        forward_lm = layers[:, 0].transpose(1, 2)
        backward_lm = layers[:, 1].transpose(1, 2)
        index = order[None, :, :, None].expand_as(backward_lm)
        both = torch.cat([forward_lm, backward_lm.gather(2, index)], dim=3)
        return both * mask[None, :, :, None]


def reversal(mask: Tensor) -> Tensor:
    """Return the positions that reverse each sentence by its own length and leave padding where it is.

    Args:
        mask: True where there is a token, shape (B, T); a sentence's tokens come first.

    Returns:
        int64, shape (B, T); applying it twice changes nothing.
    """
    lengths = mask.sum(dim=1, keepdim=True)
    positions = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return torch.where(mask, lengths - 1 - positions, positions)
