"""The token layer, which maps tokens to vectors that do not depend on the sentence."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class TokenInputs:
    """The tokens that a token layer maps to vectors."""

    ids: Tensor  # Rows of the token table (token mode) or of `spellings` (character mode), int64, any shape (...)
    spellings: Tensor | None = None  # Character ids of the distinct words, int64, shape (W, C); None in token mode
    # Vocabulary rows of those words, int64, shape (W,), for a character CNN with word embeddings.
    words: Tensor | None = None

    def to(self, device: torch.device) -> "TokenInputs":
        """Move these inputs to another device."""
        others = (None if tensor is None else tensor.to(device) for tensor in (self.spellings, self.words))
        return TokenInputs(self.ids.to(device), *others)


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
    """Copy n > 0 vectors, shape (n, P), into rows of a table; draw the others with the same mean and deviation."""
    spread = vectors.std(dim=0, unbiased=False)
    table.normal_(0.0, 1.0, generator=generator).mul_(spread).add_(vectors.mean(dim=0))
    table[rows] = vectors
