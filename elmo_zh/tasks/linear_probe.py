"""A linear probe shows what a layer holds: softmax regression on its vectors (Peters et al. 2018, section 5.3)."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from elmo_zh.model.kernels.execution import with_half_of_the_threads

_EPOCHS, _PATIENCE, _BATCH, _LEARNING_RATE = 50, 3, 64, 0.003
_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class LabelledVectors:
    """N vectors and their classes.

    Attributes:
        vectors: float16, shape (N, D).
        classes: int64, shape (N,); -1 for one that training does not have.
    """

    vectors: NDArray[np.float16]
    classes: NDArray[np.int64]


@with_half_of_the_threads()
def fit_linear_probe(
    train: LabelledVectors, dev: LabelledVectors, test: LabelledVectors, num_classes: int, seed: int
) -> tuple[NDArray[np.int64], float]:
    """Return the classes of the test vectors, int64, shape (N,), and the accuracy on the development vectors.

    Training ends when that accuracy has not become better for three epochs.

    Args:
        train: What is learned from; two vectors at least.
        dev: What decides when to stop.
        test: What is predicted.
        num_classes: Number of classes.
        seed: Seed of the first weights and of the order.
    """
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    # Without weights of its own the first layer only standardises, so that both together are linear. Without momentum
    # its mean is right from the first epoch on, however far from zero the vectors are.
    width = train.vectors.shape[1]
    probe = nn.Sequential(nn.BatchNorm1d(width, affine=False, momentum=None), nn.Linear(width, num_classes))
    optimizer = torch.optim.Adam(probe.parameters(), lr=_LEARNING_RATE)
    best_score, best, waited = -1.0, copy.deepcopy(probe.state_dict()), 0
    for _ in range(_EPOCHS):
        _train_epoch(probe, optimizer, train, generator)
        score = float((_predict(probe, dev.vectors) == dev.classes).mean())
        waited += 1
        if score > best_score:
            best_score, best, waited = score, copy.deepcopy(probe.state_dict()), 0
        if waited == _PATIENCE:
            break
    probe.load_state_dict(best)
    return _predict(probe, test.vectors), best_score


def _train_epoch(
    probe: nn.Module, optimizer: torch.optim.Optimizer, train: LabelledVectors, generator: np.random.Generator
) -> None:
    probe.train()
    count = len(train.classes)
    # Batches of nearly equal size, so that none is of one vector, which cannot be standardised.
    for rows in np.array_split(generator.permutation(count), -(-count // _BATCH)):
        optimizer.zero_grad()
        loss = functional.cross_entropy(probe(_floats(train.vectors[rows])), torch.from_numpy(train.classes[rows]))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@torch.no_grad()
def _predict(probe: nn.Module, vectors: NDArray[np.float16]) -> NDArray[np.int64]:
    probe.eval()
    found: list[Any] = [np.zeros(0, np.int64)]
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        found.append(probe(_floats(vectors[start : start + _ROWS_AT_ONCE])).argmax(dim=1).numpy())
    return np.concatenate(found)


def _floats(vectors: NDArray[np.float16]) -> Tensor:
    return torch.from_numpy(vectors.astype(np.float32))
