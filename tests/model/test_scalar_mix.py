"""The scalar mix worked out by hand: equation 1 of Peters et al. (2018), and its layer normalisation."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_zh import ScalarMix, mix_parameter_groups

# Two sentences of three tokens, the second one padded after its first; vectors of two numbers.
LAYERS = (
    torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [90.0, 90.0], [90.0, 90.0]]]),
    torch.tensor([[[0.0, 4.0], [-8.0, 4.0], [4.0, 0.0]], [[12.0, -4.0], [-50.0, 50.0], [0.0, 70.0]]]),
)
MASK = torch.tensor([[True, True, True], [True, False, False]])


def assert_equal(found: Tensor, expected: object) -> None:
    np.testing.assert_allclose(found.detach().numpy(), np.asarray(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "gamma", "expected"),
    [
        (None, 1.0, [[0.5, 3.0], [-2.5, 4.0], [4.5, 3.0]]),
        # Through a softmax: e^ln 3 to e^0 is three quarters to one. Only their differences matter.
        ([math.log(3), 0], 1.0, [[0.75, 2.5], [0.25, 4.0], [4.75, 4.5]]),
        ([math.log(3) + 5, 5], 1.0, [[0.75, 2.5], [0.25, 4.0], [4.75, 4.5]]),
        ([math.log(3), 0], -2.0, [[-1.5, -5.0], [-0.5, -8.0], [-9.5, -9.0]]),
    ],
)
def test_the_mix_is_the_weighted_average_times_gamma(
    weights: list[float] | None, gamma: float, expected: list[list[float]]
) -> None:
    mix = ScalarMix(2, initial_scalar_parameters=weights)
    with torch.no_grad():
        mix.gamma.fill_(gamma)
    assert mix(LAYERS, MASK).shape == (2, 3, 2)
    assert_equal(mix(LAYERS, MASK)[0], expected)
    shares = [0.5, 0.5] if weights is None else [0.75, 0.25]
    assert mix.layer_weights() == pytest.approx([gamma * share for share in shares])


def test_layer_normalisation_is_over_all_numbers_that_count() -> None:
    """Of each layer by itself: 1 to 8 have mean 4.5 and variance 5.25, those of the other layer 1.5 and 31.75."""
    mix = ScalarMix(2, do_layer_norm=True, initial_scalar_parameters=[math.log(3), 0])
    numbers = np.array([0, 4, -8, 4, 4, 0, 12, -4])
    first = (np.arange(1, 9) - 4.5) / math.sqrt(5.25)
    expected = 0.75 * first + 0.25 * (numbers - 1.5) / math.sqrt(31.75)
    assert_equal(mix(LAYERS, MASK)[MASK], expected.reshape(4, 2))


def test_the_penalty_is_of_the_weights_before_the_softmax() -> None:
    mix = ScalarMix(3, initial_scalar_parameters=[1.0, -2.0, 5.0])
    penalty = mix.l2_penalty()
    assert penalty.shape == ()
    assert penalty.item() == 1 + 4 + 25
    penalty.backward()
    assert [parameter.grad.item() for parameter in mix.scalar_parameters if parameter.grad is not None] == [2, -4, 10]
    assert mix.gamma.grad is None
    assert ScalarMix(3).l2_penalty().item() == 0


def test_names_are_those_of_allennlp() -> None:
    state = ScalarMix(3).state_dict()
    names = {"gamma", "scalar_parameters.0", "scalar_parameters.1", "scalar_parameters.2"}
    assert {name: tensor.shape for name, tensor in state.items()} == dict.fromkeys(names, (1,))
    other = ScalarMix(3)
    other.load_state_dict({name: torch.tensor([float(place)]) for place, name in enumerate(sorted(names))})
    weights = np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum()
    ones = [torch.full((1, 1, 1), value) for value in (2.0, 3.0, 5.0)]
    with torch.no_grad():
        assert other(ones).item() == 0  # gamma is the first name
        other.gamma.fill_(1.0)
    assert other(ones).item() == pytest.approx(float(weights @ [2, 3, 5]))


def test_scalar_mixes_learn_at_their_own_rate() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.frozen = torch.nn.Parameter(torch.zeros(1), requires_grad=False)
            self.inside = torch.nn.ModuleList([ScalarMix(2), torch.nn.Linear(3, 5)])

    model = Model()
    mix, linear = model.inside
    others, of_mix = mix_parameter_groups(model, 0.002)
    assert (others["lr"], of_mix["lr"]) == (0.002, 0.01)
    assert {id(each) for each in others["params"]} == {id(each) for each in linear.parameters()}
    assert {id(each) for each in of_mix["params"]} == {id(each) for each in mix.parameters()}
    assert [group["lr"] for group in mix_parameter_groups(linear, 0.5)] == [0.5]
    assert [group["lr"] for group in mix_parameter_groups(mix, 0.5, 0.25)] == [0.25]
