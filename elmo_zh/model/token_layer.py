"""The token layer, which maps tokens to vectors that do not depend on the sentence: a table, or a character CNN.

The CNN has convolutions over a word's spelling, highway layers, and usually a projection, which in models of
ELMoForManyLangs also reads the word's own embedding. It follows Peters et al. (2018) and Kim et al. (2015) as
implemented in bilm-tf. Matrices are oriented as in the published file: y = x W + b. Shape letters in addition to
`model.bilm`: W distinct words, c width of a character's embedding, N filters of all widths.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from elmo_zh.model.kernels.execution import compute_in_halves
from elmo_zh.model.kernels.products import affine, multiply_once
from elmo_zh.model.precision import FLOAT32, Precision
from elmo_zh.reader.bilm import CharacterShape
from elmo_zh.vocabulary.lexicon import Lexicon

# Words computed together. Small chunks bound the memory, and need few slots if their words are short.
_CHUNK_WORDS = 512


@dataclass(frozen=True)
class TokenInputs:
    """The tokens that a token layer maps to vectors."""

    ids: Tensor  # Rows of the token table (token mode) or of `spellings` (character mode), int64, any shape (...)
    spellings: Tensor | None = None  # Character ids of the distinct words, int64, shape (W, C); None in token mode
    # Vocabulary rows of those words, int64, shape (W,), for a character CNN with word embeddings.
    words: Tensor | None = None

    def to(self, device: torch.device) -> "TokenInputs":
        """Return these inputs on another device."""
        others = (None if tensor is None else tensor.to(device) for tensor in (self.spellings, self.words))
        return TokenInputs(self.ids.to(device), *others)


def build_inputs(lexicon: Lexicon, ids: Tensor) -> TokenInputs:
    """Return the token layer's inputs for ids of any shape; in character mode, each distinct word is spelled once."""
    if lexicon.num_slots is None:
        return TokenInputs(ids)
    distinct, places = torch.unique(ids, return_inverse=True)
    spellings = torch.from_numpy(lexicon.character_ids(distinct.tolist()))
    return TokenInputs(places, spellings, torch.from_numpy(lexicon.targets(distinct.numpy())))


def pad_sentences(sentences: Sequence[NDArray[np.int64]]) -> tuple[Tensor, Tensor]:
    """Pad sentences that have <S> and </S>; return their ids (int64) and a mask (bool), both of shape (B, T)."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = pad_sequence([torch.from_numpy(sentence) for sentence in sentences], batch_first=True)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


class TokenTable(nn.Module):
    """A lookup table with one vector per vocabulary row: `weight`, shape (V, P), float32."""

    def __init__(self, num_tokens: int, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_tokens, dimension))
        # Training expects a gradient that holds only the rows of the batch.
        self.has_sparse_gradient = True

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw normal weights that give rows a length of about 1."""
        self.weight.normal_(0.0, self.weight.shape[1] ** -0.5, generator=generator)

    def forward(self, inputs: TokenInputs) -> Tensor:
        """Look up the row of each id, float32, shape (..., P)."""
        return functional.embedding(inputs.ids, self.weight, sparse=self.has_sparse_gradient)


@torch.no_grad()
def fill_rows(table: Tensor, rows: Tensor, vectors: Tensor, generator: torch.Generator) -> None:
    """Copy n > 0 vectors, shape (n, P), into rows of a table; draw the others with each column's mean and deviation."""
    spread = vectors.std(dim=0, unbiased=False)
    table.normal_(0.0, 1.0, generator=generator).mul_(spread).add_(vectors.mean(dim=0))
    table[rows] = vectors


class Highway(nn.Module):
    """One highway layer: y = g relu(x W_t + b_t) + (1 - g) x with g = sigmoid(x W_c + b_c), in published notation."""

    def __init__(self, num_filters: int) -> None:
        super().__init__()
        self.carry_weight = nn.Parameter(torch.empty(num_filters, num_filters))
        self.carry_bias = nn.Parameter(torch.empty(num_filters))
        self.transform_weight = nn.Parameter(torch.empty(num_filters, num_filters))
        self.transform_bias = nn.Parameter(torch.empty(num_filters))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw weights with standard deviation 1/sqrt(N), as in bilm-tf; a bias of -2 lets most of x pass at first."""
        for weight in (self.carry_weight, self.transform_weight):
            weight.normal_(0.0, len(weight) ** -0.5, generator=generator)
        self.carry_bias.fill_(-2.0)
        self.transform_bias.zero_()

    def forward(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Return y for x, both of shape (W, N); matrix products run in `dtype`."""
        gate = torch.sigmoid(affine(x, self.carry_weight, self.carry_bias, dtype))
        transformed = functional.relu(affine(x, self.transform_weight, self.transform_bias, dtype))
        return torch.lerp(x, transformed, gate)


