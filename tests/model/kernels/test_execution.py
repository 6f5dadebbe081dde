"""Two tasks at the same time, and rows in halves: their results, their errors, their threads."""

import pytest
import torch
from torch import Tensor

from elmo_zh.model.kernels.execution import compute_in_halves, side_by_side


@pytest.fixture(params=[1, 2, 5])
def num_threads(request: pytest.FixtureRequest, threads_as_before: None) -> int:
    torch.set_num_threads(request.param)
    return int(request.param)


class OddError(Exception):
    pass


def test_each_half_has_half_of_the_threads_and_no_gradient(num_threads: int) -> None:
    weight = torch.ones(3, requires_grad=True)

    def work(half: int) -> tuple[int, int, bool, bool]:
        return half, torch.get_num_threads(), (weight * 2).requires_grad, torch.is_inference_mode_enabled()

    half = max(1, num_threads // 2)
    for _ in range(2):
        assert side_by_side(work) == ((0, half, False, False), (1, half, False, False))
        assert torch.get_num_threads() == num_threads
        assert torch.is_grad_enabled()


@pytest.mark.parametrize("failing", [(0,), (1,), (0, 1)])
def test_errors_of_either_half_travel_and_leave_all_as_it_was(num_threads: int, failing: tuple[int, ...]) -> None:
    def work(half: int) -> int:
        if half in failing:
            raise OddError(half)
        return half

    for _ in range(2):
        with pytest.raises(OddError) as caught:
            side_by_side(work)
        assert caught.value.args == (failing[0],)
        assert torch.get_num_threads() == num_threads
        assert torch.is_grad_enabled()
    assert side_by_side(lambda half: 7 * half) == (0, 7)


# Rows in halves


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("num_rows", [0, 1, 2, 3, 7])
@pytest.mark.usefixtures("num_threads")
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
