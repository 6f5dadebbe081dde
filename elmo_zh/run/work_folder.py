"""Keep the unfinished work on one output in a folder, from which an interrupted command resumes.

`manifest.json` says what the work depends on. Each finished part has a record, `NAME.json`: figures, a digest of the
record, and a digest of each file, or region of a file, that the part has written. Damaged parts are recreated. Workers
may write the same part at the same time, on several machines; they leave the same bytes.
"""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.errors import ClusterError, OutputError
from elmo_zh.run.files import PARTS, make_folder, own_digest, read_json, remove, sealed, write_json, written_once
from elmo_zh.run.reporter import Reporter

Task = TypeVar("Task")
Kept = TypeVar("Kept")
Value = TypeVar("Value")
Given = TypeVar("Given", contravariant=True)
Figures = dict[str, Any]

# A file that a worker has written may become visible on another machine only after this time: network file systems
# remember for up to a minute that a name did not exist.
SECONDS_UNTIL_SEEN = 70.0
_BUFFER_BYTES = 2**20
_VALUE = "value"


class Region(NamedTuple):
    """A range of consecutive bytes of a file in a work folder."""

    path: Path
    start: int
    num_bytes: int

    @classmethod
    def whole(cls, path: Path) -> "Region":
        """Return a region that covers the whole file."""
        return cls(path, 0, path.stat().st_size)

    def digest(self) -> str:
        """Return the SHA-256 digest of the bytes, or of fewer if the file has become shorter."""
        digest, num_bytes = hashlib.sha256(), self.num_bytes
        with self.path.open("rb") as file:
            file.seek(self.start)
            while num_bytes and (data := file.read(min(num_bytes, _BUFFER_BYTES))):
                digest.update(data)
                num_bytes -= len(data)
        return f"sha256:{digest.hexdigest()}"


class _Written(NamedTuple):
    """A record's entry for a region of a file, or a whole file (no start), which may be deleted unless it `lasts`."""

    file: str
    start: int | None
    num_bytes: int
    digest: str
    lasts: bool = True

    def is_whole(self, folder: Path) -> bool:
        """Return whether the bytes are there, or were deleted after use."""
        path = folder / self.file
        if not path.exists():
            return not self.lasts
        num_bytes = path.stat().st_size
        return num_bytes == self.num_bytes if self.start is None else num_bytes >= self.start + self.num_bytes

    def is_intact(self, folder: Path) -> bool:
        """Return whether the bytes are there and unchanged."""
        path = folder / self.file
        is_same = not path.exists() or Region(path, self.start or 0, self.num_bytes).digest() == self.digest
        return self.is_whole(folder) and is_same


class PartWriter:
    """Writes the files of one part; several processes may do this at the same time."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self.files: dict[str, _Written] = {}

    @contextmanager
    def file(self, suffix: str, *, lasts: bool = True) -> Iterator[Path]:
        """Yield a path for the part's file with this suffix; with `lasts=False` it may be removed after use."""
        path = self._folder / f"{self._name}.{suffix}"
        with written_once(path) as unfinished:
            yield unfinished
            region = Region.whole(unfinished)
            self.files[path.name] = _Written(path.name, None, region.num_bytes, region.digest(), lasts)


Work = Callable[[Task, PartWriter], Figures]


class PartWork(Protocol[Given, Value]):
    """Computes the value of a task, bit for bit the same every time; it is pickled to reach the workers."""

    def compute(self, task: Given) -> Value:
        """Return the value of a task."""

    def save(self, value: Value, path: Path) -> None:
        """Write a value to a new file of exactly this name."""

    def load(self, path: Path) -> Value:
        """Read a value from a file that `save` wrote."""


class PartTask(NamedTuple, Generic[Task, Kept]):
    """A value to compute: the name of its part, the worker's input, and data to return along with the value."""

    name: str
    task: Task
    kept: Kept


def part_name(number: int) -> str:
    """Return the name of a part by its number or its first line; sorting the names sorts the parts."""
    return f"part-{number:012d}"


