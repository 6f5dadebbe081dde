"""Run kernels on a processor: time loops compiled by TorchScript, and two tasks on half of the cores each."""

import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")

_compilation_lock = threading.Lock()
_helper: ThreadPoolExecutor | None = None


def scripted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function compiled by TorchScript, or unchanged where TorchScript is no longer available.

    A time loop is hundreds of short operations. Compiled, it runs without Python's lock, so that two directions on two
    threads do not keep each other waiting: an eighth of a training step. torch calls TorchScript deprecated, but its
    successor needs a C++ compiler on the machine.
    """
    # Both directions ask at the same time: one compiles, and no other thread's warning filters change meanwhile.
    with _compilation_lock:
        return _compile(function)


@functools.cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            compiled: Callable[..., Any] = torch.jit.script(function)
        except (AttributeError, RuntimeError):
            return function
    return compiled


class _Share(threading.local):
    """Number of threads that this thread and the helper may use together; 0 outside `with_half_of_the_threads`."""

    both: int = 0


_share = _Share()


@contextmanager
def with_half_of_the_threads() -> Iterator[None]:
    """Let this thread compute with half of torch's threads; only `side_by_side` uses the other half too.

    Between its calls a training step is hundreds of short operations. If they ran on all threads, each would wait for
    the slowest one: for milliseconds, if another program has that one's core. On two cores, half of the threads are no
    slower for them.
    """
    threads = _share.both or torch.get_num_threads()  # within another call of this function nothing changes
    with _computing_with(max(1, threads // 2), both=threads):
        yield


@contextmanager
def _computing_with(threads: int, both: int) -> Iterator[None]:
    """Set this thread's number of torch's threads, and what `side_by_side` may use, for a while."""
    threads_before, both_before = torch.get_num_threads(), _share.both
    torch.set_num_threads(threads)
    _share.both = both
    try:
        yield
    finally:
        torch.set_num_threads(threads_before)
        _share.both = both_before


def side_by_side(work: Callable[[int], Result]) -> tuple[Result, Result]:
    """Return work(0) and work(1), such as the two directions, computed at the same time; without a gradient.

    Each has half of torch's threads. On two cores every operation then runs on one thread, which finds the result of
    the previous operation in that core's cache and never waits for the other core. If another program keeps the second
    half from starting until the first one is done, this thread computes both; the results are the same.
    """
    threads, is_inference = _share.both or torch.get_num_threads(), torch.is_inference_mode_enabled()

    # torch's settings belong to a thread; they do not reach the helper's.
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
    """Prepare a forked process, which has only the thread that forked, for computing.

    A lock that another thread held would never be released, and GNU OpenMP would wait for threads that do not exist.
    """
    global _helper, _compilation_lock
    _helper, _compilation_lock = None, threading.Lock()
    _share.both = 0
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_compute_alone)
