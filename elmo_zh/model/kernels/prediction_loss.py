"""The cost of predictions and its gradient, worked out together, some predictions at a time.

With scores s and p = exp(s) / sum exp(s), a prediction costs -log p(target), and the gradient of its scores is p less 1
at the target. Both are at hand as soon as the scores are, so nothing the size of predictions x words is ever kept.
Products run in one dtype (float32 or bfloat16), sums in that of the weights.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.buffers import BufferPool
from elmo_zh.model.kernels.products import can_pack, multiply, multiply_once, pack
from elmo_zh.model.kernels.scripted import scripted
from elmo_zh.model.kernels.side_by_side import side_by_side

# Scores that one core works on at a time, few enough to stay in its cache; on a GPU, in its memory.
_PIECE_SCORES = {"cpu": 2**18, "cuda": 2**26}
# Predictions that it works on at least: a product of fewer loses more than the cache saves.
PIECE_ROWS = 64
_BUFFERS = BufferPool()


class _Columns:
    """The words that predictions are scored against.

    Attributes:
        bias: Shape (S,).
        dtype: Of products.
        shape: (S, P).
    """

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> None:
        self.bias, self.dtype, self.shape = bias, dtype, weight.shape
        self.is_packed, weight = can_pack(bias, dtype), weight.to(dtype)
        self.to_scores, self.to_outputs = (pack(matrix, self.is_packed) for matrix in (weight.T, weight))


@dataclass(frozen=True)
class _Targets:
    """What predictions should have said.

    Attributes:
        columns: In full softmax each target's column, int64, shape (N,); else empty.
        scores: In sampled softmax each target's own score, shape (N,); else empty.
        hit_rows: Predictions whose target was drawn as a negative too, int64, shape (H,).
        hit_columns: That negative's column, int64, shape (H,).
    """

    columns: Tensor
    scores: Tensor
    hit_rows: Tensor
    hit_columns: Tensor


@dataclass(frozen=True)
class _Gradients:
    """Gradients of outputs, columns and targets' own scores, and the cost of each prediction.

    Attributes:
        hidden: Shape (N, P).
        weight: Shape (S, P).
        bias: Shape (S,).
        target: In sampled softmax, shape (N,); else empty.
        cost: Shape (N,).
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor
    target: Tensor
    cost: Tensor