@dataclass(frozen=True)
class WorkFolder:
    """The folder beside an output that holds the finished parts of its unfinished work."""

    path: Path

    @classmethod
    def of(cls, output: Path) -> "WorkFolder":
        """Return the folder for an output's unfinished work."""
        return cls(output.with_name(output.name + PARTS))

    @property
    def manifest(self) -> Path:
        """The file that records the inputs and settings that the work depends on."""
        return self.path / "manifest.json"

    def is_of(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether the work in the folder has this manifest."""
        try:
            return bool(read_json(self.manifest) == json.loads(json.dumps(manifest)))
        except (FileNotFoundError, ValueError):
            return False

    def open(
        self,
        manifest: Mapping[str, Any],
        *,
        force: bool = False,
        refusal: str = "",
        work: str = "part-*.json",
        discard: Callable[[], object] | None = None,
    ) -> None:
        """Create the folder; keep its finished work if it has the same manifest, otherwise start over.

        Args:
            manifest: What the work depends on.
            force: Start over in any case.
            refusal: Name for work with a different manifest ("an unfinished output of another text"), which is then
                discarded only with `force`; work without a name is always discarded.
            work: Pattern of the files that would be lost.
            discard: Removes unusable work; by default the whole folder.

        Raises:
            OutputError: If the folder holds work with a different manifest that may not be discarded.
        """
        is_same = self.is_of(manifest)
        if refusal and not (is_same or force) and any(self.path.glob(work)):
            raise OutputError(
                f"{self.path} contains {refusal}. To continue, use the same input and settings as before; to start"
                " over, add --force."
            )
        if force or not is_same:
            (discard or self.remove)()
        write_json(self.manifest, manifest)

    def remove(self) -> None:
        """Delete the folder."""
        remove(self.path)

    def remove_unless(self, *work: str) -> None:
        """Delete the folder unless it has files matching one of these patterns, from which a command can resume."""
        if not any(path for pattern in work for path in self.path.glob(pattern)):
            self.remove()

    def finish(self, name: str, figures: Mapping[str, Any] | None = None, files: Iterable[Region] = ()) -> None:
        """Record that a part is finished, with its figures as JSON values and the bytes that it has written."""
        written = [_Written(str(each.path.relative_to(self.path)), *each[1:], each.digest()) for each in files]
        self._record_part(name, figures or {}, written)

    def _record_part(self, name: str, figures: Mapping[str, Any], files: Iterable[_Written]) -> None:
        record = sealed({"figures": dict(figures), "files": list(files)})
        with written_once(self.record(name)) as unfinished:
            text = json.dumps(record, ensure_ascii=False) + "\n"
            unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")

    def record(self, name: str) -> Path:
        """Return the path of a part's record."""
        return self.path / f"{name}.json"

    def figures(self, name: str, reporter: Reporter | None = None) -> Figures | None:
        """Return a finished part's figures, or None; the record of a damaged part is deleted, with a warning."""
        found = self._read(name)
        if found and all(file.is_intact(self.path) for file in found[1]):
            return found[0]
        if reporter and self.record(name).is_file():
            self.warn_of_damage(reporter)
        self.record(name).unlink(missing_ok=True)
        return None

    def warn_of_damage(self, reporter: Reporter) -> None:
        """Warn that damaged work in the folder will be recreated."""
        reporter.warn(f"Some finished work in {self.path} is damaged and will be computed again.")

    def finished(self, pattern: str = "part-*", reporter: Reporter | None = None) -> dict[str, Figures]:
        """Return the figures of finished parts by name, in order; discard the first damaged part and all after it."""
        names = sorted(path.stem for path in self.path.glob(f"{pattern}.json"))
        found: dict[str, Figures] = {}
        for name in names:
            figures = self.figures(name, reporter)
            if figures is None:
                break
            found[name] = figures
        for name in reversed(names[len(found) :]):
            self.discard(name)
        return found

    def finish_lines(self, first_line: int, num_lines: int, files: Iterable[Region]) -> None:
        """Record that a part of consecutive lines is finished, with the regions of files that it has written."""
        self.finish(part_name(first_line), {"num_lines": num_lines}, files)

    def finished_lines(self, first_line: int = 0, reporter: Reporter | None = None) -> dict[str, int]:
        """Return the number of lines of each finished part by name, in order, up to the first gap."""
        found: dict[str, int] = {}
        for name, figures in self.finished("part-*", reporter).items():
            if name != part_name(first_line):
                break
            found[name] = figures["num_lines"]
            first_line += found[name]
        return found

    def num_finished(self, names: Iterable[str]) -> int:
        """Return how many of these parts are finished, judging by the sizes of their files."""
        return sum(self.whole_figures(name) is not None for name in names)

    def whole_figures(self, name: str) -> Figures | None:
        """Return a part's figures if its files have the right sizes, otherwise None; do not read the files."""
        found = self._read(name)
        return found[0] if found and all(file.is_whole(self.path) for file in found[1]) else None

    def discard(self, name: str) -> None:
        """Delete a part's record, and then the files that belong only to it, which have its name."""
        found = self._read(name)
        self.record(name).unlink(missing_ok=True)
        for file in found[1] if found else ():
            if file.file.startswith(f"{name}."):
                (self.path / file.file).unlink(missing_ok=True)

    def _read(self, name: str) -> tuple[Figures, list[_Written]] | None:
        try:
            record = read_json(self.record(name))
            is_sound = record["digest"] == own_digest(record)
            return (record["figures"], [_Written(*each) for each in record["files"]]) if is_sound else None
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def run(self, engine: Engine, work: Work[Task], tasks: Mapping[str, Task]) -> Iterator[tuple[str, Figures]]:
        """Run all tasks that are not finished, and yield each part's name and figures, finished parts first.

        The work is a function at the top level of a module; it writes the files of a part, and returns figures as JSON
        values. The tasks, by the names of their parts, are small values that can be pickled.
        """
        folder = WorkFolder(self.path.absolute())
        make_folder(folder.path)
        jobs = []
        for name, task in tasks.items():
            done = folder.figures(name)
            if done is None:
                jobs.append(_Job(work, task, folder, name))
            else:
                yield name, done
        for job, _ in engine.run(_make, jobs):
            yield job.name, job.seen_figures()

    def compute(
        self, engine: Engine, work: PartWork[Task, Value], tasks: Iterable[PartTask[Task, Kept]]
    ) -> Iterator[tuple[Kept, Value]]:
        """Compute the values of tasks, and yield each task's `kept` data and its value, in the order of the tasks.

        In this process, a task is computed when its turn comes. Workers compute tasks in advance, in any order, and
        leave the values as files. A file is removed once its value has been used; files left by an interrupted command
        are used when it resumes, on any engine.

        Args:
            engine: Engine that runs the tasks.
            work: How values are computed, written and read.
            tasks: The tasks, read as workers become free; a command that resumes must give them the same names.
        """
        folder = WorkFolder(self.path.absolute())
        make_folder(folder.path)
        waiting: deque[PartTask[Task, Kept]] = deque()
        pending: set[str] = set()

        def iter_jobs() -> Iterator[_Job[Task]]:
            for each in tasks:
                waiting.append(each)
                if folder.figures(each.name) is None:
                    pending.add(each.name)
                    yield _Job(_Saved(work), each.task, folder, each.name)

        def iter_ready() -> Iterator[tuple[Kept, Value]]:
            while waiting and waiting[0].name not in pending:
                each = waiting.popleft()
                yield each.kept, work.load(folder.path / f"{each.name}.{_VALUE}")
                folder.discard(each.name)

        if isinstance(engine, ThisProcess):
            for each in tasks:
                if folder.figures(each.name) is None:
                    yield each.kept, work.compute(each.task)
                else:
                    waiting.append(each)
                    yield from iter_ready()
            return
        for job, _ in engine.run(_make, iter_jobs()):
            job.seen_figures()
            pending.discard(job.name)
            yield from iter_ready()
        yield from iter_ready()


@dataclass(frozen=True)
class _Saved:
    """Work that saves its value as a file of the part."""

    work: PartWork[Any, Any]

    def __call__(self, task: Any, writer: PartWriter) -> Figures:
        value = self.work.compute(task)
        with writer.file(_VALUE) as unfinished:
            self.work.save(value, unfinished)
        return {}


@dataclass(frozen=True)
class _Job(Generic[Task]):
    work: Work[Task]
    task: Task
    folder: WorkFolder
    name: str

    def seen_figures(self) -> Figures:
        """Return the figures of a part that a worker has finished, once its files are visible on this machine."""
        deadline = time.monotonic() + SECONDS_UNTIL_SEEN
        while (found := self.folder.whole_figures(self.name)) is None:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"A worker wrote {self.folder.record(self.name)}, but this machine cannot see it."
                    " Workers must have access to the same disk, at the same path as on this machine."
                )
            time.sleep(0.2)
            any(self.folder.path.iterdir())  # makes a network file system look up the names again
        return found


def _make(job: _Job[Any]) -> None:
    if job.folder.whole_figures(job.name) is not None:
        return  # finished by a worker that was taken for dead; the task's inputs may be gone
    writer = PartWriter(job.folder.path, job.name)
    figures = job.work(job.task, writer)
    job.folder._record_part(job.name, figures, writer.files.values())
