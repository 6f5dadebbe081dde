"""Running tasks on a `concurrent.futures.Executor` whose workers may die."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from itertools import islice
from typing import Protocol, TypeVar

from elmo_zh.errors import CorpusError

Task = TypeVar("Task")
Result = TypeVar("Result")

# Give up after this many deaths of workers with no finished task in between.
_MOST_DEATHS = 3


class Workers(Protocol):
    """Provides executors."""

    def executor(self) -> Executor:
        """Return the running executor; start one if there is none."""

    def discard(self) -> None:
        """Forget the running executor, whose workers have died."""


def run_tasks(
    workers: Workers, num_ahead: int, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result in the order in which tasks finish; repeat tasks whose worker died."""
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
    """Submit tasks; return those that could not be submitted because the workers are dead."""
    for number, task in enumerate(tasks):
        try:
            submitted[executor.submit(work, task)] = task
        except BrokenExecutor:
            return tasks[number:]
    return []
