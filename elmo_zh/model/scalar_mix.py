"""The weighted sum of layers that a task learns: Peters et al. (2018), equation 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

# Adam moves a weight by about its learning rate per step. At a task's usual 0.001, the weights would hardly change.
MIX_LEARNING_RATE = 0.01


class ScalarMix(nn.Module):
    """gamma * sum over k of s_k * layer_k, with s = softmax(w); by default, w and gamma are learned.

    With layer normalisation, each layer is first shifted and scaled to mean 0 and variance 1 over all its unmasked
    numbers. Parameters are named as in AllenNLP, so its saved scalar mixes load here.

    Attributes:
        scalar_parameters: w, one parameter of shape (1,) per layer.
        gamma: The factor for the whole sum, shape (1,).
        do_layer_norm: Whether layers are normalised first.
    """

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        """Start from the given weights w (before the softmax), or from equal ones; they stay fixed unless `trainable`.

        Raises:
            ValueError: If the number of initial weights is not the number of layers.
        """
        super().__init__()
        initial = [0.0] * mixture_size if initial_scalar_parameters is None else list(initial_scalar_parameters)
        if len(initial) != mixture_size:
            raise ValueError(f"{len(initial)} initial scalar parameters for {mixture_size} layers: {initial}")
        self.mixture_size, self.do_layer_norm = mixture_size, do_layer_norm
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([float(value)]), requires_grad=trainable) for value in initial
        )
        self.gamma = nn.Parameter(torch.tensor([1.0]), requires_grad=trainable)

    def forward(
        self, tensors: Sequence[Tensor] | Sequence[NDArray[Any]] | NDArray[Any], mask: Tensor | None = None
    ) -> Tensor:
        """Return the weighted sum of the layers.

        Args:
            tensors: One for each layer, all of one shape (..., T, dimension); or NumPy arrays of any float type, such
                as the array (L + 1, n, 2P) that `ElmoEmbedder.embed` returns for a sentence.
            mask: True where there is a token, shape (..., T); needed for layer normalisation, otherwise ignored.

        Returns:
            The mix, in the shape of one layer.

        Raises:
            ValueError: If the number of layers is not `mixture_size`, or a mask is needed and missing.
        """
        if len(tensors) != self.mixture_size:
            raise ValueError(f"{len(tensors)} layers were given, but this is a mix of {self.mixture_size}")
        tensors = [torch.as_tensor(each).to(self.gamma) if isinstance(each, np.ndarray) else each for each in tensors]
        if self.do_layer_norm:
            if mask is None:
                raise ValueError("layer normalisation needs the mask of the tokens")
            tensors = [_normalise(tensor, mask[..., None]) for tensor in tensors]
        weights = torch.cat(list(self.scalar_parameters)).softmax(dim=0)
        mixed = weights[0] * tensors[0]
        for weight, tensor in zip(weights[1:], tensors[1:], strict=True):
            mixed = mixed + weight * tensor
        return self.gamma * mixed

    def layer_weights(self) -> list[float]:
        """Return gamma times the softmax of w, which is each layer's factor in the sum."""
        with torch.no_grad():
            factors: Tensor = self.gamma * torch.cat(list(self.scalar_parameters)).softmax(dim=0)
        return [float(factor) for factor in factors]

    def l2_penalty(self) -> Tensor:
        """Return the sum of w squared, as a scalar.

        The paper adds lambda times this sum to the task's loss, which draws the mix towards the plain average of the
        layers. With a lambda of 1 the mix is almost that average; 0.001 lets the weights vary.
        """
        return torch.cat(list(self.scalar_parameters)).square().sum()


def mix_parameter_groups(
    model: nn.Module, learning_rate: float, mix_learning_rate: float = MIX_LEARNING_RATE
) -> list[dict[str, Any]]:
    """Return parameter groups for an optimiser, so that scalar mixes have their own learning rate.

        optimizer = torch.optim.Adam(mix_parameter_groups(model, 1e-3))

    Args:
        model: Any module; a `ScalarMix` may be anywhere inside.
        learning_rate: Learning rate of all other parameters.
        mix_learning_rate: Learning rate of w and gamma.

    Returns:
        The groups that have a trainable parameter, the scalar mixes last.
    """
    mixes = [module for module in model.modules() if isinstance(module, ScalarMix)]
    of_mixes = {id(parameter) for mix in mixes for parameter in mix.parameters()}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [each for each in trained if id(each) not in of_mixes], "lr": learning_rate},
        {"params": [each for each in trained if id(each) in of_mixes], "lr": mix_learning_rate},
    ]
    return [group for group in groups if group["params"]]


def _normalise(tensor: Tensor, mask: Tensor) -> Tensor:
    """Shift and scale a layer so that unmasked numbers have mean 0 and variance 1; the mask has shape (..., T, 1)."""
    masked = tensor * mask
    count = (mask.sum() * tensor.shape[-1]).clamp(min=1)
    mean = masked.sum() / count
    variance = ((masked - mean) * mask).square().sum() / count
    return (tensor - mean) / torch.sqrt(variance + torch.finfo(tensor.dtype).tiny)
