"""What a stage needs of an engine, and the engine that is this process."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs tasks that do not depend on each other.

    A task may run more than once, here or on another machine, also at the same time, where a worker was thought dead.
    So a task's files get their names only when they are whole (`files.written_once`), and equal ones each time.
    """

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Yield each task with what `work` made of it, as they come to an end.

        Args:
            work: A function at the top of a module, which workers import by its name.
            tasks: Small values that can be pickled; taken as workers become free, never many ahead.

        Raises:
            CorpusError: If workers die again and again. What `work` raises is raised here.
        """


class ThisProcess:
    """Runs one task after another right here; its methods are those of `Engine`."""

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:  # noqa: D102
        for task in tasks:
            yield task, work(task)
