"""A function of rows on a processor: each half of the rows on half of the cores, forward and backward.

One product of all rows would share each operation out among the cores, which then wait for each other at every one.
The rows are always divided, so that results depend neither on the number of threads nor on which thread computes what.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_zh.model.kernels.execution import side_by_side

RowFunction = Callable[[slice], Tensor]


def compute_in_halves(function: RowFunction, num_rows: int, parameters: Sequence[Tensor]) -> Tensor:
    """Return function(all rows), computed half by half.

    Args:
        function: Returns the results of a slice of the rows, shape (n, ...), each a function of its row alone.
        num_rows: Number of rows.
        parameters: Tensors that the function uses and that receive its gradient; no other tensor does.
    """
    if num_rows < 2:
        return function(slice(0, num_rows))
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not (torch.is_grad_enabled() and trained):
        return torch.cat(side_by_side(lambda half: function(_rows_of(half, num_rows))))
    found: Tensor = _Halves.apply(function, num_rows, *trained)  # type: ignore[no-untyped-call]
    return found


def _rows_of(half: int, num_rows: int) -> slice:
    middle = (num_rows + 1) // 2
    return slice(middle, num_rows) if half else slice(0, middle)


class _Halves(torch.autograd.Function):
    """Each half has an autograd graph of its own, on which its thread goes back alone."""

    @staticmethod
    def forward(ctx: Any, function: RowFunction, num_rows: int, *parameters: Tensor) -> Tensor:
        def compute(half: int) -> Tensor:
            with torch.enable_grad():
                return function(_rows_of(half, num_rows))

        ctx.halves, ctx.parameters = side_by_side(compute), parameters
        return torch.cat([half.detach() for half in ctx.halves])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        def differentiate(half: int) -> tuple[Tensor | None, ...]:
            d_rows = gradients[0][_rows_of(half, len(gradients[0]))]
            # The graph lives as long as this operation, which may be differentiated more than once.
            given: tuple[Tensor | None, ...] = torch.autograd.grad(
                ctx.halves[half], ctx.parameters, d_rows, retain_graph=True, allow_unused=True
            )
            return given

        first, second = side_by_side(differentiate)
        return None, None, *(_add(*pair) for pair in zip(first, second, strict=True))


def _add(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    return right if left is None else left if right is None else left + right
