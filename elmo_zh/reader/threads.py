"""Run NumPy work in several threads, each with products on its own core."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

# The limit of BLAS is one for the process. If two threads set and restored it crosswise, it would stay at 1 for good.
_turn = threading.Lock()


def num_threads() -> int:
    """Return how many threads to use: OMP_NUM_THREADS, as for all numerical libraries, else one per core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else cores


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads(count: int) -> Iterator[Callable[[list[Callable[[], Result]]], list[Result]]]:
    """Yield a function that runs tasks in up to `count` threads and returns their results in order.

    Each product runs on one thread, whatever the number of threads, so that results do not depend on it. Callers in
    several threads take turns.
    """
    with _turn, _controller().limit(limits=1, user_api="blas"):
        if count == 1:
            yield lambda tasks: [task() for task in tasks]
        else:
            with ThreadPoolExecutor(count) as pool:
                yield lambda tasks: list(pool.map(lambda task: task(), tasks))
