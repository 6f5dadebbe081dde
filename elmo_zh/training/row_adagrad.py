"""Adagrad with one sum of squares for each row of a table."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

# Keeps a row whose gradients were all zero from being divided by zero.
_EPSILON = 1e-10


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011) whose sum of squares is that of a row's mean square.

    A row's numbers belong to one word and have gradients of like size, so one sum for all of them learns as much as one
    for each, and takes no more room than a column of the table. Only rows that have a gradient are touched.

    Args:
        parameters: Tables, shape (V, P), and vectors, shape (V,), whose rows are single numbers.
        initial_sum: What the sums start from.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], initial_sum: float) -> None:
        super().__init__(parameters, {"lr": 1.0})
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"] = parameter.new_full(parameter.shape[:1], initial_sum)

    @torch.no_grad()
    def step(self, _closure: Any = None) -> None:  # type: ignore[override]
        """Take one step along the gradients, sparse ones with each row once."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._change(parameter, parameter.grad, group["lr"])

    def _change(self, parameter: nn.Parameter, gradient: Tensor, learning_rate: float) -> None:
        sums = self.state[parameter]["sum"]
        if not gradient.is_sparse:
            sums.add_(_mean_squares(gradient))
            parameter.addcdiv_(gradient, _as_divisor(sums, gradient), value=-learning_rate)
            return
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        sums.index_add_(0, rows, _mean_squares(values))
        parameter.index_add_(0, rows, values / _as_divisor(sums[rows], values), alpha=-learning_rate)


def _mean_squares(values: Tensor) -> Tensor:
    """Return the mean square of each row, shape (n,)."""
    return values.square() if values.ndim == 1 else torch.linalg.vecdot(values, values) / values.shape[1]


def _as_divisor(sums: Tensor, values: Tensor) -> Tensor:
    root = sums.sqrt().add_(_EPSILON)
    return root if values.ndim == 1 else root[:, None]
