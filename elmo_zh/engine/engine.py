"""Engines run independent tasks in this process, or in worker processes that load large values once."""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar, TypeVarTuple

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.errors import CorpusError

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs independent tasks.

    A task may run more than once, on this machine or another, even at the same time, if an engine mistakes a living
    worker for a dead one. So a task must write the same files each time, and give a file its name only when the file
    is complete (`files.written_once`).
    """

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Do `work` on tasks, read one by one, and yield each task with its result as soon as it finishes."""


class ThisProcess:
    """An `Engine` that runs tasks one after another in this process."""

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:  # noqa: D102
        for task in tasks:
            yield task, work(task)


# Give up after this many deaths of workers with no finished task in between.
_MOST_DEATHS = 3


class Workers(Protocol):
    """Provides a pool of workers as an executor."""

    def executor(self) -> Executor:
        """Return the running executor, starting one if needed."""

    def discard(self) -> None:
        """Forget the running executor after its workers have died."""


def run_tasks(
    workers: Workers, num_ahead: int, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[tuple[Task, Result]]:
    """Do `work` on tasks, and yield each task with its result as it finishes; repeat tasks whose worker died."""
    upcoming = iter(tasks)
    submitted: dict[Future[Result], Task] = {}
    again: list[Task] = []
    num_deaths = 0
    while True:
        tasks_now = [*again, *islice(upcoming, max(0, num_ahead - len(submitted) - len(again)))]
        again = _submit(workers.executor(), work, tasks_now, submitted)
        if not submitted and not again:
            return
        done, _ = wait(submitted, return_when=FIRST_COMPLETED)
        for future in done:
            task = submitted.pop(future)
            try:
                result = future.result()
            except BrokenExecutor:
                again.append(task)
            else:
                num_deaths = 0
                yield task, result
        if again:
            again += submitted.values()
            submitted.clear()
            workers.discard()
            num_deaths += 1
            if num_deaths == _MOST_DEATHS:
                raise CorpusError(
                    "Worker processes were killed three times in a row, perhaps because memory ran out."
                    " Run the command again with fewer workers: --set text.num_workers=1"
                )


def _submit(
    executor: Executor, work: Callable[[Task], Result], tasks: list[Task], submitted: dict[Future[Result], Task]
) -> list[Task]:
    """Submit tasks; return those that could not be submitted because the workers have died."""
    for number, task in enumerate(tasks):
        try:
            submitted[executor.submit(work, task)] = task
        except BrokenExecutor:
            return tasks[number:]
    return []


@contextmanager
def worker_processes(num_workers: int) -> Iterator[Engine]:
    """Yield an engine of `num_workers` processes; they end with the block, or immediately if it fails."""
    processes = _Processes(num_workers)
    try:
        yield processes
    except BaseException:
        # Ctrl-C or a failed task: do not wait for the other tasks, which may take a long time.
        processes.stop()
        raise
    finally:
        processes.discard()


_MOST_ON_WINDOWS = 61  # which waits for no more processes at a time


class _Processes:
    def __init__(self, num_workers: int) -> None:
        self._num_workers = min(num_workers, _MOST_ON_WINDOWS) if sys.platform == "win32" else num_workers
        self._children_of_others = set(active_children())
        self._executor: ProcessPoolExecutor | None = None

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        # One task more than there are workers, so that a free worker finds its next task waiting.
        return run_tasks(self, self._num_workers + 1, work, tasks)

    def executor(self) -> ProcessPoolExecutor:
        if self._executor is None:
            _start_tracker()
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


def _start_tracker() -> None:
    """Start Python's semaphore tracker so that closing the terminal does not end it before this process."""
    if not hasattr(signal, "SIGHUP"):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # which the new process inherits
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


def _start_worker() -> None:
    # As in the main process: otherwise, Python looks for garbage among all imported modules at exit.
    atexit.register(gc.freeze)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the main process, which ends its workers
    main = parent_process()
    if main is not None:
        threading.Thread(target=_end_after, args=(main,), daemon=True).start()


def _end_after(main: BaseProcess) -> None:
    """End this worker once the main process has ended, even if it was killed."""
    main.join()
    os._exit(1)


Values = TypeVarTuple("Values")
# How a value is made: a function and its arguments, as `__reduce__` returns them; None stands for None.
_Recipe = tuple[Any, tuple[Any, ...]] | None

# A worker keeps this many sets of values, for the two commands that used it last.
_MOST_KEPT = 2
_turn = threading.RLock()


class LoadedOnce(Generic[*Values]):
    """Values that a worker loads on first use and then keeps, however many tasks need them.

    Tasks carry a recipe for each value: the result of its `__reduce__`, such as a function and the folder and digest
    of a model. The arguments must be hashable.
    """

    def __init__(self, *values: *Values) -> None:
        self._values: tuple[*Values] | None = values
        self._recipes: tuple[_Recipe, ...] | None = None

    def __getstate__(self) -> tuple[_Recipe, ...]:
        if self._values is None:
            assert self._recipes is not None
            return self._recipes
        return tuple(None if value is None else _recipe(value) for value in self._values)

    def __setstate__(self, recipes: tuple[_Recipe, ...]) -> None:
        # Not loaded here: schedulers unpickle tasks too.
        self._values, self._recipes = None, recipes

    @contextmanager
    def used(self) -> Iterator[tuple[*Values]]:
        """Yield the values, loaded on first use, to one thread of a process at a time."""
        with _turn:
            yield _loaded(self._recipes) if self._values is None else self._values


def _recipe(value: object) -> _Recipe:
    reduced: Any = value.__reduce__()
    function, arguments = reduced
    return function, arguments


@lru_cache(maxsize=_MOST_KEPT)
def _loaded(recipes: tuple[_Recipe, ...]) -> Any:
    keep_freed_memory()
    return tuple(None if recipe is None else recipe[0](*recipe[1]) for recipe in recipes)
