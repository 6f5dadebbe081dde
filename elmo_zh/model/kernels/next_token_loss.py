"""The next-token loss and its gradient, computed together for one chunk of predictions at a time.

With scores s and p = exp(s) / sum exp(s), a prediction costs -log p(target), and the gradient of its scores is p less 1
at the target. Both are available as soon as the scores are, so nothing of size predictions x words is kept for the
backward pass. Products run in one dtype (float32 or bfloat16), sums in the dtype of the weights.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmo_zh.model.kernels.execution import scripted, side_by_side
from elmo_zh.model.kernels.products import can_pack, multiply, multiply_once, pack

# Most scores in a row chunk: few enough to stay in the cache of one core or, on a GPU, in its memory.
_CHUNK_SCORES = {"cpu": 2**18, "cuda": 2**26}
# Fewest rows in a chunk: with fewer, a product loses more time than the cache saves.
MIN_CHUNK_ROWS = 64


class ScoredWords(NamedTuple):
    """The S words against which predictions are scored: the negatives, or the whole vocabulary."""

    to_scores: Tensor  # The words' weights, shape (P, S), prepared by `pack`
    to_outputs: Tensor  # The transposed weights, shape (S, P), prepared by `pack`
    bias: Tensor  # Shape (S,)
    is_packed: bool  # The value given to `pack`


def _prepare_words(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> ScoredWords:
    """Prepare S words for scoring with products in `dtype`, from weight, shape (S, P), and bias, shape (S,)."""
    is_packed, weight = can_pack(bias, dtype), weight.to(dtype)
    return ScoredWords(pack(weight.T, is_packed), pack(weight, is_packed), bias, is_packed)


class Targets(NamedTuple):
    """The correct words for N predictions."""

    columns: Tensor  # In full softmax each target's column, int64, shape (N,); else empty
    scores: Tensor  # In sampled softmax each target's own score, shape (N,); else empty
    hit_rows: Tensor  # Predictions whose target was drawn as a negative too, int64, shape (H,)
    hit_columns: Tensor  # The column of that negative, int64, shape (H,)

    def of_rows(self, start: int, stop: int) -> "Targets":
        """Return the targets of predictions `start` to `stop`, with `hit_rows` counted from `start`."""
        here = (self.hit_rows >= start) & (self.hit_rows < stop)
        columns, scores = self.columns[start:stop], self.scores[start:stop]
        return Targets(columns, scores, self.hit_rows[here] - start, self.hit_columns[here])


@dataclass(frozen=True)
class _Gradients:
    """Gradients of the outputs, the words and the targets' own scores, and the cost of each prediction."""

    hidden: Tensor  # Shape (N, P)
    weight: Tensor  # Shape (S, P)
    bias: Tensor  # Shape (S,)
    target: Tensor  # In sampled softmax, shape (N,); else empty
    cost: Tensor  # Shape (N,)


class SpanResults(NamedTuple):
    """The results for n consecutive predictions."""

    probable: Tensor  # exp(score - highest), shape (n, S), in the dtype of products
    # The outputs divided by their row's total, shape (n, P), in the dtype of products: dividing the narrow factor of
    # the following product saves a pass over the wide one.
    weighted: Tensor
    d_hidden: Tensor  # Gradient of the outputs, shape (n, P)
    d_bias: Tensor  # Gradient of the words' bias, shape (S,)
    d_target: Tensor  # Gradient of the targets' own scores, shape (n,); empty in full softmax
    cost: Tensor  # Shape (n,)


