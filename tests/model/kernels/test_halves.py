"""A function of rows in halves: the same as at once, with its gradients, whatever the threads."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from elmo_zh.model.kernels.halves import compute_in_halves


@pytest.fixture(params=[1, 2])
def _num_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 7])
@pytest.mark.usefixtures("_num_threads")
def test_results_and_gradients_are_those_of_all_rows_at_once(num_rows: int) -> None:
    rows, weighting = draw(1, num_rows, 3), draw(2, num_rows, 5)
    weight, bias = draw(3, 3, 5).requires_grad_(), draw(4, 5).requires_grad_()
    frozen = draw(5, 5)
    expected = torch.tanh(rows @ weight + bias) * frozen
    found = compute_in_halves(
        lambda some: torch.tanh(rows[some] @ weight + bias) * frozen, num_rows, [weight, bias, frozen]
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    ours = torch.autograd.grad((found * weighting).sum(), [weight, bias])
    for mine, theirs in zip(ours, torch.autograd.grad((expected * weighting).sum(), [weight, bias]), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_a_parameter_that_one_half_alone_uses_has_its_gradient() -> None:
    first, second, neither = (torch.ones((), requires_grad=True) for _ in range(3))
    found = compute_in_halves(
        lambda rows: torch.ones(rows.stop - rows.start) * (second if rows.start else first), 7, [first, second, neither]
    )
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert (first.grad, second.grad, neither.grad) == (4, 3, None)


def test_without_a_gradient_there_is_none() -> None:
    weight = torch.ones((), requires_grad=True)

    def double(rows: slice) -> Tensor:
        return torch.arange(5.0)[rows] * 2 * weight

    with torch.no_grad():
        found = compute_in_halves(double, 5, [weight])
    assert not found.requires_grad
    assert found.tolist() == [0, 2, 4, 6, 8]
    assert compute_in_halves(double, 5, [weight]).requires_grad
    assert not compute_in_halves(double, 5, [weight.detach()]).requires_grad
