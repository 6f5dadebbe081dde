"""The cost of predictions and its gradient, worked out together, some predictions at a time.

With scores s and p = exp(s) / sum exp(s), a prediction costs -log p(target), and the gradient of its scores is p less 1
at the target. Both are at hand as soon as the scores are, so nothing the size of predictions x words is ever kept.
Products run in one dtype (float32 or bfloat16), sums in that of the weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.buffers import BufferPool
from elmo_zh.model.products import Product, build_product, can_pack
from elmo_zh.model.side_by_side import side_by_side

# Scores that one core works on at a time, few enough to stay in its cache; on a GPU, in its memory.
_PIECE_SCORES = {"cpu": 2**18, "cuda": 2**26}
_BUFFERS = BufferPool()


@dataclass(frozen=True)
class _Columns:
    """The words that predictions are scored against.

    Attributes:
        weight: Shape (S, P), in the dtype of products.
        bias: Shape (S,).
        score: Product with their weights.
        unscore: Product with them the other way.
    """

    weight: Tensor
    bias: Tensor
    score: Product
    unscore: Product

    @classmethod
    def build(cls, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> "_Columns":
        is_packed, weight = can_pack(bias, dtype), weight.to(dtype)
        score, unscore = (build_product(matrix, is_packed=is_packed) for matrix in (weight.T, weight))
        return cls(weight, bias, score, unscore)


@dataclass(frozen=True)
class _Gradients:
    """Gradients of outputs and columns, and the cost of each prediction.

    Attributes:
        hidden: Shape (N, P).
        weight: Shape (S, P).
        bias: Shape (S,).
        cost: Shape (N,).
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor
    cost: Tensor


# Turns the scores of some predictions into exponentials, in place, and returns each one's total and cost.
Exponentiate = Callable[[Tensor, slice], tuple[Tensor, Tensor]]


def _differentiate(hidden: Tensor, columns: _Columns, exponentiate: Exponentiate, block_scores: int) -> _Gradients:
    """Return cost and gradients for outputs of shape (N, P); on a processor each half of its cores does half of them.

    Those of targets that are not among the columns are left to the caller.
    """
    num_rows, like = len(hidden), columns.bias
    cost, d_hidden = like.new_empty(num_rows), torch.empty_like(hidden)
    products_hidden = hidden.to(columns.weight.dtype)
    is_cpu = like.device.type == "cpu"
    middle = (num_rows + 1) // 2 if is_cpu else num_rows
    block = max(1, block_scores // len(like) // (1 + is_cpu))

    def do(half: int) -> tuple[Tensor, Tensor]:
        d_weight, d_bias = like.new_zeros(columns.weight.shape), torch.zeros_like(like)
        first, last = (0, middle) if half == 0 else (middle, num_rows)
        for start in range(first, last, block):
            rows = slice(start, min(start + block, last))
            _do_block(products_hidden, rows, columns, exponentiate, (d_hidden, d_weight, d_bias, cost))
        return d_weight, d_bias

    d_weight, d_bias = do(0) if not is_cpu else map(Tensor.add_, *side_by_side(do))
    return _Gradients(d_hidden, d_weight, d_bias, cost)


def _do_block(
    hidden: Tensor,
    block: slice,
    columns: _Columns,
    exponentiate: Exponentiate,
    gradients: tuple[Tensor, Tensor, Tensor, Tensor],
) -> None:
    """Fill in cost and gradient of a block of the outputs and add to that of the columns.

    What depends on every score is done a few rows at a time, while they are in the cache; the columns' gradient is one
    product over the block. Dividing its narrow side by the total saves a pass over the wide one.
    """
    d_hidden, d_weight, d_bias, cost = gradients
    dtype, num_columns, num_rows = hidden.dtype, len(columns.bias), block.stop - block.start
    probable = _BUFFERS.take((num_rows, num_columns), dtype, hidden.device)
    weighted = torch.empty_like(hidden[block])
    size = max(1, _PIECE_SCORES[hidden.device.type] // num_columns)
    for start in range(block.start, block.stop, size):
        rows = slice(start, min(start + size, block.stop))
        here = slice(rows.start - block.start, rows.stop - block.start)
        scores = columns.score(hidden[rows], bias=columns.bias).to(d_bias.dtype)
        total, cost[rows] = exponentiate(scores, rows)
        share = total.reciprocal()
        probable[here] = scores
        torch.mul(columns.unscore(probable[here]), share[:, None], out=d_hidden[rows])
        torch.mul(hidden[rows], share[:, None], out=weighted[here])
        d_bias.addmv_(scores.T, share)
    d_weight.add_(torch.mm(probable.T, weighted))
    _BUFFERS.give_back(probable)


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
        columns = _Columns.build(weights.index_select(0, of_negative), biases[of_negative], dtype)
        hit_rows, hit_columns = _find_hits(of_target, of_negative, len(touched))
        target_weight = weights.index_select(0, of_target)
        target_score = (hidden * target_weight).sum(dim=1) + biases[of_target]
        d_target = torch.empty_like(target_score)

        def exponentiate(scores: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            here = (hit_rows >= rows.start) & (hit_rows < rows.stop)
            scores[hit_rows[here] - rows.start, hit_columns[here]] = -torch.inf
            top = torch.maximum(scores.amax(dim=1), target_score[rows])
            own = (target_score[rows] - top).exp_()
            total = scores.sub_(top[:, None]).exp_().sum(dim=1).add_(own)
            torch.sub(own / total, 1, out=d_target[rows])
            return total, total.log() + top - target_score[rows]

        found = _differentiate(hidden, columns, exponentiate, block_scores)
        d_weights, d_biases = torch.zeros_like(weights), torch.zeros_like(biases)
        d_weights.index_add_(0, of_target, hidden * d_target[:, None]).index_add_(0, of_negative, found.weight)
        d_biases.index_add_(0, of_target, d_target).index_add_(0, of_negative, found.bias)
        found.hidden.addcmul_(target_weight, d_target[:, None])
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
        columns = _Columns.build(weight, bias, dtype)

        def exponentiate(scores: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            top, target_score = scores.amax(dim=1), scores.gather(1, targets[rows][:, None])[:, 0]
            total = scores.sub_(top[:, None]).exp_().sum(dim=1)
            return total, total.log() + top - target_score

        found = _differentiate(hidden, columns, exponentiate, block_scores)
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
