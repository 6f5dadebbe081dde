"""Values computed part by part, and received in order: see `WorkFolder.compute`."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from elmo_zh.engine.engine import Engine
from elmo_zh.run.work_folder import Kept, PartTask, PartWork, Task, Value, WorkFolder

__all__ = ["PartTask", "compute_in_order"]


def compute_in_order(
    engine: Engine, work: PartWork[Task, Value], tasks: Iterable[PartTask[Task, Kept]], folder: Path | None
) -> Iterator[tuple[Kept, Value]]:
    """Yield what is kept of each task with its value, in the order of the tasks; without a folder in this process."""
    if folder is None:
        yield from ((each.kept, work.compute(each.task)) for each in tasks)
    else:
        yield from WorkFolder(folder).compute(engine, work, tasks)
