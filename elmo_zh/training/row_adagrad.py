"""Row-wise Adagrad: one sum of squares for each row of a table."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

# Avoids division by zero in a row whose gradients have all been zero.
_EPSILON = 1e-10


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad (Duchi, Hazan and Singer 2011) that sums the mean square of each row's gradient.

    The entries of a row belong to one word and have gradients of similar size. So one sum per row learns as well as one
    per entry, and takes only as much memory as one column of the table. Only rows that have a gradient are updated.

    Args:
        parameters: Tables, shape (V, P), and vectors, shape (V,), whose rows are single numbers.
        initial_sum: Initial value of the sums.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], initial_sum: float) -> None:
        super().__init__(parameters, {"lr": 1.0})
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"] = parameter.new_full(parameter.shape[:1], initial_sum)

    @torch.no_grad()
    def step(self, _closure: Any = None) -> None:  # type: ignore[override]
        """Update the parameters that have a gradient, sparse or dense."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group["lr"])

    def _update(self, parameter: nn.Parameter, gradient: Tensor, learning_rate: float) -> None:
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
