"""One step of the cell; as part of the recurrence it is tested beside it."""

import pytest
import torch

from elmo_zh.model.kernels.cells import fill_tanh

ROUNDING = 2**-23  # of a float32 between 1 and 2


@pytest.mark.parametrize("is_in_place", [False, True])
def test_tanh_is_as_near_as_two_roundings(is_in_place: bool) -> None:
    tiny = torch.logspace(-38, 1, 10_007, dtype=torch.float64).float()
    values = torch.cat([torch.linspace(-20, 20, 400_009), tiny, -tiny, torch.tensor([0.0, -0.0, 1e4, -1e4, 1e-45])])
    expected = values.double().tanh()
    out = values if is_in_place else torch.empty_like(values)
    fill_tanh(values, out)
    assert float((out.double() - expected).abs().max()) <= 2 * ROUNDING
    assert float(out.abs().max()) == 1.0
    # Where it is flat it is so exactly, and nothing has the wrong sign.
    assert (out[expected.abs() > 1 - 1e-9].abs() == 1).all()
    assert (out.double() * expected >= 0).all()


def test_tanh_of_what_is_no_number_is_none() -> None:
    out = torch.empty(3)
    fill_tanh(torch.tensor([torch.inf, -torch.inf, torch.nan]), out)
    assert out[:2].tolist() == [1, -1]
    assert out[2].isnan()
