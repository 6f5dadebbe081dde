"""Two like pieces of work, such as the two directions, each on its own half of the processor's cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")

_helper: ThreadPoolExecutor | None = None


def side_by_side(work: Callable[[int], Result]) -> tuple[Result, Result]:
    """Return work(0) and work(1), computed at the same time; without a gradient.

    Each has half of torch's threads. On two cores every operation then runs on one thread, which finds what the one
    before it left in that core's cache and never waits for the other.
    """
    threads, is_inference = torch.get_num_threads(), torch.is_inference_mode_enabled()

    # What torch sets for a thread does not reach the helper's.
    def with_half_of_the_threads(piece: int) -> Result:
        torch.set_num_threads(max(1, threads // 2))
        with torch.inference_mode(is_inference), torch.no_grad():
            return work(piece)

    if threads == 1:
        return with_half_of_the_threads(0), with_half_of_the_threads(1)
    second = _get_helper().submit(with_half_of_the_threads, 1)
    try:
        first = with_half_of_the_threads(0)
    finally:
        second.exception()  # waits, so that nothing is at work any more when an error goes on its way
        torch.set_num_threads(threads)
    return first, second.result()


def _get_helper() -> ThreadPoolExecutor:
    global _helper
    if _helper is None:
        _helper = ThreadPoolExecutor(1, thread_name_prefix="side-by-side")
    return _helper


def _forget_helper() -> None:
    """A forked process has no threads but the one that forked."""
    global _helper
    _helper = None


os.register_at_fork(after_in_child=_forget_helper)
