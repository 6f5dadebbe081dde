"""Next-token prediction over the vocabulary: exact, or with sampled negatives for training."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.model.kernels.next_token_loss import FullLoss, SampledLoss
from elmo_zh.model.kernels.products import can_pack, multiply, pack
from elmo_zh.model.precision import FLOAT32, Precision

# Most probabilities that training holds at a time (64 MB of float32), however large the vocabulary is.
MAX_TRAINING_SCORES = 16_000_000
# Most scores that evaluation holds at a time, and fewest predictions that it scores together: with fewer rows, a
# product over a large vocabulary takes four times as long per row.
MAX_EVALUATION_SCORES, MIN_EVALUATION_ROWS = 2**21, 8


@dataclass(frozen=True)
class Negatives:
    """The negative samples for one training step."""

    ids: Tensor  # Distinct vocabulary rows, int64, shape (S,)
    log_expected: Tensor  # Log of each vocabulary row's expected count in a draw, float32, shape (V,)

    def to(self, device: torch.device) -> "Negatives":
        """Move these samples to another device."""
        return Negatives(self.ids.to(device), self.log_expected.to(device))


class LogUniformSampler:
    """Draws distinct rows k with probability proportional to log((k + 2) / (k + 1)); rows must be sorted by count.

    Works like TensorFlow's log_uniform_candidate_sampler with unique=True; a row's expected count is 1 - (1 - p)^draws.
    """

    def __init__(self, num_tokens: int, num_negatives: int) -> None:
        self.num_tokens = num_tokens
        self.num_negatives = min(num_negatives, num_tokens - 1)
        rows = np.arange(num_tokens, dtype=np.float64)
        self._probabilities = np.log1p(1 / (rows + 1)) / math.log(num_tokens + 1)

    def draw(self, generator: np.random.Generator) -> Negatives:
        """Draw `num_negatives` distinct rows, together with the expected count of every row."""
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

    @property
    def rows_at_a_time(self) -> int:
        """The number of predictions that evaluation scores together, limited so that the scores fit in memory."""
        return max(MIN_EVALUATION_ROWS, MAX_EVALUATION_SCORES // len(self.bias))

    @torch.no_grad()
    def nats(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the exact cost of each target in nats, float32, shape (N,), for outputs of shape (N, P)."""
        return ExactCosts(self).nats(hidden, targets)


class ExactCosts:
    """Computes exact costs with a softmax whose weights are prepared once; they must not change meanwhile."""

    def __init__(self, softmax: Softmax) -> None:
        self._softmax = softmax
        self._is_packed = can_pack(softmax.bias, softmax.weight.dtype)
        self._weight = pack(softmax.weight.detach().T, self._is_packed)

    @torch.no_grad()
    def nats(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the exact cost of each target in nats, float32, shape (N,), for outputs of shape (N, P)."""
        # One tensor for all costs: small ones between the scores would keep the allocator from reusing their memory.
        costs = hidden.new_empty(len(hidden))
        parts = [torch.split(each, self._softmax.rows_at_a_time) for each in (hidden, targets, costs)]
        for rows, goals, cost in zip(*parts, strict=True):
            scores = multiply(rows, self._weight, self._softmax.bias, self._is_packed)
            cost.copy_(functional.cross_entropy(scores, goals, reduction="none"))
        return costs

    @torch.no_grad()
    def scores(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the score of each target before normalisation, float64, shape (N,), for outputs of shape (N, P)."""
        weight, bias = self._softmax.weight[targets].double(), self._softmax.bias[targets].double()
        return (hidden.double() * weight).sum(dim=1) + bias
