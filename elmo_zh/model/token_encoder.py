"""The token layer: from token ids to vectors that do not depend on the sentence."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class TokenTable(nn.Module):
    """One vector a vocabulary row, looked up; gradients are sparse, for the rows of the batch only.

    Attributes:
        weight: Shape (V, P), float32.
    """

    def __init__(self, num_tokens: int, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_tokens, dimension))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw normal numbers that give rows of length about 1."""
        self.weight.normal_(0.0, self.weight.shape[1] ** -0.5, generator=generator)

    @torch.no_grad()
    def fill_rows(self, rows: Tensor, vectors: Tensor, generator: torch.Generator) -> None:
        """Put ready vectors into rows, and draw all other rows normally with the ready ones' mean and deviation.

        Args:
            rows: Which rows, int64, shape (n,), n > 0.
            vectors: Their vectors, float32, shape (n, P).
            generator: Of the numbers drawn.
        """
        spread = vectors.std(dim=0, unbiased=False)
        self.weight.normal_(0.0, 1.0, generator=generator).mul_(spread).add_(vectors.mean(dim=0))
        self.weight[rows] = vectors

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return vectors, float32, shape (..., P), for ids of any shape (...)."""
        return functional.embedding(token_ids, self.weight, sparse=True)
