"""Large tensors that are reused at every step."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor


class BufferPool:
    """Keeps tensors that are no longer needed, for later requests of the same shape and dtype.

    The C library returns a large block to the operating system when it is freed and gets it anew, page by page and
    zeroed, at the next step: with small models that takes longer than the computation in it.

    Attributes:
        captured: Free CUDA graphs, with the tensors that they use, by the shape that they were captured for.
        capture_failure: Why no more graphs are captured: the error of the capture that failed. Empty if none did.
    """

    def __init__(self) -> None:
        self._free: defaultdict[tuple[tuple[int, ...], torch.dtype, torch.device], list[Tensor]] = defaultdict(list)
        self.captured: defaultdict[Hashable, list[Any]] = defaultdict(list)
        self.capture_failure = ""

    def take(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return a tensor with any content."""
        free = self._free[tuple(shape), dtype, device]
        try:
            return free.pop()
        except IndexError:
            return torch.empty(shape, dtype=dtype, device=device)

    def give_back(self, *buffers: Tensor) -> None:
        """Take back tensors whose content is no longer needed."""
        for buffer in buffers:
            free = self._free[tuple(buffer.shape), buffer.dtype, buffer.device]
            if all(buffer is not other for other in free):
                free.append(buffer)


class NoPool(BufferPool):
    """Keeps nothing: every tensor is new."""

    def take(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return a new tensor with any content."""
        return torch.empty(shape, dtype=dtype, device=device)

    def give_back(self, *buffers: Tensor) -> None:
        """Drop them."""
