"""Next-token prediction over the vocabulary: exact, or with sampled negatives for training."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_zh.model.kernels.next_token_loss import FullLoss, SampledLoss
from elmo_zh.model.precision import FLOAT32, Precision

# Most probabilities that training holds at a time (64 MB of float32), however large the vocabulary is.
MAX_TRAINING_SCORES = 16_000_000


@dataclass(frozen=True)
class Negatives:
    """The negative samples for one training step."""

    ids: Tensor  # Distinct vocabulary rows, int64, shape (S,)
    log_expected: Tensor  # Log of each vocabulary row's expected count in a draw, float32, shape (V,)

    def to(self, device: torch.device) -> "Negatives":
        """Return these samples on another device."""
        return Negatives(self.ids.to(device), self.log_expected.to(device))


class LogUniformSampler:
    """Draws distinct rows k with probability proportional to log((k + 2) / (k + 1)); frequent rows must come first.

    Works like TensorFlow's log_uniform_candidate_sampler with unique=True; a row's expected count is 1 - (1 - p)^draws.
    """

    def __init__(self, num_tokens: int, num_negatives: int) -> None:
        self.num_tokens = num_tokens
        self.num_negatives = min(num_negatives, num_tokens - 1)
        rows = np.arange(num_tokens, dtype=np.float64)
        self._probabilities = np.log1p(1 / (rows + 1)) / math.log(num_tokens + 1)

    def draw(self, generator: np.random.Generator) -> Negatives:
        """Draw `num_negatives` distinct rows; return them with the log of every row's expected count."""
        drawn = np.zeros(0, np.int64)
        first = np.zeros(0, np.int64)
        while len(first) < self.num_negatives:
            uniform = generator.random(2 * self.num_negatives)
            more = np.exp(uniform * math.log(self.num_tokens + 1)).astype(np.int64) - 1
            drawn = np.concatenate([drawn, np.minimum(more, self.num_tokens - 1)])
            first = np.sort(np.unique(drawn, return_index=True)[1])
        first = first[: self.num_negatives]
        num_draws = int(first[-1]) + 1
        return Negatives(torch.from_numpy(drawn[first]), self.log_expected(num_draws))

    def log_expected(self, num_draws: int) -> Tensor:
        """Return the log of each row's expected count in `num_draws` draws, float32, shape (V,)."""
        expected: NDArray[np.float64] = -np.expm1(num_draws * np.log1p(-self._probabilities))
        return torch.from_numpy(np.log(expected).astype(np.float32))


class Softmax(nn.Module):
    """Scores the vocabulary's rows with weights shared by both directions; if tied, the weights are the token table."""

    def __init__(self, num_tokens: int, dimension: int, tied_to: nn.Parameter | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_tokens, dimension)) if tied_to is None else tied_to
        self.bias = nn.Parameter(torch.zeros(num_tokens))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw normal weights with standard deviation 1/sqrt(P), as in the published recipe."""
        self.weight.normal_(0.0, self.weight.shape[1] ** -0.5, generator=generator)
        self.bias.zero_()

    def sampled_loss(
        self, hidden: Tensor, targets: Tensor, negatives: Negatives, precision: Precision = FLOAT32
    ) -> Tensor:
        """Return the mean sampled-softmax loss in nats (Jean et al. 2015) for outputs (N, P) and targets (N,).

        As in TensorFlow's sampled_softmax_loss, the log of the expected count is subtracted from each logit, and a
        negative that is the target itself (an accidental hit) does not count.
        """
        dtype = precision.product_dtype(self.weight)
        loss: Tensor = SampledLoss.apply(  # type: ignore[no-untyped-call]
            hidden, self.weight, self.bias, targets, negatives.ids, -negatives.log_expected, dtype, MAX_TRAINING_SCORES
        )
        return loss

    def full_loss(self, hidden: Tensor, targets: Tensor, precision: Precision = FLOAT32) -> Tensor:
        """Return the mean exact loss in nats, for outputs of shape (N, P) and targets of shape (N,)."""
        dtype = precision.product_dtype(self.weight)
        loss: Tensor = FullLoss.apply(  # type: ignore[no-untyped-call]
            hidden, self.weight, self.bias, targets, dtype, MAX_TRAINING_SCORES
        )
        return loss