class CharacterCNN(nn.Module):
    """Computes token vectors from spellings, once per distinct word."""

    def __init__(self, shape: CharacterShape, output_dim: int, num_tokens: int) -> None:
        super().__init__()
        self.shape, self.output_dim = shape, output_dim
        self.embedding = nn.Parameter(torch.empty(shape.num_characters, shape.embedding_dim))
        self.kernels = nn.ParameterList(
            nn.Parameter(torch.empty(width, shape.embedding_dim, count)) for width, count in shape.filters
        )
        self.kernel_biases = nn.ParameterList(nn.Parameter(torch.empty(count)) for _, count in shape.filters)
        self.highways = nn.ModuleList(Highway(shape.num_filters) for _ in range(shape.num_highways))
        self.word_embedding: nn.Parameter | None = None
        if shape.word_dim:
            self.word_embedding = nn.Parameter(torch.empty(num_tokens, shape.word_dim))
        self.projection_weight: nn.Parameter | None = None
        self.projection_bias: nn.Parameter | None = None
        if shape.has_projection(output_dim):
            self.projection_weight = nn.Parameter(torch.empty(shape.word_dim + shape.num_filters, output_dim))
            self.projection_bias = nn.Parameter(torch.empty(output_dim))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights as in bilm-tf, and word embeddings, which bilm-tf lacks, with standard deviation 1."""
        self.embedding.uniform_(-1.0, 1.0, generator=generator)
        for kernel, bias in zip(self.kernels, self.kernel_biases, strict=True):
            if self.shape.activation == "relu":
                kernel.uniform_(-0.05, 0.05, generator=generator)
            else:
                kernel.normal_(0.0, (kernel.shape[0] * kernel.shape[1]) ** -0.5, generator=generator)
            bias.zero_()
        for highway in self._highways():
            highway.initialise(generator)
        if self.word_embedding is not None:
            self.word_embedding.normal_(generator=generator)
        if self.projection_weight is not None and self.projection_bias is not None:
            self.projection_weight.normal_(0.0, len(self.projection_weight) ** -0.5, generator=generator)
            self.projection_bias.zero_()

    def _highways(self) -> list[Highway]:
        return [layer for layer in self.highways if isinstance(layer, Highway)]

    def forward(self, inputs: TokenInputs, precision: Precision = FLOAT32) -> Tensor:
        """Return the vector of each token, float32, shape (..., P), encoding each spelling only once."""
        assert inputs.spellings is not None, "character mode needs spellings"
        return functional.embedding(inputs.ids, self.encode(inputs.spellings, inputs.words, precision))

    def encode(self, character_ids: Tensor, words: Tensor | None = None, precision: Precision = FLOAT32) -> Tensor:
        """Return one vector per word, float32, shape (W, P), for spellings of shape (W, C)."""
        dtype = precision.product_dtype(self.embedding)

        def encode_rows(rows: slice) -> Tensor:
            responses = self._respond(character_ids[rows], dtype)
            return self._combine(responses, None if words is None else words[rows], dtype)

        if torch.compiler.is_compiling() or self.embedding.device.type != "cpu":
            return encode_rows(slice(None))
        return compute_in_halves(encode_rows, len(character_ids), list(self.parameters()))

    def _respond(self, character_ids: Tensor, dtype: torch.dtype) -> Tensor:
        """Return each filter's largest response to each spelling, shape (W, N)."""
        if torch.compiler.is_compiling() or not len(character_ids):
            return self._respond_to_chunk(character_ids, dtype)
        lengths = (character_ids != self.shape.num_characters - 1).sum(dim=1)
        order = lengths.argsort(stable=True)
        longest_window = max(width for width, _ in self.shape.filters)
        responses = []
        for chunk in torch.split(order, _CHUNK_WORDS):
            # Windows that contain only padding all respond alike, so one of them is enough.
            needed = min(self.shape.num_slots, int(lengths[chunk[-1]]) + longest_window)
            responses.append(self._respond_to_chunk(character_ids[chunk, :needed], dtype))
        return torch.cat(responses)[order.argsort()]

    def _respond_to_chunk(self, character_ids: Tensor, dtype: torch.dtype) -> Tensor:
        with torch.autocast(self.embedding.device.type, enabled=False):
            characters, largest = functional.embedding(character_ids, self.embedding), []
            for kernel, bias in zip(self.kernels, self.kernel_biases, strict=True):
                windows = characters.unfold(1, len(kernel), 1).transpose(2, 3).flatten(2)  # (W, windows, width * c)
                responses = multiply_once(windows.to(dtype), kernel.flatten(0, 1).to(dtype))
                largest.append(responses.max(dim=1).values.to(bias.dtype) + bias)
            return torch.cat(largest, dim=1)

    def _combine(self, responses: Tensor, words: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Return token vectors, shape (W, P), computed from the filters' responses, shape (W, N)."""
        with torch.autocast(self.embedding.device.type, enabled=False):
            activate = functional.relu if self.shape.activation == "relu" else torch.tanh
            x = activate(responses)
            for highway in self._highways():
                x = highway(x, dtype)
            if self.word_embedding is not None:
                assert words is not None, "this model needs the words beside their spellings"
                x = torch.cat([functional.embedding(words, self.word_embedding), x], dim=1)
            if self.projection_weight is None or self.projection_bias is None:
                return x
            return affine(x, self.projection_weight, self.projection_bias, dtype)
