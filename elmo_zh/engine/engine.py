"""The interface of engines, and the engine that uses this process only."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs tasks that do not depend on each other.

    A task may run more than once, on this machine or another, even at the same time, if an engine takes a living worker
    for dead. So a task must write the same files each time, and give each its name only when it is complete
    (`files.written_once`).
    """

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Yield each task with the result of `work`, in the order in which tasks finish.

        Args:
            work: Function at the top level of a module, so that workers can import it.
            tasks: Small values that can be pickled; taken from the iterable only as workers become free.
        """


class ThisProcess:
    """An `Engine` that runs one task after another in this process."""

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:  # noqa: D102
        for task in tasks:
            yield task, work(task)
