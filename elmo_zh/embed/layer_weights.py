"""Learn how much each layer counts, together with a linear model that predicts labels."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.model.scalar_mix import ScalarMix, mix_parameter_groups

_STEPS, _LEARNING_RATE, _MIX_LEARNING_RATE, _WEIGHT_DECAY, _MIX_PENALTY = 200, 0.01, 0.05, 1e-3, 1e-3


def learn_layer_weights(vectors: NDArray[np.float32], labels: NDArray[Any]) -> NDArray[np.float32]:
    """Learn layer weights together with a linear model that predicts the labels; return float32, shape (L + 1,).

    The vectors have shape (N, L + 1, d); labels, shape (N,), are numbers to predict if they are floats, otherwise
    classes. The layers are first scaled to the same size, so that none counts more because its numbers are larger. The
    mix and a linear model on top are trained together on all vectors at once, always from the same start.
    """
    if labels.shape != (len(vectors),):
        raise ValueError(f"labels have shape {labels.shape}; expected ({len(vectors)},)")
    targets, num_outputs = _targets(labels)
    sizes = np.sqrt(np.square(vectors, dtype=np.float64).mean(axis=(0, 2))).clip(min=1e-6).astype(np.float32)
    layers = [torch.from_numpy(np.ascontiguousarray(vectors[:, layer] / size)) for layer, size in enumerate(sizes)]
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        mix, linear = ScalarMix(len(layers)), nn.Linear(vectors.shape[2], num_outputs)
        groups = mix_parameter_groups(nn.ModuleList([mix, linear]), _LEARNING_RATE, _MIX_LEARNING_RATE)
        groups[0]["weight_decay"] = _WEIGHT_DECAY
        optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
        for _ in range(_STEPS):
            optimizer.zero_grad()
            loss = _loss(linear(mix(layers)), targets) + _MIX_PENALTY * mix.l2_penalty()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return np.asarray(mix.layer_weights() / sizes, np.float32)


def _targets(labels: NDArray[Any]) -> tuple[Tensor, int]:
    if labels.dtype.kind == "f":
        return torch.from_numpy((labels - labels.mean()) / max(float(labels.std()), 1e-6)).float(), 1
    classes, numbers = np.unique(labels, return_inverse=True)
    return torch.from_numpy(numbers), len(classes)


def _loss(outputs: Tensor, targets: Tensor) -> Tensor:
    if targets.dtype == torch.float32:
        return functional.mse_loss(outputs[:, 0], targets)
    return functional.cross_entropy(outputs, targets)
