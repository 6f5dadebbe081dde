"""Dropout: how much, how it is made up for, and what decides on it."""

import math

import pytest
import torch

from elmo_zh.model.bilm import drop


def drop_seeded(values: torch.Tensor, share: float, seed: int = 3) -> torch.Tensor:
    torch.manual_seed(seed)
    return drop(values, share)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.3, 0.5, 0.95])
def test_the_share_is_dropped_and_the_rest_scaled_up(share: float) -> None:
    number = 1_000_003
    dropped = drop_seeded(torch.ones(number), share)
    kept = dropped != 0
    # Within five standard deviations, and a 65,536th.
    tolerance = 5 * math.sqrt(share * (1 - share) / number) + 2**-16
    assert float((~kept).double().mean()) == pytest.approx(share, abs=tolerance)
    (scale,) = dropped[kept].unique().tolist()
    assert scale == pytest.approx(1 / (1 - share), rel=2e-4)
    # In every part of four places, which come from one drawn number, as much.
    for place in range(4):
        part = (~kept)[place::4].double().mean()
        assert float(part) == pytest.approx(share, abs=2 * tolerance)


def test_places_are_dropped_independently() -> None:
    kept = (drop_seeded(torch.ones(400_000), 0.5) != 0).double() * 2 - 1
    for distance in (1, 2, 3, 4, 5, 64, 4096):
        correlation = (kept[:-distance] * kept[distance:]).mean()
        assert abs(float(correlation)) < 5 / math.sqrt(400_000 - distance)


def test_the_seed_decides() -> None:
    values = torch.randn(3, 101, generator=torch.Generator().manual_seed(1))
    first = drop_seeded(values, 0.3)
    following = drop(values, 0.3)
    assert torch.equal(drop_seeded(values, 0.3), first)
    assert torch.equal(drop(values, 0.3), following)
    for other in (following, drop_seeded(values, 0.3, seed=4)):
        assert not torch.equal(other != 0, first != 0)


def test_nothing_happens_without_a_share() -> None:
    values = torch.randn(3, 5)
    state = torch.get_rng_state()
    assert drop(values, 0) is values
    assert drop(values, 0.0) is values
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (3,), (5,), (7, 1), (3, 5, 7), (2, 3, 0), (2, 2, 2)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    dropped = drop_seeded(values, 0.5)
    assert dropped.shape == values.shape
    assert dropped.dtype == torch.float32
    assert ((dropped == 0) | (dropped == 2 * values)).all()


def test_the_gradient_passes_where_the_value_did_and_the_order_in_memory_is_no_matter() -> None:
    values = torch.randn(5, 3).T.requires_grad_()
    dropped = drop_seeded(values, 0.4)
    (gradient,) = torch.autograd.grad(dropped.sum(), values)
    torch.testing.assert_close(gradient * values.detach(), dropped.detach())
    assert 0 < int((gradient == 0).sum()) < 15
    assert torch.equal(drop_seeded(values.detach().contiguous(), 0.4), dropped.detach())