def _differentiate(hidden: Tensor, columns: _Columns, targets: _Targets, block_scores: int) -> _Gradients:
    """Return cost and gradients for outputs of shape (N, P); on a processor each half of its cores does half of them.

    What the targets' own weights have in it is left to the caller.
    """
    num_rows, like = len(hidden), columns.bias
    found = _Gradients(
        torch.empty_like(hidden),
        like.new_zeros(columns.shape),
        torch.zeros_like(like),
        torch.empty_like(targets.scores),
        like.new_empty(num_rows),
    )
    in_products = hidden.to(columns.dtype)
    is_cpu = like.device.type == "cpu"
    middle = (num_rows + 1) // 2 if is_cpu else num_rows
    block = max(1, block_scores // len(like) // (1 + is_cpu))

    def do(half: int) -> tuple[Tensor, Tensor]:
        d_weight, d_bias = like.new_zeros(columns.shape), torch.zeros_like(like)
        first, last = (0, middle) if half == 0 else (middle, num_rows)
        for start in range(first, last, block):
            rows = slice(start, min(start + block, last))
            _do_block(in_products, rows, columns, targets, found, (d_weight, d_bias))
        return d_weight, d_bias

    for d_weight, d_bias in side_by_side(do) if is_cpu else [do(0)]:
        found.weight.add_(d_weight)
        found.bias.add_(d_bias)
    return found


def _do_block(
    hidden: Tensor,
    block: slice,
    columns: _Columns,
    targets: _Targets,
    found: _Gradients,
    d_columns: tuple[Tensor, Tensor],
) -> None:
    """Fill in what a block of the outputs leads to, and add to the gradients of the columns: one product over it."""
    d_weight, d_bias = d_columns
    num_columns, num_rows = columns.shape[0], block.stop - block.start
    probable = _BUFFERS.take((num_rows, num_columns), columns.dtype, hidden.device)
    weighted = torch.empty_like(hidden[block])
    here = (targets.hit_rows >= block.start) & (targets.hit_rows < block.stop)
    scripted(loop_over_pieces)(
        hidden[block], columns.to_scores, columns.to_outputs, columns.bias, columns.is_packed,
        targets.columns[block], targets.scores[block], targets.hit_rows[here] - block.start, targets.hit_columns[here],
        max(PIECE_ROWS, _PIECE_SCORES[hidden.device.type] // num_columns),
        probable, weighted, found.hidden[block], d_bias, found.target[block], found.cost[block],
    )  # fmt: skip
    d_weight.add_(multiply_once(probable.T, weighted))
    _BUFFERS.give_back(probable)


def loop_over_pieces(
    hidden: Tensor,
    to_scores: Tensor,
    to_outputs: Tensor,
    bias: Tensor,
    is_packed: bool,
    target_columns: Tensor,
    target_scores: Tensor,
    hit_rows: Tensor,
    hit_columns: Tensor,
    piece: int,
    probable: Tensor,
    weighted: Tensor,
    d_hidden: Tensor,
    d_bias: Tensor,
    d_target: Tensor,
    cost: Tensor,
) -> None:
    """Do what depends on every score, a few rows at a time, while they are in the cache; in words of TorchScript.

    Args:
        hidden: Outputs, shape (n, P), in the dtype of products.
        to_scores: The columns' weights, shape (P, S), made ready by `pack`.
        to_outputs: The same the other way, shape (S, P).
        bias: Shape (S,).
        is_packed: As told to `pack`.
        target_columns: As in `_Targets`, of these outputs; so are the next three.
        target_scores: Empty in full softmax.
        hit_rows: Counted from the first of these outputs.
        hit_columns: Beside them.
        piece: How many rows at a time.
        probable: Filled with exp(score - highest), shape (n, S), in the dtype of products.
        weighted: Filled with the outputs divided by their row's total: dividing the narrow side of the product that
            follows saves a pass over the wide one.
        d_hidden: Filled, shape (n, P).
        d_bias: Added to, shape (S,).
        d_target: Filled, shape (n,); empty in full softmax.
        cost: Filled, shape (n,).
    """
    is_sampled = target_scores.size(0) > 0
    for start in range(0, hidden.size(0), piece):
        stop = min(start + piece, hidden.size(0))
        rows = hidden[start:stop]
        scores = multiply(rows, to_scores, bias, is_packed).to(bias.dtype)
        if is_sampled:
            here = (hit_rows >= start).logical_and_(hit_rows < stop)
            scores[hit_rows[here] - start, hit_columns[here]] = -float("inf")
            own = target_scores[start:stop]
            top = torch.maximum(scores.amax(dim=1), own)
            of_own = (own - top).exp_()
            total = scores.sub_(top.unsqueeze(1)).exp_().sum(dim=1).add_(of_own)
            torch.sub(of_own / total, 1, out=d_target[start:stop])
        else:
            own = scores.gather(1, target_columns[start:stop].unsqueeze(1)).squeeze(1)
            top = scores.amax(dim=1)
            total = scores.sub_(top.unsqueeze(1)).exp_().sum(dim=1)
        torch.sub(total.log() + top, own, out=cost[start:stop])
        share = total.reciprocal()
        likely = probable[start:stop].copy_(scores)
        torch.mul(multiply(likely, to_outputs, None, is_packed), share.unsqueeze(1), out=d_hidden[start:stop])
        torch.mul(rows, share.unsqueeze(1), out=weighted[start:stop])
        d_bias.addmv_(scores.t(), share)


class SampledLoss(torch.autograd.Function):
    """Mean sampled-softmax loss, see `Softmax.sampled_loss`; the tables' gradients are sparse."""

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
        block_scores: int,
    ) -> Tensor:
        """Return the mean cost; `offset` is added to all scores of a row, `block_scores` bounds the memory."""
        num_rows = len(targets)
        touched, places = torch.unique(torch.cat([targets, negatives]), return_inverse=True)
        of_target, of_negative = places[:num_rows], places[num_rows:]
        weights, biases = weight.index_select(0, touched), bias[touched] + offset[touched]
        columns = _Columns(weights.index_select(0, of_negative), biases[of_negative], dtype)
        target_weight = weights.index_select(0, of_target)
        target_scores = (hidden * target_weight).sum(dim=1) + biases[of_target]
        hits = _find_hits(of_target, of_negative, len(touched))
        found = _differentiate(hidden, columns, _Targets(of_target[:0], target_scores, *hits), block_scores)
        d_weights, d_biases = torch.zeros_like(weights), torch.zeros_like(biases)
        d_weights.index_add_(0, of_target, hidden * found.target[:, None]).index_add_(0, of_negative, found.weight)
        d_biases.index_add_(0, of_target, found.target).index_add_(0, of_negative, found.bias)
        found.hidden.addcmul_(target_weight, found.target[:, None])
        ctx.save_for_backward(found.hidden, touched, d_weights, d_biases)
        ctx.shapes = weight.shape, bias.shape
        return found.cost.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients found on the way."""
        d_hidden, touched, d_weights, d_biases = ctx.saved_tensors
        share = gradients[0] / len(d_hidden)
        d_weight, d_bias = (
            torch.sparse_coo_tensor(
                touched[None], values * share, shape, is_coalesced=True, check_invariants=False
            )
            for values, shape in zip((d_weights, d_biases), ctx.shapes, strict=True)
        )  # fmt: skip
        return d_hidden * share, d_weight, d_bias, None, None, None, None, None


def _find_hits(of_target: Tensor, of_negative: Tensor, num_touched: int) -> tuple[Tensor, Tensor]:
    """Return the predictions whose target was drawn as a negative too, and that negative's column, for each."""
    column = of_negative.new_full((num_touched,), -1)
    column[of_negative] = torch.arange(len(of_negative), device=of_negative.device)
    drawn = column[of_target]
    rows = (drawn >= 0).nonzero()[:, 0]
    return rows, drawn[rows]


class FullLoss(torch.autograd.Function):
    """Mean cost over the whole vocabulary."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        dtype: torch.dtype,
        block_scores: int,
    ) -> Tensor:
        """Return the mean cost; `block_scores` bounds the memory."""
        columns, none = _Columns(weight, bias, dtype), targets[:0]
        found = _differentiate(hidden, columns, _Targets(targets, hidden.new_empty(0), none, none), block_scores)
        found.hidden.sub_(weight.index_select(0, targets))
        found.weight.index_add_(0, targets, hidden, alpha=-1)
        found.bias.index_add_(0, targets, torch.ones_like(found.cost), alpha=-1)
        ctx.save_for_backward(found.hidden, found.weight, found.bias)
        return found.cost.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients found on the way."""
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        share = gradients[0] / len(d_hidden)
        return d_hidden * share, d_weight * share, d_bias * share, None, None, None
