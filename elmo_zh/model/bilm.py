"""The bidirectional language model (biLM) of Peters et al. (2018), "Deep contextualized word representations".

Shape letters, here and everywhere in the model: B sentences or streams, T tokens, P projection, D cell, L layers,
V vocabulary, S sampled negatives, C character slots. A first axis of 2 is the direction: 0 the forward LM, 1 the
backward LM.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.model.kernels.recurrence import LSTMState
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.model.projected_lstm import ProjectedLSTM
from elmo_zh.model.token_layer import CharacterCNN, TokenInputs, TokenTable
from elmo_zh.reader.bilm import BiLMShape

State = list[LSTMState]


class BiLM(nn.Module):
    """Two stacks of LSTM layers over one token layer, one reading forward and one reading backward."""

    warm_output: Tensor | None  # Outputs that sentences start from instead of zeros, shape (L, 2, 1, P), or None
    warm_cell: Tensor | None  # Cell states that sentences start from instead of zeros, shape (L, 2, 1, D), or None

    def __init__(self, shape: BiLMShape) -> None:
        super().__init__()
        self.shape = shape
        if shape.characters is None:
            self.token_table = TokenTable(shape.num_tokens, shape.projection_dim)
        else:
            self.character_cnn = CharacterCNN(shape.characters, shape.projection_dim, shape.num_tokens)
        self.layers = nn.ModuleList(
            ProjectedLSTM(
                shape.projection_dim, shape.cell_dim, shape.projection_dim, shape.cell_clip, shape.projection_clip
            )
            for _ in range(shape.num_layers)
        )
        self.register_buffer("warm_output", None)
        self.register_buffer("warm_cell", None)

    @property
    def token_layer(self) -> TokenTable | CharacterCNN:
        """The module that maps tokens to vectors."""
        return self.token_table if self.shape.characters is None else self.character_cnn

    def initialise(self, generator: torch.Generator) -> None:
        """Set all weights to their initial values, most of them random, from the token layer up."""
        self.token_layer.initialise(generator)
        for layer in self.lstm_layers():
            layer.initialise(generator)

    def zero_state(self, num_streams: int) -> State:
        """Return an all-zero state, one entry per layer."""
        return [layer.zero_state(num_streams) for layer in self.lstm_layers()]

    def start_state(self, num_streams: int) -> State:
        """Return the state that sentences start from at inference: the warm state if there is one, otherwise zeros."""
        if self.warm_output is None or self.warm_cell is None:
            return self.zero_state(num_streams)
        return [
            LSTMState(output.expand(-1, num_streams, -1), cell.expand(-1, num_streams, -1))
            for output, cell in zip(self.warm_output, self.warm_cell, strict=True)
        ]

    def set_warm_state(self, output: Tensor, cell: Tensor) -> None:
        """Set the warm state: this output, shape (L, 2, P), and this cell state, shape (L, 2, D)."""
        like = self.lstm_layers()[0].bias
        self.warm_output, self.warm_cell = output[:, :, None].to(like), cell[:, :, None].to(like)

    def lstm_layers(self) -> list[ProjectedLSTM]:
        """Return the LSTM layers from the bottom up."""
        return [layer for layer in self.layers if isinstance(layer, ProjectedLSTM)]

    def forward(
        self,
        inputs: TokenInputs,
        state: State,
        keep: Tensor | None = None,
        dropout: float = 0.0,
        lengths: Tensor | None = None,
        precision: Precision = FLOAT32,
    ) -> tuple[list[Tensor], State]:
        """Run both LMs over streams of tokens, given ids of shape (2, T, B) in each LM's reading order.

        `keep` is 0 where a sentence starts from zero state, otherwise 1, float32, shape (T, B, 1); None keeps all.
        `lengths` has the number of real steps of each stream, int64, shape (B,); None counts all. Return the outputs of
        the token layer and each LSTM layer, each (2, T, B, P), and the state after the last real step.
        """
        return self.run_layers(self.encode_tokens(inputs, precision), state, keep, dropout, lengths, precision)

    def encode_tokens(self, inputs: TokenInputs, precision: Precision = FLOAT32) -> Tensor:
        """Return the token layer's vectors, float32, shape (..., P)."""
        vectors: Tensor = (
            self.token_table(inputs) if self.shape.characters is None else self.character_cnn(inputs, precision)
        )
        return vectors

    def run_layers(
        self,
        token_vectors: Tensor,
        state: State,
        keep: Tensor | None = None,
        dropout: float = 0.0,
        lengths: Tensor | None = None,
        precision: Precision = FLOAT32,
    ) -> tuple[list[Tensor], State]:
        """Run both LMs as `forward` does, but from token vectors of shape (2, T, B, P).

        With skip connections, each layer but the first adds its input, after dropout, to its output. The carried state
        holds the output before that addition.
        """
        hidden = token_vectors
        activations, new_state = [hidden], []
        for index, (layer, carried) in enumerate(zip(self.lstm_layers(), state, strict=True)):
            hidden = drop(hidden, dropout)
            output, after = layer(hidden, carried, keep, lengths, precision)
            hidden = skip_connection(self.shape, index, hidden, output)
            activations.append(hidden)
            new_state.append(after)
        activations[-1] = drop(hidden, dropout)
        return activations, new_state

    @torch.no_grad()
    def layer_activations(self, inputs: TokenInputs, mask: Tensor) -> Tensor:
        """Return every layer's output for a padded batch of whole sentences, float32, shape (L + 1, B, T, 2P).

        The ids, shape (B, T), include <S> and </S>, and the mask is True where there is a token. The token layer comes
        first, written twice so that all layers have one width; then the LSTM layers from the bottom up, forward LM
        first on the last axis. Padded positions are zero. Other sentences in the batch affect at most the last bits.
        """
        token_vectors, state = self.encode_tokens(inputs), self.start_state(len(mask))
        return self.read_sentences(token_vectors, mask, state)[0]

    def read_sentences(
        self, token_vectors: Tensor, mask: Tensor, state: State, precision: Precision = FLOAT32
    ) -> tuple[Tensor, State]:
        """Return the layers of `layer_activations`, from token vectors (B, T, P), and the state after each sentence."""
        order = reversal(mask)
        reversed_vectors = token_vectors.gather(1, order[:, :, None].expand_as(token_vectors))
        read = torch.stack([token_vectors, reversed_vectors]).transpose(1, 2)
        activations, state = self.run_layers(read, state, lengths=mask.sum(dim=1), precision=precision)
        layers = torch.stack(activations)  # (L + 1, 2, T, B, P)
        forward_lm = layers[:, 0].transpose(1, 2)
        backward_lm = layers[:, 1].transpose(1, 2)
        index = order[None, :, :, None].expand_as(backward_lm)
        both = torch.cat([forward_lm, backward_lm.gather(2, index)], dim=3)
        return both * mask[None, :, :, None], state


