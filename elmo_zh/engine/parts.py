"""Parts of a stage on disk: a stage that was interrupted does not repeat its finished tasks.

A task writes files `NAME.SUFFIX` in the folder of parts and, when all are complete, `NAME.json` with their sizes and
digests and the figures that it returns. It may run twice, even at the same time, if an engine takes a living worker for
dead. When a stage resumes, parts that were damaged meanwhile are made again.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from elmo_zh.engine.engine import Engine
from elmo_zh.errors import ClusterError
from elmo_zh.run.files import file_digest, make_folder, written_once
from elmo_zh.run.sealed import read_sealed, write_sealed_once

Task = TypeVar("Task")
Figures = dict[str, Any]

# A file that a worker has written may become visible on another machine only after this time: network file systems
# remember for up to a minute that a name did not exist.
SECONDS_UNTIL_SEEN = 70.0


class PartFile(NamedTuple):
    """A file of a part, as the part's record describes it."""

    num_bytes: int
    digest: str
    lasts: bool

    def is_whole(self, path: Path) -> bool:
        """Return whether the file is there in its size, or was removed after use."""
        return path.stat().st_size == self.num_bytes if path.exists() else not self.lasts

    def is_intact(self, path: Path) -> bool:
        """Return whether the file has its content too."""
        return self.is_whole(path) and (not path.exists() or file_digest(path) == self.digest)


class PartWriter:
    """Writes the files of one part."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self.files: dict[str, PartFile] = {}

    @contextmanager
    def file(self, suffix: str, *, lasts: bool = True) -> Iterator[Path]:
        """Yield a path at which to write the part's file of this suffix; it gets its name if the block succeeds.

        A file with `lasts=False` may be removed after use: the part counts as complete without it.
        """
        path = self._folder / f"{self._name}.{suffix}"
        with written_once(path) as unfinished:
            yield unfinished
            self.files[path.name] = PartFile(unfinished.stat().st_size, file_digest(unfinished), lasts)


Work = Callable[[Task, PartWriter], Figures]


@dataclass(frozen=True)
class _Job(Generic[Task]):
    """A task, the function that runs it, and the folder and name of its part."""

    work: Work[Task]
    task: Task
    folder: Path
    name: str


def run_parts(
    engine: Engine, work: Work[Task], tasks: Mapping[str, Task], folder: Path
) -> Iterator[tuple[str, Figures]]:
    """Yield the name and the figures of each part, beginning with those that were already finished.

    Args:
        engine: Engine that runs the tasks.
        work: Function at the top level of a module that writes the files of a part with the given writer, and returns
            figures as JSON values.
        tasks: Tasks by the names of their parts; small values that can be pickled.
        folder: Folder of the parts; made if missing.

    Raises:
        ClusterError: If files that a worker has written do not become visible here.
    """
    folder = folder.absolute()
    make_folder(folder)
    jobs = []
    for name, task in tasks.items():
        done = _intact(folder, name)
        if done is None:
            jobs.append(_Job(work, task, folder, name))
        else:
            yield name, done
    for job, _ in engine.run(_make, jobs):
        yield job.name, _wait_for(job)


def run_parts_in_order(
    engine: Engine, work: Work[Task], tasks: Iterable[tuple[str, Task]], folder: Path
) -> Iterator[tuple[str, Figures]]:
    """Yield the name and the figures of each part in the order of the tasks, of which there may be very many.

    Args:
        engine: Engine that runs the tasks.
        work: As for `run_parts`.
        tasks: Each task after the name of its part; taken only as workers become free.
        folder: Folder of the parts; made if missing.

    Raises:
        ClusterError: If files that a worker has written do not become visible here.
    """
    folder = folder.absolute()
    make_folder(folder)
    waiting: deque[str] = deque()
    done: dict[str, Figures] = {}

    def iter_unfinished() -> Iterator[_Job[Task]]:
        for name, task in tasks:
            waiting.append(name)
            figures = _intact(folder, name)
            if figures is None:
                yield _Job(work, task, folder, name)
            else:
                done[name] = figures

    for job, _ in engine.run(_make, iter_unfinished()):
        done[job.name] = _wait_for(job)
        while waiting and waiting[0] in done:
            name = waiting.popleft()
            yield name, done.pop(name)
    for name in waiting:
        yield name, done[name]


def remove_part(folder: Path, name: str) -> None:
    """Remove the files of a finished part that has been used; its record first, so that it is never half a part."""
    record = _record(folder, name)
    files = read_sealed(record)["files"]
    for path in (record, *(folder / file for file in files)):
        path.unlink(missing_ok=True)


def num_finished(tasks: Iterable[str], folder: Path) -> int:
    """Return how many parts an interrupted run has finished, given the names of all."""
    return sum(_finished(folder, name) is not None for name in tasks)


def is_intact(folder: Path, name: str) -> bool:
    """Return whether a part is finished; one that has been damaged since loses its record, so that it is made again."""
    return _intact(folder, name) is not None


def _make(job: _Job[Any]) -> None:
    if _finished(job.folder, job.name) is not None:
        return  # finished by a worker that was taken for dead; the task's inputs may be gone
    writer = PartWriter(job.folder, job.name)
    figures = job.work(job.task, writer)
    write_sealed_once(_record(job.folder, job.name), {"files": writer.files, "figures": figures})


def _record(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _read(folder: Path, name: str) -> tuple[dict[Path, PartFile], Figures] | None:
    """Return the files of a part and its figures, or None if it has no sound record."""
    try:
        record = read_sealed(_record(folder, name))
        return {folder / file: PartFile(*described) for file, described in record["files"].items()}, record["figures"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _finished(folder: Path, name: str) -> Figures | None:
    """Return the figures of a part if all its files are complete, else None."""
    found = _read(folder, name)
    return found[1] if found and all(file.is_whole(path) for path, file in found[0].items()) else None


def _intact(folder: Path, name: str) -> Figures | None:
    """Return the figures of a part if all its files are as they were written; else remove its record."""
    found = _read(folder, name)
    if found and all(file.is_intact(path) for path, file in found[0].items()):
        return found[1]
    _record(folder, name).unlink(missing_ok=True)
    return None


def _wait_for(job: _Job[Any]) -> Figures:
    """Return the figures of a part that a worker has finished, once its files are visible here."""
    deadline = time.monotonic() + SECONDS_UNTIL_SEEN
    while (done := _finished(job.folder, job.name)) is None:
        if time.monotonic() > deadline:
            raise ClusterError(
                f"A worker wrote {_record(job.folder, job.name)}, but this machine cannot see it."
                " Workers need the same disk under the same path as this machine."
            )
        time.sleep(0.2)
        any(job.folder.iterdir())  # makes a network file system look up the names again
    return done
