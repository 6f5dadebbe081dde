"""Values computed part by part, and received in order: computed here, or by workers, which leave them as files."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.engine.parts import Figures, PartWriter, is_intact, remove_part, run_parts_in_order

Task = TypeVar("Task")
Kept = TypeVar("Kept")
Value = TypeVar("Value")
Given = TypeVar("Given", contravariant=True)

_SUFFIX = "value"


class PartWork(Protocol[Given, Value]):
    """Computes the value of a task, the same bits each time. Workers unpickle it."""

    def compute(self, task: Given) -> Value:
        """Return the value of a task."""

    def save(self, value: Value, path: Path) -> None:
        """Write a value into a new file of exactly this name."""

    def load(self, path: Path) -> Value:
        """Read a value from a file that `save` wrote."""


@dataclass(frozen=True)
class PartTask(Generic[Task, Kept]):
    """A part to compute.

    Attributes:
        name: Name of the part, the same whenever the same part is computed.
        task: What a worker needs: lines of text, for example.
        kept: What stays here and comes back with the value.
    """

    name: str
    task: Task
    kept: Kept


def compute_in_order(
    engine: Engine, work: PartWork[Task, Value], tasks: Iterable[PartTask[Task, Kept]], folder: Path | None
) -> Iterator[tuple[Kept, Value]]:
    """Yield what is kept of each task with its value, in the order of the tasks.

    In this process a task is computed when its turn comes. Workers compute tasks ahead, in any order, and leave the
    values as files in the folder. A file is removed once its value has been used; those that an interrupted command has
    left are used when it resumes, on any engine.

    Args:
        engine: Engine that runs the tasks.
        work: How values are computed, written and read.
        tasks: The tasks, taken as workers become free.
        folder: Folder that all workers see. Its files have to be removed if other tasks get the same names. None if
            there is no such folder, for this process only.

    Raises:
        ClusterError: If workers die repeatedly, or their files do not become visible here.
    """
    if isinstance(engine, ThisProcess):
        for each in tasks:
            if folder is not None and is_intact(folder, each.name):
                yield each.kept, _load(work, folder, each.name)
                remove_part(folder, each.name)
            else:
                yield each.kept, work.compute(each.task)
        return
    assert folder is not None
    waiting: deque[Kept] = deque()

    def iter_named() -> Iterator[tuple[str, Task]]:
        for each in tasks:
            waiting.append(each.kept)
            yield each.name, each.task

    for name, _ in run_parts_in_order(engine, _Saved(work), iter_named(), folder):
        yield waiting.popleft(), _load(work, folder, name)
        remove_part(folder, name)


def _load(work: PartWork[Any, Value], folder: Path, name: str) -> Value:
    return work.load(folder / f"{name}.{_SUFFIX}")


@dataclass(frozen=True)
class _Saved:
    """Work as `run_parts_in_order` takes it: the value of a task becomes the file of a part."""

    work: PartWork[Any, Any]

    def __call__(self, task: Any, writer: PartWriter) -> Figures:
        value = self.work.compute(task)
        with writer.file(_SUFFIX) as unfinished:
            self.work.save(value, unfinished)
        return {}