def skip_connection(shape: BiLMShape, layer: int, inputs: Tensor, outputs: Tensor) -> Tensor:
    """Return a layer's outputs, plus its inputs if the model has skip connections and the layer is not the first."""
    return outputs + inputs if layer > 0 and shape.skip_connections else outputs


def reversal(mask: Tensor) -> Tensor:
    """Return indexes that reverse each sentence within its own length and leave padding alone, int64, shape (B, T)."""
    lengths = mask.sum(dim=1, keepdim=True)
    positions = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    return torch.where(mask, lengths - 1 - positions, positions)


def drop(values: Tensor, fraction: float) -> Tensor:
    """Return the values with a random fraction set to zero and the rest scaled up to keep the mean.

    On a CPU, where torch draws dropout masks one number at a time, uncompiled code takes 16 bits per value from a
    faster generator, which is seeded from torch's.
    """
    if fraction == 0:
        return values
    if values.device.type != "cpu" or torch.compiler.is_compiling():
        return functional.dropout(values, fraction)
    seed = int(torch.randint(2**62, ()))
    words = np.random.SFC64(seed).random_raw(-(-values.numel() // 4)).view(np.uint16)[: values.numel()]
    threshold = round(fraction * 2**16)
    kept = torch.from_numpy(words >= threshold).view(values.shape)
    return values * kept.to(values.dtype).mul_(2**16 / (2**16 - threshold))
