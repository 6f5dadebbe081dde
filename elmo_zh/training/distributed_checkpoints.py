"""The checkpoints of a run as all ranks see them, though rank 0 alone reads and writes their files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_zh.training.checkpoint import Checkpoint, CheckpointFolder
from elmo_zh.training.distributed import Group
from elmo_zh.training.metrics import MetricsFile

_Layout = Mapping[str, tuple[str, list[int]]]


class SharedCheckpoints:
    """A `CheckpointFolder` whose methods all ranks call, in the same order; what one returns is the same on all."""

    def __init__(self, folder: CheckpointFolder, group: Group) -> None:
        self.path = folder.path
        self._folder, self._group = folder, group

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; all ranks wait for it."""
        self._group.first(lambda: str(self._folder.save(checkpoint)))

    def remove_after(self, step: int) -> None:
        """Remove all checkpoints later than a step."""
        self._group.first(lambda: self._folder.remove_after(step))

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints, rising."""
        return self._group.first(self._folder.steps)

    def last_regular_step(self) -> int | None:
        """Return the step of the last checkpoint that stands at a fixed step, not at an interruption."""
        return self._group.first(self._folder.last_regular_step)

    def best_step(self) -> int | None:
        """Return the step whose held-out sample has the lowest perplexity, the later of equals."""
        return self._group.first(self._folder.best_step)

    def files(self, step: int) -> list[Path]:
        """Return the files of a checkpoint that make its weights and figures."""
        return self._folder.files(step)

    def state(self, step: int) -> dict[str, Any]:
        """Return a checkpoint's plain values."""
        return self._group.first(lambda: self._folder.state(step))

    def update_state(self, step: int, **values: Any) -> None:
        """Add values to a checkpoint's state."""
        self._group.first(lambda: self._folder.update_state(step, **values))

    def load(self, step: int, *, with_optimizer: bool = True) -> Checkpoint:
        """Return a checkpoint that rank 0 has read, with or without what only further training needs."""
        found: list[Checkpoint] = []

        def read() -> dict[str, Any]:
            found.append(self._folder.load(step, with_optimizer=with_optimizer))
            return {"state": found[0].state, "model": _layout(found[0].model), "optimizer": _layout(found[0].optimizer)}

        told = self._group.first(read)
        if not found:
            found.append(
                Checkpoint(state=told["state"], model=_empty(told["model"]), optimizer=_empty(told["optimizer"]))
            )
        self._group.broadcast([*found[0].model.values(), *found[0].optimizer.values()])
        return found[0]


def _layout(tensors: Mapping[str, Tensor]) -> _Layout:
    """Return type and shape of tensors as plain values."""
    return {name: (str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for name, tensor in tensors.items()}


def _empty(layout: _Layout) -> dict[str, Tensor]:
    return {name: torch.empty(shape, dtype=getattr(torch, dtype)) for name, (dtype, shape) in layout.items()}


class NoMetrics(MetricsFile):
    """What a rank other than 0 writes its figures to: nothing."""

    def append(self, **figures: Any) -> None:  # noqa: D102
        pass

    def lines(self) -> list[dict[str, Any]]:  # noqa: D102
        return []

    def cut_after(self, step: int) -> None:  # noqa: D102
        pass

    def discard(self, **figures: Any) -> None:  # noqa: D102
        pass

    def remove(self) -> None:  # noqa: D102
        pass
