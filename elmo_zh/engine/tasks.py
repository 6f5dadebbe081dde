"""Tasks on a `concurrent.futures.Executor` that may lose its workers."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from itertools import islice
from typing import Protocol, TypeVar

from elmo_zh.errors import CorpusError

Task = TypeVar("Task")
Result = TypeVar("Result")

# Deaths of workers in a row without one task that came to its end.
_MOST_DEATHS = 3


class Workers(Protocol):
    """What starts executors."""

    def executor(self) -> Executor:
        """Return the running executor, started if there is none."""

    def discard(self) -> None:
        """Forget the running executor, whose workers have died."""


def run_tasks(
    workers: Workers, num_ahead: int, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result as they come to an end, doing again what died with a worker.

    Args:
        workers: Where to run them.
        num_ahead: Tasks that are given to the executor at the same time, waiting ones included.
        work: What to do with a task.
        tasks: The tasks.

    Raises:
        CorpusError: If workers die three times without one task done in between.
    """
    upcoming = iter(tasks)
    given: dict[Future[Result], Task] = {}
    again: list[Task] = []
    num_deaths = 0
    while True:
        tasks_now = [*again, *islice(upcoming, max(0, num_ahead - len(given) - len(again)))]
        again = _give(workers.executor(), work, tasks_now, given)
        if not given and not again:
            return
        done, _ = wait(given, return_when=FIRST_COMPLETED)
        for future in done:
            task = given.pop(future)
            try:
                result = future.result()
            except BrokenExecutor:
                again.append(task)
            else:
                num_deaths = 0
                yield task, result
        if again:
            again += given.values()
            given.clear()
            workers.discard()
            num_deaths += 1
            if num_deaths == _MOST_DEATHS:
                raise CorpusError(
                    "Worker processes were killed again and again, perhaps for lack of memory. Type the command again"
                    " with fewer of them: --set text.num_workers=1"
                )


def _give(
    executor: Executor, work: Callable[[Task], Result], tasks: list[Task], given: dict[Future[Result], Task]
) -> list[Task]:
    """Submit tasks; return those that could not be submitted, the workers being dead."""
    for number, task in enumerate(tasks):
        try:
            given[executor.submit(work, task)] = task
        except BrokenExecutor:
            return tasks[number:]
    return []