def _differentiate(
    hidden: Tensor, words: ScoredWords, targets: Targets, dtype: torch.dtype, max_scores: int
) -> _Gradients:
    """Return costs and gradients for outputs of shape (N, P); the caller adds the targets' part of the gradients."""
    num_rows, like = len(hidden), words.bias
    words_shape = len(words.bias), hidden.shape[1]
    found = _Gradients(
        torch.empty_like(hidden),
        like.new_zeros(words_shape),
        torch.zeros_like(like),
        torch.empty_like(targets.scores),
        like.new_empty(num_rows),
    )
    in_products = hidden.to(dtype)
    is_cpu = like.device.type == "cpu"
    middle = (num_rows + 1) // 2 if is_cpu else num_rows
    span = max(1, max_scores // len(like) // (1 + is_cpu))

    def differentiate_half(half: int) -> tuple[Tensor, Tensor]:
        d_weight, d_bias = like.new_zeros(words_shape), torch.zeros_like(like)
        first, last = (0, middle) if half == 0 else (middle, num_rows)
        for start in range(first, last, span):
            rows = slice(start, min(start + span, last))
            d_weight.add_(_differentiate_span(in_products, rows, words, targets, found, d_bias))
        return d_weight, d_bias

    for d_weight, d_bias in side_by_side(differentiate_half) if is_cpu else [differentiate_half(0)]:
        found.weight.add_(d_weight)
        found.bias.add_(d_bias)
    return found


def _differentiate_span(
    hidden: Tensor, span: slice, words: ScoredWords, targets: Targets, found: _Gradients, d_bias: Tensor
) -> Tensor:
    """Fill in costs and gradients of a span of outputs, add to the bias gradient, and return the weight gradient."""
    rows, num_words = hidden[span], len(words.bias)
    probable = hidden.new_empty(len(rows), num_words)
    results = SpanResults(
        probable, torch.empty_like(rows), found.hidden[span], d_bias, found.target[span], found.cost[span]
    )
    chunk_rows = max(MIN_CHUNK_ROWS, _CHUNK_SCORES[hidden.device.type] // num_words)
    score = scripted(score_row_chunks, hidden.device)
    score(rows, words, targets.of_rows(span.start, span.stop), chunk_rows, results)
    return multiply_once(probable.T, results.weighted)


def score_row_chunks(
    hidden: Tensor, words: ScoredWords, targets: Targets, chunk_rows: int, results: SpanResults
) -> None:
    """Fill in `results`, at most `chunk_rows` rows at a time; TorchScript-compatible."""
    is_sampled = targets.scores.size(0) > 0
    for start in range(0, hidden.size(0), chunk_rows):
        stop = min(start + chunk_rows, hidden.size(0))
        rows = hidden[start:stop]
        scores = multiply(rows, words.to_scores, words.bias, words.is_packed).to(words.bias.dtype)
        if is_sampled:
            here = (targets.hit_rows >= start).logical_and_(targets.hit_rows < stop)
            scores[targets.hit_rows[here] - start, targets.hit_columns[here]] = -float("inf")
            own = targets.scores[start:stop]
            top = torch.maximum(scores.amax(dim=1), own)
            of_own = (own - top).exp_()
            total = scores.sub_(top.unsqueeze(1)).exp_().sum(dim=1).add_(of_own)
            torch.sub(of_own / total, 1, out=results.d_target[start:stop])
        else:
            own = scores.gather(1, targets.columns[start:stop].unsqueeze(1)).squeeze(1)
            top = scores.amax(dim=1)
            total = scores.sub_(top.unsqueeze(1)).exp_().sum(dim=1)
        torch.sub(total.log() + top, own, out=results.cost[start:stop])
        inverse = total.reciprocal()
        likely = results.probable[start:stop].copy_(scores)
        to_outputs = multiply(likely, words.to_outputs, None, words.is_packed)
        torch.mul(to_outputs, inverse.unsqueeze(1), out=results.d_hidden[start:stop])
        torch.mul(rows, inverse.unsqueeze(1), out=results.weighted[start:stop])
        results.d_bias.addmv_(scores.t(), inverse)


class SampledLoss(torch.autograd.Function):
    """Mean sampled-softmax loss (see `Softmax.sampled_loss`), with sparse gradients for the tables."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        negatives: Tensor,
        offset: Tensor,
        dtype: torch.dtype,
        max_scores: int,
    ) -> Tensor:
        """Return the mean cost; `offset`, shape (V,), is added to the words' scores; `max_scores` bounds the memory."""
        num_rows = len(targets)
        touched, places = torch.unique(torch.cat([targets, negatives]), return_inverse=True)
        of_target, of_negative = places[:num_rows], places[num_rows:]
        weights, biases = weight.index_select(0, touched), bias[touched] + offset[touched]
        words = _prepare_words(weights.index_select(0, of_negative), biases[of_negative], dtype)
        target_weight = weights.index_select(0, of_target)
        target_scores = (hidden * target_weight).sum(dim=1) + biases[of_target]
        hits = _find_hits(of_target, of_negative, len(touched))
        found = _differentiate(hidden, words, Targets(of_target[:0], target_scores, *hits), dtype, max_scores)
        d_weights, d_biases = torch.zeros_like(weights), torch.zeros_like(biases)
        d_weights.index_add_(0, of_target, hidden * found.target[:, None]).index_add_(0, of_negative, found.weight)
        d_biases.index_add_(0, of_target, found.target).index_add_(0, of_negative, found.bias)
        found.hidden.addcmul_(target_weight, found.target[:, None])
        ctx.save_for_backward(found.hidden, touched, d_weights, d_biases)
        ctx.shapes = weight.shape, bias.shape
        return found.cost.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that the forward pass computed."""
        d_hidden, touched, d_weights, d_biases = ctx.saved_tensors
        scale = gradients[0] / len(d_hidden)
        d_weight, d_bias = (
            torch.sparse_coo_tensor(
                touched[None], values * scale, shape, is_coalesced=True, check_invariants=False
            )
            for values, shape in zip((d_weights, d_biases), ctx.shapes, strict=True)
        )  # fmt: skip
        return d_hidden * scale, d_weight, d_bias, None, None, None, None, None


def _find_hits(of_target: Tensor, of_negative: Tensor, num_touched: int) -> tuple[Tensor, Tensor]:
    """Return the rows whose target was also drawn as a negative, and the columns of those negatives."""
    column = of_negative.new_full((num_touched,), -1)
    column[of_negative] = torch.arange(len(of_negative), device=of_negative.device)
    drawn = column[of_target]
    rows = (drawn >= 0).nonzero()[:, 0]
    return rows, drawn[rows]


class FullLoss(torch.autograd.Function):
    """Mean exact loss over the whole vocabulary (see `Softmax.full_loss`), with dense gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        dtype: torch.dtype,
        max_scores: int,
    ) -> Tensor:
        """Return the mean cost; `max_scores` bounds the memory."""
        words, none = _prepare_words(weight, bias, dtype), targets[:0]
        found = _differentiate(hidden, words, Targets(targets, hidden.new_empty(0), none, none), dtype, max_scores)
        found.hidden.sub_(weight.index_select(0, targets))
        found.weight.index_add_(0, targets, hidden, alpha=-1)
        found.bias.index_add_(0, targets, torch.ones_like(found.cost), alpha=-1)
        ctx.save_for_backward(found.hidden, found.weight, found.bias)
        return found.cost.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients that the forward pass computed."""
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        scale = gradients[0] / len(d_hidden)
        return d_hidden * scale, d_weight * scale, d_bias * scale, None, None, None
