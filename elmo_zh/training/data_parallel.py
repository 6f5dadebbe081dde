"""Gradient averaging over ranks: DistributedDataParallel for the network, only the touched rows for the tables."""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from elmo_zh.model.bilm import BiLM, State
from elmo_zh.model.precision import Precision
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.training.distributed import ProcessGroup

Network = Callable[[TokenInputs, State, Tensor | None, float], tuple[list[Tensor], State]]

# Stands for the number of rows of a dense gradient.
_DENSE = -1


class _WithoutTables(nn.Module):
    """The part of a biLM whose gradients are dense: the LSTM layers, and the CNN in character mode."""

    def __init__(self, bilm: BiLM, precision: Precision) -> None:
        super().__init__()
        self.encoder = nn.Identity() if bilm.shape.characters is None else bilm.character_cnn
        self.layers = bilm.layers
        self._encode_tokens, self._run_layers, self._precision = bilm.encode_tokens, bilm.run_layers, precision

    def forward(
        self, read: Tensor | TokenInputs, state: State, keep: Tensor | None, dropout: float
    ) -> tuple[list[Tensor], State]:
        vectors = self._encode_tokens(read, self._precision) if isinstance(read, TokenInputs) else read
        return self._run_layers(vectors, state, keep, dropout, precision=self._precision)


def build_network(bilm: BiLM, group: ProcessGroup, precision: Precision) -> Network:
    """Return a function like `BiLM.forward` that averages the network's gradients over the ranks."""
    if group.size == 1:
        return functools.partial(bilm, precision=precision)
    parallel = DistributedDataParallel(_WithoutTables(bilm, precision), gradient_as_bucket_view=True)

    def run(inputs: TokenInputs, state: State, keep: Tensor | None, dropout: float) -> tuple[list[Tensor], State]:
        read = inputs if bilm.shape.characters is not None else bilm.token_table(inputs)
        outputs: tuple[list[Tensor], State] = parallel(read, state, keep, dropout)
        return outputs

    return run


@torch.no_grad()
def average_table_gradients(tables: Sequence[nn.Parameter], group: ProcessGroup) -> None:
    """Replace the gradient of each table by its mean over the ranks.

    If it is sparse on all ranks, they send each other the rows that they have touched, which are summed in the order
    of the ranks. Otherwise the whole gradient is all-reduced.
    """
    if group.size == 1:
        return
    trained = [table for table in tables if table.grad is not None]
    gathered = group.all_gather_numbers(*(_coalesce(table) for table in trained))
    for table, num_rows in zip(trained, zip(*gathered, strict=True), strict=True):
        assert table.grad is not None
        if _DENSE in num_rows:
            gradient = table.grad.to_dense() if table.grad.is_sparse else table.grad
            group.all_reduce(gradient)
            table.grad = gradient.div_(group.size)
        else:
            table.grad = _average_rows(table.grad, [int(number) for number in num_rows], group)


def _coalesce(table: nn.Parameter) -> int:
    """Sum up duplicate rows of a table's sparse gradient; return its number of rows, or -1 if it is dense."""
    if table.grad is None or not table.grad.is_sparse:
        return _DENSE
    table.grad = table.grad.coalesce()
    return len(table.grad.values())


def _average_rows(gradient: Tensor, num_rows: Sequence[int], group: ProcessGroup) -> Tensor:
    """Return the mean of the ranks' sparse gradients.

    Args:
        gradient: This rank's gradient, coalesced, shape (V, P) or (V,), sparse in its first axis.
        num_rows: Number of rows of each rank's gradient.
        group: The process group.
    """
    max_rows = max(num_rows)
    rows, values = (
        torch.cat([padded[:n] for padded, n in zip(group.all_gather(_pad(own, max_rows)), num_rows, strict=True)])
        for own in (gradient.indices()[0], gradient.values())
    )
    values.div_(group.size)
    return torch.sparse_coo_tensor(rows[None], values, gradient.shape, check_invariants=False).coalesce()


def _pad(tensor: Tensor, length: int) -> Tensor:
    """Return a tensor of shape (n,) or (n, P), padded with zeros to `length` in its first axis."""
    return functional.pad(tensor, (0, 0) * (tensor.dim() - 1) + (0, length - len(tensor)))
