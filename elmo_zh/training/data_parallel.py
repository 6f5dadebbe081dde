"""One step on several ranks: the network's gradients are averaged as they come, of the tables only rows are sent."""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from elmo_zh.model.bilm import BiLM, State
from elmo_zh.model.precision import Precision
from elmo_zh.model.token_encoder import TokenInputs
from elmo_zh.training.distributed import Group

Network = Callable[[TokenInputs, State, Tensor | None, float], tuple[list[Tensor], State]]

_DENSE = -1


class _AllButTables(nn.Module):
    """The part of a biLM whose gradient has no rows that stay zero: LSTM layers, and the CNN in character mode."""

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


def build_network(bilm: BiLM, group: Group, precision: Precision) -> Network:
    """Return what runs a biLM in training, as `BiLM.forward` does, and averages its gradients over the ranks."""
    if group.size == 1:
        return functools.partial(bilm, precision=precision)
    parallel = DistributedDataParallel(_AllButTables(bilm, precision), gradient_as_bucket_view=True)

    def run(inputs: TokenInputs, state: State, keep: Tensor | None, dropout: float) -> tuple[list[Tensor], State]:
        read = inputs if bilm.shape.characters is not None else bilm.token_table(inputs)
        outputs: tuple[list[Tensor], State] = parallel(read, state, keep, dropout)
        return outputs

    return run


@torch.no_grad()
def average_tables(tables: Sequence[nn.Parameter], group: Group) -> None:
    """Replace the gradient of each table by its mean over the ranks.

    Where all have a sparse one, ranks send each other the rows that they touched, and add them up in the order of
    ranks; else all of it is added up.
    """
    if group.size == 1:
        return
    trained = [table for table in tables if table.grad is not None]
    told = group.gather_numbers(*(_num_rows(table) for table in trained))
    for table, num_rows in zip(trained, zip(*told, strict=True), strict=True):
        assert table.grad is not None
        if _DENSE in num_rows:
            gradient = table.grad.to_dense() if table.grad.is_sparse else table.grad
            group.add_up(gradient)
            table.grad = gradient.div_(group.size)
        else:
            table.grad = _average_rows(table.grad, [int(number) for number in num_rows], group)


def _num_rows(table: nn.Parameter) -> int:
    """Return how many rows a table's gradient has, each once from here on, or -1 for a dense one."""
    if table.grad is None or not table.grad.is_sparse:
        return _DENSE
    table.grad = table.grad.coalesce()
    return len(table.grad.values())


def _average_rows(gradient: Tensor, num_rows: Sequence[int], group: Group) -> Tensor:
    """Return the mean of the ranks' sparse gradients.

    Args:
        gradient: Coalesced, of this rank, shape (V, P) or (V,), sparse in its first axis.
        num_rows: Rows of each rank's.
        group: The ranks.
    """
    most = max(num_rows)
    rows, values = (
        torch.cat([part[:number] for part, number in zip(group.gather(_pad(own, most)), num_rows, strict=True)])
        for own in (gradient.indices()[0], gradient.values())
    )
    values.div_(group.size)
    return torch.sparse_coo_tensor(rows[None], values, gradient.shape, check_invariants=False).coalesce()


def _pad(part: Tensor, length: int) -> Tensor:
    """Return a tensor of shape (n,) or (n, P) with zeros up to `length` in its first axis."""
    return functional.pad(part, (0, 0) * (part.dim() - 1) + (0, length - len(part)))
