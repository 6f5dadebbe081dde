"""Worker processes on this machine."""

import atexit
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import TypeVar

from elmo_zh.engine.engine import Engine
from elmo_zh.engine.tasks import run_tasks

Task = TypeVar("Task")
Result = TypeVar("Result")


@contextmanager
def worker_processes(num_workers: int) -> Iterator[Engine]:
    """Yield an engine of `num_workers` processes; they end with the block, and immediately if it fails."""
    processes = _Processes(num_workers)
    try:
        yield processes
    except BaseException:
        # Ctrl-C or a failed task: do not wait for the other tasks, which may take long.
        processes.stop()
        raise
    finally:
        processes.discard()


class _Processes:
    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self._children_of_others = set(active_children())
        self._executor: ProcessPoolExecutor | None = None

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        # One task more than there are workers, so that a free worker finds its next task waiting.
        return run_tasks(self, self._num_workers + 1, work, tasks)

    def executor(self) -> ProcessPoolExecutor:
        if self._executor is None:
            context = get_context("spawn")
            self._executor = ProcessPoolExecutor(self._num_workers, context, initializer=_start_worker)
        return self._executor

    def stop(self) -> None:
        for child in set(active_children()) - self._children_of_others:
            child.terminate()
        # If a task does not fit into the pipe to the workers, the thread that writes it would wait forever, and this
        # process could not exit because of that thread. Python 3.12 closes the pipe itself (python/cpython#94777).
        queue = getattr(self._executor, "_call_queue", None)
        if queue is not None:
            queue._reader.close()

    def discard(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None


def _start_worker() -> None:
    # As in the main process: at the end Python would look for garbage among all that was imported.
    atexit.register(gc.freeze)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the main process, which ends its workers
    main = parent_process()
    if main is not None:
        threading.Thread(target=_end_after, args=(main,), daemon=True).start()


def _end_after(main: BaseProcess) -> None:
    """End this worker when the main process has ended, even if that was killed."""
    main.join()
    os._exit(1)
