"""Checkpoints as all ranks of a process group see them, although only rank 0 reads and writes their files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_zh.training.checkpoint import Checkpoint, CheckpointFolder
from elmo_zh.training.distributed import ProcessGroup

# Name of each tensor to its dtype and shape.
_Layout = Mapping[str, tuple[str, list[int]]]


class DistributedCheckpoints:
    """A `CheckpointFolder` for several ranks.

    All ranks call each method, in the same order, and get the same result.
    """

    def __init__(self, folder: CheckpointFolder, group: ProcessGroup) -> None:
        self.path = folder.path
        self._folder, self._group = folder, group

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; all ranks wait for it."""
        self._group.on_rank_0(lambda: str(self._folder.save(checkpoint)))

    def remove_after(self, step: int) -> None:
        """Remove all checkpoints later than a step."""
        self._group.on_rank_0(lambda: self._folder.remove_after(step))

    def steps(self) -> list[int]:
        """Return the steps of the checkpoints in ascending order."""
        return self._group.on_rank_0(self._folder.steps)

    def last_regular_step(self) -> int | None:
        """Return the step of the last checkpoint that was saved on schedule, not at an interruption."""
        return self._group.on_rank_0(self._folder.last_regular_step)

    def best_step(self) -> int | None:
        """Return the step with the lowest perplexity of the held-out sample, the later one of equals."""
        return self._group.on_rank_0(self._folder.best_step)

    def files(self, step: int) -> list[Path]:
        """Return the files of a checkpoint that hold its weights and figures."""
        return self._folder.files(step)

    def state(self, step: int) -> dict[str, Any]:
        """Return the JSON values of a checkpoint."""
        return self._group.on_rank_0(lambda: self._folder.state(step))

    def update_state(self, step: int, **values: Any) -> None:
        """Add values to a checkpoint's state."""
        self._group.on_rank_0(lambda: self._folder.update_state(step, **values))

    def load(self, step: int, *, with_optimizer: bool = True) -> Checkpoint:
        """Return a checkpoint that rank 0 has read, with or without the tensors that only further training needs."""
        loaded = self._group.only_on_rank_0(lambda: self._folder.load(step, with_optimizer=with_optimizer))
        checkpoint = loaded or Checkpoint(state={}, model={}, optimizer={})
        layouts = {"model": _layout(checkpoint.model), "optimizer": _layout(checkpoint.optimizer)}
        values = self._group.broadcast_value({"state": checkpoint.state, **layouts})
        if not loaded:
            checkpoint = Checkpoint(
                state=values["state"], model=_empty(values["model"]), optimizer=_empty(values["optimizer"])
            )
        self._group.broadcast([*checkpoint.model.values(), *checkpoint.optimizer.values()])
        return checkpoint


def _layout(tensors: Mapping[str, Tensor]) -> _Layout:
    return {name: (str(tensor.dtype).removeprefix("torch."), list(tensor.shape)) for name, tensor in tensors.items()}


def _empty(layout: _Layout) -> dict[str, Tensor]:
    return {name: torch.empty(shape, dtype=getattr(torch, dtype)) for name, (dtype, shape) in layout.items()}
