"""The ranks that train one model together, and the few things that they tell each other.

`Group` is one rank alone: it needs nothing of torch.distributed, and everything that it is asked is answered on the
spot. `ProcessGroup` is several, by gloo between processors and NCCL between GPUs. Every method of it but `share_of`
has to be called by all ranks, in the same order.
"""

import atexit
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from elmo_zh.errors import ElmoZhError, RunError
from elmo_zh.model.precision import choose_device
from elmo_zh.training.launch import Launch

# A rank that never comes is given up. Once all are there, others wait for as long as rank 0 counts bigrams or saves;
# nobody waits for one that has died, since its connections close with it.
_JOINING, _WAITING = timedelta(minutes=10), timedelta(hours=2)

# gloo's threads need Python's lock to let go of the tensors that they sent last. A group's end waits for them, and may
# do so with that lock held: so it has to come late, when they have had time, and Python must not end before either.
_SETTLING_SECONDS = 0.2
_ended_groups: list[Any] = []

_UNMET = (
    "This process could not meet the others at {address} ({detail}). Start all of them, with one address that every"
    " machine can reach."
)
_LOST = (
    "Lost the other processes of this training ({detail}). If one of them tells why, mend that; the same command goes"
    " on from the last checkpoint."
)

Value = TypeVar("Value")


class Group:
    """One rank alone.

    Attributes:
        rank: This one's number, from 0. Rank 0 alone prints and writes files.
        size: How many there are.
    """

    rank, size = 0, 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def share_of(self, total: int) -> range:
        """Return this rank's share of `total` streams; the shares of all ranks follow one another and are equal."""
        return range(self.rank * total // self.size, (self.rank + 1) * total // self.size)

    def choose_device(self, name: str) -> torch.device:
        """Return this rank's device for auto, cpu or cuda."""
        return choose_device(name)

    def first(self, work: Callable[[], Value]) -> Value:
        """Let rank 0 alone do something; return what it found, plain values, on every rank.

        If it fails there, the other ranks end without a word of their own.
        """
        return work()

    def gather_numbers(self, *numbers: float) -> list[tuple[float, ...]]:
        """Return the numbers of every rank in order."""
        return [numbers]

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of every rank in order, all of one shape."""
        return [tensor]

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks."""

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Replace the values of tensors by those of rank 0."""


class ProcessGroup(Group):
    """Several ranks, which have joined torch's default process group."""

    def __init__(self, launch: Launch) -> None:
        self.rank, self.size, self._local_rank = launch.rank, launch.size, launch.local_rank
        self._has_begun = False

    def choose_device(self, name: str) -> torch.device:
        """Return the processor, or the GPU of this rank's number on its machine.

        Raises:
            RunError: If some ranks would take a GPU and others not, or a machine has fewer GPUs than ranks.
        """
        kind = choose_device(name).type
        with_gpu = [rank for rank, (has_gpu,) in enumerate(self.gather_numbers(kind == "cuda")) if has_gpu]
        if kind == "cpu" and not with_gpu:
            return torch.device("cpu")
        if len(with_gpu) < self.size:
            raise RunError(
                f"Only {len(with_gpu)} of {self.size} processes found a GPU, the first of them rank {with_gpu[0]}."
                " Use --device cpu, or machines that all have one."
            )
        if self._local_rank >= torch.cuda.device_count():
            raise RunError(
                f"This machine has {torch.cuda.device_count()} GPUs and at least {self._local_rank + 1} processes."
                f" Start it with --nproc-per-node {torch.cuda.device_count()}."
            )
        torch.cuda.set_device(self._local_rank)
        return torch.device("cuda", self._local_rank)

    def begin(self, order: Any) -> None:
        """Tell the waiting ranks, from rank 0, what to do."""
        self._has_begun = True
        self._share({"order": order})

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Let the waiting ranks end, if the block ends before `begin`: well, or with an error that is told here."""
        status = 1
        try:
            yield
            status = 0
        except BaseException as error:
            status = getattr(error, "exit_code", 1)  # click ends commands by an exception, too
            raise
        finally:
            if not self._has_begun:
                with suppress(RuntimeError):
                    self._share({"status": status})

    def wait_for_order(self) -> Any:
        """Return what rank 0 began with; end this process as rank 0 does if it begins nothing."""
        told = self._share(None)
        if "order" not in told:
            raise SystemExit(told["status"])
        return told["order"]

    def first(self, work: Callable[[], Value]) -> Value:  # noqa: D102
        if not self.is_first:
            told = self._share(None)
            if "found" not in told:
                raise SystemExit(1)
            found: Value = told["found"]
            return found
        try:
            found = work()
        except BaseException:
            with suppress(RuntimeError):
                self._share({"failed": True})
            raise
        self._share({"found": found})
        return found

    def _share(self, value: Any) -> Any:
        """Return rank 0's value on every rank, as JSON has it."""
        data = bytearray(json.dumps(value).encode())
        length = torch.tensor(len(data))
        distributed.broadcast(length, 0)
        content = torch.frombuffer(data if self.is_first else bytearray(int(length)), dtype=torch.uint8)
        distributed.broadcast(content, 0)
        return json.loads(content.numpy().tobytes())

    def gather_numbers(self, *numbers: float) -> list[tuple[float, ...]]:  # noqa: D102
        # On the processor also where training is not: nothing is waited for but the numbers.
        return [tuple(told.tolist()) for told in self.gather(torch.tensor(numbers, dtype=torch.float64))]

    def gather(self, tensor: Tensor) -> list[Tensor]:  # noqa: D102
        tensor = tensor.contiguous()
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(gathered, tensor)
        return gathered

    def add_up(self, tensor: Tensor) -> None:  # noqa: D102
        distributed.all_reduce(tensor)

    def broadcast(self, tensors: Iterable[Tensor]) -> None:  # noqa: D102
        for tensor in tensors:
            distributed.broadcast(tensor, 0)


ALONE = Group()


@contextmanager
def joined(launch: Launch) -> Iterator[ProcessGroup]:
    """Join the other ranks for the time of the block; the process group ends with it, however it ends.

    Raises:
        RunError: If the others cannot be reached, or are lost; that of another rank than 0 tells which it is.
    """
    try:
        with _explained(_UNMET):
            _join()
        with _explained(_LOST):
            yield ProcessGroup(launch)
    except ElmoZhError as error:
        if launch.rank == 0:
            raise
        raise RunError(*(f"rank {launch.rank}: {message}" for message in error.messages)) from None
    finally:
        if distributed.is_initialized():
            _ended_groups.append(distributed.group.WORLD)
            distributed.destroy_process_group()


def _join() -> None:
    store, rank, size = next(iter(rendezvous("env://", timeout=_JOINING)))
    has_nccl = torch.cuda.is_available() and distributed.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if has_nccl else "gloo"
    atexit.register(_settle)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_WAITING)


def _settle() -> None:
    """Give gloo's threads the time to let go; a signal that comes now ends a process that is ending."""
    with suppress(SystemExit, KeyboardInterrupt):
        time.sleep(_SETTLING_SECONDS)


@contextmanager
def _explained(message: str) -> Iterator[None]:
    """Turn errors of the connection into a RunError; those of gloo have no class of their own."""
    try:
        yield
    except RuntimeError as error:
        if not (isinstance(error, distributed.DistError) or "gloo" in str(error) or "NCCL" in str(error)):
            raise
        first_sentence = " ".join(str(error).split()).split(". ")[0].rstrip(".")
        # Without the place in gloo's source that it starts with.
        detail = re.sub(r"^\[\S+] ", "", first_sentence)[:200]
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise RunError(message.format(detail=detail, address=address)) from None
