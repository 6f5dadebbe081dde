"""The process group: the ranks that train one model together, and the collective operations between them.

Ranks are connected by gloo between CPUs and by NCCL between GPUs. All ranks must make the same collective calls in the
same order.
"""

import atexit
import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.distributed.rendezvous import rendezvous

from elmo_zh.errors import ElmoZhError, RunError
from elmo_zh.language import _
from elmo_zh.model.precision import choose_device
from elmo_zh.training import Launch

# How long to wait for a rank that never joins, and for an operation of ranks that have joined: the others wait while
# rank 0 counts bigrams or saves. Nobody waits for a rank that has died, because its connections close with it.
_JOIN_TIMEOUT, _OPERATION_TIMEOUT = timedelta(minutes=10), timedelta(hours=2)

# gloo's threads need Python's global lock to release the tensors that they sent last. Destroying a process group waits
# for these threads, and may hold that lock while it waits. So the group object is destroyed late, after the threads
# have had time to finish, and Python must not exit before that either.
_SETTLING_SECONDS = 0.2
_ended_groups: list[Any] = []

Value = TypeVar("Value")


class ProcessGroup:
    """The `size` ranks of a training run, counted from 0; only rank 0 reports and writes files.

    Several ranks communicate through torch's default process group, which they have joined. A single rank needs none.
    """

    def __init__(self, launch: Launch) -> None:
        self.rank, self.size, self._local_rank = launch.rank, launch.size, launch.local_rank
        self._has_started = False

    @property
    def is_rank_0(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    def slice_of(self, total: int) -> range:
        """Return this rank's slice of `total` streams; slices are consecutive, and equal if `size` divides `total`."""
        return range(self.rank * total // self.size, (self.rank + 1) * total // self.size)

    def choose_device(self, name: str) -> torch.device:
        """Choose this rank's device for auto, cpu or cuda; its local rank selects one of several GPUs."""
        device = choose_device(name)
        if self.size == 1:
            return device
        num_gpus = torch.cuda.device_count() if device.type == "cuda" else 0
        have_gpu = [has_gpu for (has_gpu,) in self.all_gather_numbers(self._local_rank < num_gpus)]
        if not any(have_gpu):
            return device
        if not all(have_gpu):
            message = _("There are more processes than GPUs. Start one process per GPU, or use --device cpu.")
            raise RunError(message)
        torch.cuda.set_device(self._local_rank)
        return torch.device("cuda", self._local_rank)

    def start_training(self, description: Any) -> None:
        """On rank 0, send the waiting ranks a description of the training that is about to start."""
        self._has_started = True
        self.broadcast_value({"value": description})

    @contextmanager
    def release_waiting_ranks(self) -> Iterator[None]:
        """If the block on rank 0 ends before `start_training`, make the waiting ranks exit with the same status."""
        status = 1
        try:
            yield
            status = 0
        except BaseException as error:
            status = getattr(error, "exit_code", 1)  # click ends commands by an exception, too
            raise
        finally:
            if not self._has_started:
                self._end_others(status)

    def _end_others(self, status: int) -> None:
        with suppress(RuntimeError):
            self.broadcast_value({"status": status})

    def receive(self) -> Any:
        """Wait for a value from rank 0 and return it; exit with the status that rank 0 sends if there will be none."""
        message = self.broadcast_value(None)
        if "value" not in message:
            raise SystemExit(message["status"])
        return message["value"]

    def on_rank_0(self, work: Callable[[], Value]) -> Value:
        """Run `work` on rank 0 only; return its JSON result on every rank. If it fails, other ranks exit silently."""
        if not self.is_rank_0:
            received: Value = self.receive()
            return received
        try:
            result = work()
        except BaseException:
            self._end_others(1)
            raise
        self.broadcast_value({"value": result})
        return result

    def broadcast_value(self, value: Any) -> Any:
        """Return rank 0's value on every rank; it must be a JSON value."""
        if self.size == 1:
            return value
        data = bytearray(json.dumps(value).encode())
        length = torch.tensor(len(data))
        distributed.broadcast(length, 0)
        content = torch.frombuffer(data if self.is_rank_0 else bytearray(int(length)), dtype=torch.uint8)
        distributed.broadcast(content, 0)
        return json.loads(content.numpy().tobytes())

    def all_gather_numbers(self, *numbers: float) -> list[tuple[float, ...]]:
        """Return the numbers of all ranks, by rank."""
        # On the CPU, even when training on a GPU, so that this waits for nothing but the numbers.
        return [tuple(row.tolist()) for row in self.all_gather(torch.tensor(numbers, dtype=torch.float64))]

    def all_gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all ranks, by rank; they must have the same shape."""
        if self.size == 1:
            return [tensor]
        tensor = tensor.contiguous()
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        distributed.all_gather(gathered, tensor)
        return gathered

    def all_reduce(self, tensor: Tensor) -> None:
        """Replace a tensor with its sum over all ranks."""
        if self.size > 1:
            distributed.all_reduce(tensor)

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors on every rank with rank 0's values."""
        for tensor in tensors if self.size > 1 else ():
            distributed.broadcast(tensor, 0)


SINGLE_PROCESS = ProcessGroup(Launch())


@contextmanager
def joined_process_group(launch: Launch) -> Iterator[ProcessGroup]:
    """Join the process group for the block; raise RunError for a lost connection or, above rank 0, any ElmoZhError."""
    try:
        _join()
        yield ProcessGroup(launch)
    except RuntimeError as error:  # gloo has no error class of its own
        if not (isinstance(error, distributed.DistError) or "gloo" in str(error) or "NCCL" in str(error)):
            raise
        detail = " ".join(str(error).split()).split(". ")[0][:200]
        message = _("Lost the other training processes ({detail}). The same commands resume from the last checkpoint.")
        raise RunError(message.format(detail=detail)) from None
    except ElmoZhError as error:
        if launch.rank == 0:
            raise
        raise RunError(*(f"rank {launch.rank}: {message}" for message in error.messages)) from None
    finally:
        if distributed.is_initialized():
            _ended_groups.append(distributed.group.WORLD)
            distributed.destroy_process_group()


def _join() -> None:
    store, rank, size = next(iter(rendezvous("env://", timeout=_JOIN_TIMEOUT)))
    has_nccl = torch.cuda.is_available() and distributed.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if has_nccl else "gloo"
    atexit.register(_settle)
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_OPERATION_TIMEOUT)


def _settle() -> None:
    """Give gloo's threads time to finish; ignore signals meanwhile, since the process is exiting anyway."""
    with suppress(SystemExit, KeyboardInterrupt):
        time.sleep(_SETTLING_SECONDS)


@torch.no_grad()
def average_gradients(parameters: Iterable[nn.Parameter], group: ProcessGroup) -> None:
    """Replace each parameter's gradient, which is sparse on all ranks or on none, with its mean over the ranks."""
    for parameter in parameters if group.size > 1 else ():
        if parameter.grad is not None:
            # gloo sums sparse tensors, in the order of the ranks; NCCL does not.
            gradient = parameter.grad.coalesce().cpu() if parameter.grad.is_sparse else parameter.grad
            group.all_reduce(gradient)
            parameter.grad = gradient.to(parameter.device).div_(group.size)
