"""Parts of a stage's work on disk: what has come to its end is not done again after the stage was killed.

A task makes files `NAME.SUFFIX` in the folder of parts and, when all are whole, `NAME.json` with their sizes and the
figures that it returns. It may run twice, also at the same time, as engines do where a worker was thought dead.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from elmo_zh.engine.engine import Engine
from elmo_zh.errors import ClusterError
from elmo_zh.run.files import write_json_once, written_once

Task = TypeVar("Task")
Figures = dict[str, Any]

# What a worker has written may take this long to be seen on another machine: file systems on a network remember for up
# to a minute that a name was not there.
SECONDS_UNTIL_SEEN = 70.0


class PartWriter:
    """Makes the files of one part."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self.sizes: dict[str, int] = {}

    @contextmanager
    def file(self, suffix: str, *, lasts: bool = True) -> Iterator[Path]:
        """Yield a path to write the part's file of this suffix at; it has its name once the block ends well.

        One that does not last may be removed once it has been used: the part is whole without it.
        """
        path = self._folder / f"{self._name}.{suffix}"
        with written_once(path) as unfinished:
            yield unfinished
            if lasts:
                self.sizes[path.name] = unfinished.stat().st_size


Work = Callable[[Task, PartWriter], Figures]


@dataclass(frozen=True)
class _Job(Generic[Task]):
    """A task, what to do with it and where to."""

    work: Work[Task]
    task: Task
    folder: Path
    name: str


def run_parts(
    engine: Engine, work: Work[Task], tasks: Mapping[str, Task], folder: Path
) -> Iterator[tuple[str, Figures]]:
    """Yield the name and the figures of each part, those first that were finished before.

    Args:
        engine: Where to do the work.
        work: A function at the top of a module that makes a part's files with the writer that it is given, and returns
            figures that JSON can hold.
        tasks: Small values that can be pickled, by the names of their parts.
        folder: Where the files are; made if missing.

    Raises:
        ClusterError: If files that a worker has made are not to be seen here.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for name, task in tasks.items():
        done = _finished(folder, name)
        if done is None:
            jobs.append(_Job(work, task, folder, name))
        else:
            yield name, done
    for job, _ in engine.run(_make, jobs):
        yield job.name, _wait_for(job)


def _make(job: _Job[Any]) -> None:
    if _finished(job.folder, job.name) is not None:
        return  # by a worker that was thought dead; what it was made from may be gone
    writer = PartWriter(job.folder, job.name)
    figures = job.work(job.task, writer)
    write_json_once(_record(job.folder, job.name), {"sizes": writer.sizes, "figures": figures})


def _record(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _finished(folder: Path, name: str) -> Figures | None:
    """Return the figures of a part whose files are all there and whole."""
    path = _record(folder, name)
    if not path.exists():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    paths = {folder / file: size for file, size in record["sizes"].items()}
    is_whole = all(path.exists() and path.stat().st_size == size for path, size in paths.items())
    return dict(record["figures"]) if is_whole else None


def _wait_for(job: _Job[Any]) -> Figures:
    """Return the figures of a part that a worker has made, once they are to be seen here."""
    deadline = time.monotonic() + SECONDS_UNTIL_SEEN
    while (done := _finished(job.folder, job.name)) is None:
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{_record(job.folder, job.name)} was made by a worker and is not to be seen here."
                " Workers need the same disk under the same path as this machine."
            )
        time.sleep(0.2)
        any(job.folder.iterdir())  # has the names asked for anew
    return done
