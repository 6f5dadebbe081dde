"""Compile kernels, and run two tasks or two halves of some rows side by side on a CPU."""

import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor

from elmo_zh.model.kernels.products import give_up

Result = TypeVar("Result")

_helper: ThreadPoolExecutor | None = None


class _Share(threading.local):
    """The number of threads that this thread and its helper may use together; 0 stands for torch's thread count."""

    both: int = 0


_share = _Share()


@contextmanager
def with_half_of_the_threads() -> Iterator[None]:
    """Limit this thread to half of torch's threads; only `side_by_side` uses the other half as well.

    With all threads, each of a training step's hundreds of short operations would wait for the slowest thread: for
    milliseconds, if another program occupies its core. On two cores, one thread is no slower.
    """
    threads = _share.both or torch.get_num_threads()  # within another call of this function nothing changes
    with _computing_with(max(1, threads // 2), both=threads):
        yield


@contextmanager
def _computing_with(threads: int, both: int) -> Iterator[None]:
    """Set torch's thread count for this thread and for `side_by_side` during the block."""
    threads_before, both_before = torch.get_num_threads(), _share.both
    torch.set_num_threads(threads)
    _share.both = both
    try:
        yield
    finally:
        torch.set_num_threads(threads_before)
        _share.both = both_before


def side_by_side(work: Callable[[int], Result]) -> tuple[Result, Result]:
    """Return work(0) and work(1), such as the two directions, computed in parallel, without gradients.

    Each has half of torch's threads, so that on two cores no operation waits for the other core. This thread computes
    both if torch has only one thread, or if another program keeps the second from starting before the first is done.
    """
    threads, is_inference = _share.both or torch.get_num_threads(), torch.is_inference_mode_enabled()

    # torch's settings belong to each thread, so they are repeated in the helper thread.
    def compute(half: int) -> Result:
        with _computing_with(max(1, threads // 2), both=0), torch.inference_mode(is_inference), torch.no_grad():
            return work(half)

    if threads == 1:
        return compute(0), compute(1)
    second = _get_helper().submit(compute, 1)
    try:
        first = compute(0)
        return first, compute(1) if second.cancel() else second.result()
    finally:
        if not second.cancel():
            second.exception()  # waits, so that an error is raised only after the other half has stopped


def _get_helper() -> ThreadPoolExecutor:
    global _helper
    if _helper is None:
        _helper = ThreadPoolExecutor(1, thread_name_prefix="side-by-side")
    return _helper


def _compute_alone() -> None:
    """Make a forked process compute on one thread: it lacks the threads that hold locks or work for GNU OpenMP."""
    global _helper, _compilation_lock
    _helper, _compilation_lock = None, threading.Lock()
    _share.both = 0
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_compute_alone)


_compilation_lock = threading.Lock()
_CPU = torch.device("cpu")


def scripted(function: Callable[..., Any], device: torch.device = _CPU) -> Callable[..., Any]:
    """Return the function, compiled by TorchScript if it runs on a CPU and can be; only one thread compiles at a time.

    A time loop is hundreds of short operations. Compiled, it runs without Python's lock, so that two directions on two
    threads do not keep each other waiting: this saves up to an eighth of a training step. `torch.jit.script` is public,
    but deprecated; its successor, torch.compile, needs a C++ compiler on the user's machine.
    """
    if device.type != "cpu":
        return function
    with _compilation_lock:
        return _compile(function)


@functools.cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            compiled: Callable[..., Any] = torch.jit.script(function)
            return compiled
        except (AttributeError, RuntimeError) as error:
            problem = str(error)
    give_up("TorchScript functions", problem)
    return function


RowFunction = Callable[[slice], Tensor]


def compute_in_halves(function: RowFunction, num_rows: int, parameters: Sequence[Tensor]) -> Tensor:
    """Return function(all rows), computing each half of the rows on half of the cores, forward and backward.

    A single thread computes the halves too, one after the other, so that it gives the same results as two threads.
    `function` computes the results of a slice of the rows, each from its own row alone. Only `parameters`
    receive a gradient.
    """
    if num_rows < 2:
        return function(slice(0, num_rows))
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if not (torch.is_grad_enabled() and trained):
        return torch.cat(side_by_side(lambda half: function(_rows_of(half, num_rows))))
    found: Tensor = _Halves.apply(function, num_rows, *trained)  # type: ignore[no-untyped-call]
    return found


def _rows_of(half: int, num_rows: int) -> slice:
    middle = (num_rows + 1) // 2
    return slice(middle, num_rows) if half else slice(0, middle)


class _Halves(torch.autograd.Function):
    """Two halves of the rows, each with its own autograd graph, so that their backward passes run side by side too."""

    @staticmethod
    def forward(ctx: Any, function: RowFunction, num_rows: int, *parameters: Tensor) -> Tensor:
        def compute(half: int) -> Tensor:
            with torch.enable_grad():
                return function(_rows_of(half, num_rows))

        ctx.halves, ctx.parameters = side_by_side(compute), parameters
        return torch.cat([half.detach() for half in ctx.halves])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        def differentiate(half: int) -> tuple[Tensor | None, ...]:
            d_rows = gradients[0][_rows_of(half, len(gradients[0]))]
            # The graph lives as long as this operation, which may be differentiated more than once.
            given: tuple[Tensor | None, ...] = torch.autograd.grad(
                ctx.halves[half], ctx.parameters, d_rows, retain_graph=True, allow_unused=True
            )
            return given

        first, second = side_by_side(differentiate)
        return None, None, *(_add(*pair) for pair in zip(first, second, strict=True))


def _add(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    return right if left is None else left if right is None else left + right
