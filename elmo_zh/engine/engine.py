"""Compute independent tasks with a `concurrent.futures.Executor`: in this process, in others, or on a cluster."""

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.errors import ClusterError
from elmo_zh.language import _

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")

# Give up after this many deaths of workers with no finished task in between.
_MOST_DEATHS = 3
# A worker keeps this many values that tasks share, for the two steps that used one last.
_MOST_KEPT = 2
_turn = threading.RLock()


class Engine:
    """Runs tasks on the workers of an executor, and starts another executor if they die.

    A task may run more than once, even at the same time. So it must write the same files each time, and give a file its
    name only when the file is complete.
    """

    def __init__(self, start: Callable[[], Executor], *, num_ahead: int) -> None:
        """Start executors with `start`, and submit `num_ahead` tasks at a time."""
        self._start, self._num_ahead = start, num_ahead
        self._executor: Executor | None = None

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Do `work` on tasks, read one by one, and yield each task with its result as soon as it finishes."""
        upcoming, num_deaths = iter(tasks), 0
        submitted: dict[Future[Result], Task] = {}
        waiting: list[Task] = []
        while True:
            waiting += islice(upcoming, max(0, self._num_ahead - len(submitted) - len(waiting)))
            try:
                self._executor = self._executor or self._start()
                while waiting:
                    submitted[self._executor.submit(work, waiting[0])] = waiting[0]
                    del waiting[0]
                if not submitted:
                    return
                for future in wait(submitted, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    num_deaths = 0
                    yield submitted.pop(future), result
            except BrokenExecutor:
                waiting += submitted.values()
                submitted.clear()
                self.close()
                num_deaths += 1
                if num_deaths == _MOST_DEATHS:
                    raise ClusterError(
                        _(
                            "Worker processes were killed three times in a row, perhaps because memory ran out."
                            " Run the command again with fewer workers: --set text.num_workers=1"
                        )
                    ) from None

    def close(self, *, at_once: bool = False) -> None:
        """End the workers, `at_once` even if they have not finished their tasks."""
        executor, self._executor = self._executor, None
        if at_once and isinstance(executor, ProcessPoolExecutor):
            for process in list((executor._processes or {}).values()):
                process.terminate()
            # If a task does not fit into the pipe to the workers, the thread that writes it would wait forever, and
            # this process could not exit. Python 3.12 closes the pipe itself (python/cpython#94777).
            executor._call_queue._reader.close()  # type: ignore[attr-defined]
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)


class _InThisProcess(Executor):
    def submit(self, work: Callable[..., Result], /, *args: Any, **named: Any) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(work(*args, **named))
        return future


class ThisProcess(Engine):
    """Runs tasks one after another in this process."""

    def __init__(self) -> None:
        """Start nothing."""
        super().__init__(_InThisProcess, num_ahead=1)


@contextmanager
def worker_processes(num_workers: int) -> Iterator[Engine]:
    """Yield an engine of `num_workers` processes; they end with the block, or immediately if it fails."""

    def start() -> Executor:
        return ProcessPoolExecutor(num_workers, get_context("spawn"), initializer=_start_worker)

    # One task more than there are workers, so that a free worker finds its next task waiting.
    engine = Engine(start, num_ahead=num_workers + 1)
    try:
        yield engine
    except BaseException:
        # Ctrl-C or a failed task: do not wait for the other tasks, which may take a long time.
        engine.close(at_once=True)
        raise
    engine.close()


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the main process, which ends its workers
    main = parent_process()
    if main is not None:
        threading.Thread(target=_end_after, args=(main,), daemon=True).start()


def _end_after(main: BaseProcess) -> None:
    """End this worker once the main process has ended, even if it was killed."""
    main.join()
    os._exit(1)


class Shared(Generic[Value]):
    """A value that many tasks share, such as work that needs a model: a worker unpickles it once, on first use."""

    def __init__(self, value: Value) -> None:
        self._value: Value | None = value
        self._pickled = b""

    def __getstate__(self) -> bytes:
        self._pickled = self._pickled or pickle.dumps(self._value)
        return self._pickled

    def __setstate__(self, pickled: bytes) -> None:
        # Not unpickled here: schedulers read tasks too.
        self._value, self._pickled = None, pickled

    @contextmanager
    def used(self) -> Iterator[Value]:
        """Yield the value to one thread of a process at a time."""
        with _turn:
            yield _unpickled(self._pickled) if self._value is None else self._value


@lru_cache(maxsize=_MOST_KEPT)
def _unpickled(pickled: bytes) -> Any:
    keep_freed_memory()
    return pickle.loads(pickled)  # noqa: S301 (from the process that submits the tasks)
