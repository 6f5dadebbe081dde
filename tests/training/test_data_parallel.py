"""Averaged table gradients against dense sums; two threads take the place of two processes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor, nn

from elmo_zh.training import Launch
from elmo_zh.training.distributed import ProcessGroup, average_gradients

ROWS, WIDTH = 13, 5


class Pair(ProcessGroup):
    """One of two ranks in one process."""

    def __init__(self, rank: int, table: list[Tensor], barrier: Barrier) -> None:
        super().__init__(Launch(rank=rank, size=2, local_rank=rank))
        self._table, self._barrier = table, barrier

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        self._table[self.rank] = tensor.clone()
        self._barrier.wait()
        gathered = list(self._table)
        assert gathered[0].shape == gathered[1].shape
        self._barrier.wait()
        return gathered

    def all_reduce(self, tensor: Tensor) -> None:
        first, second = self.all_gather(tensor)
        tensor.copy_((first + second).coalesce() if tensor.is_sparse else first + second)


def on_two_ranks(work: Callable[[ProcessGroup], list[Tensor]]) -> list[list[Tensor]]:
    table, barrier = [torch.empty(0)] * 2, Barrier(2)
    with ThreadPoolExecutor(2) as ranks:
        return list(ranks.map(lambda rank: work(Pair(rank, table, barrier)), range(2)))


def sparse(rows: list[int], *shape: int) -> Tensor:
    values = dense(len(rows), len(rows), *shape[1:])
    indices = torch.tensor([rows], dtype=torch.int64)
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False)


def dense(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(ROWS, WIDTH), (ROWS,)])
@pytest.mark.parametrize("kinds", [([5, 2, 5, 11], [2, 7]), ([3], []), ([], []), (None, None)])
def test_the_mean_of_sparse_and_dense_gradients(
    shape: tuple[int, ...], kinds: tuple[list[int] | None, list[int] | None]
) -> None:
    gradients = [dense(rank, *shape) if rows is None else sparse(rows, *shape) for rank, rows in enumerate(kinds)]
    expected = sum(gradient.to_dense().clone() for gradient in gradients) / 2

    def work(group: ProcessGroup) -> list[Tensor]:
        tables = [nn.Parameter(torch.zeros(shape)), nn.Parameter(torch.zeros(shape))]
        tables[0].grad = gradients[group.rank].clone()
        average_gradients(tables, group)  # the second has no gradient, like a table that is not trained
        assert tables[1].grad is None
        assert tables[0].grad is not None
        return [tables[0].grad]

    found = [gradient for (gradient,) in on_two_ranks(work)]
    for gradient in found:
        assert gradient.is_sparse == (None not in kinds)
        torch.testing.assert_close(gradient.to_dense(), expected)
        if gradient.is_sparse:
            # Only touched rows, each once.
            assert gradient.indices()[0].tolist() == sorted({row for rows in kinds for row in rows or []})
