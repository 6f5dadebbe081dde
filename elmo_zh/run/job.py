"""Run long work as jobs that can be resumed: a job says what it makes and from what; `run_job` does the rest.

A job names its output and what the output is made from, and its method `make` writes the output. On the way, `make`
passes the expensive steps to `work.run`, part by part:

    @dataclass(frozen=True)
    class CountCharacters:
        text: Path
        output: Path
        may_replace = staticmethod(Path.is_file)  # --force replaces files, not folders
        valuable = ("count",)  # the finished parts of this step are not discarded without --force

        @property
        def inputs(self) -> Sequence[Path]:
            return [self.text]

        def made_from(self) -> Mapping[str, Any]:
            return {"text": file_digest(self.text)}

        def make(self, path: Path, work: Work) -> int:
            step = Step(name="count", compute=count, unit="characters", size=lambda counts: sum(counts.values()))
            counts = sum((Counter(part.value()) for part in work.run(step, iter_parts(self.text))), Counter())
            write_table(path, counts)
            return len(counts)

    run_job(CountCharacters(text, output), force=False, reporter=reporter, engine=engine)

The output appears whole or not at all. Until then, the work is in the folder `OUTPUT.parts/`: `manifest.json` says what
it is made from, and each step has a folder with the files of its finished parts. A part's record, `part-N.json`, is
written last: the value that `compute` returned, the digest of each file that it wrote, and a digest of the record
itself. A job that is run again after it was stopped, on any engine, continues with the parts that are not finished;
damaged parts are computed again. Workers write a part's files, and two may write the same file at the same time, with
the same bytes. Only the process that runs the job writes records.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from elmo_zh.engine import Engine, Shared, ThisProcess, unshared_disk
from elmo_zh.errors import ClusterError, CorpusError, OutputError
from elmo_zh.language import _
from elmo_zh.run.files import (
    PARTS,
    atomic_path,
    file_digest,
    full_disk_named,
    make_folder,
    read_json,
    read_sealed,
    remove,
    sealed,
    write_json,
    written_once,
)
from elmo_zh.run.outputs import NOT_REPLACED, claimed_output
from elmo_zh.run.reporter import Hints, Reporter
from elmo_zh.version import __version__

Part = TypeVar("Part")
Summary = TypeVar("Summary", covariant=True)
# A value that JSON can express; tuples come back as lists, and keys as strings.
Json = Any

_MANIFEST = "manifest.json"


class Job(Protocol[Summary]):
    """Long work on one output, a file or a folder.

    Attributes:
        output: What it makes.
        valuable: The steps whose finished parts are not discarded without --force, even if what the output is made
            from has changed.
    """

    @property
    def output(self) -> Path: ...  # noqa: D102
    @property
    def valuable(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def inputs(self) -> Sequence[Path]:
        """The files and folders that it reads, which its output must not replace."""

    def may_replace(self, path: Path) -> bool:
        """Return whether an existing path is an output of this kind, so that --force may replace it."""

    def made_from(self) -> Mapping[str, Json]:
        """Return all that the output depends on, such as digests and settings; called after the output is claimed."""

    def make(self, path: Path, work: "Work") -> Summary:
        """Write the output to a path that does not exist yet, computing its parts with `work.run`."""


def run_job(
    job: Job[Summary], *, force: bool, reporter: Reporter, engine: Engine | None = None, replace: bool = False
) -> Summary:
    """Make a job's output, continuing from its finished parts, and return what its `make` returns.

    Args:
        job: What to make.
        force: Replace an existing output and start over.
        reporter: Where messages and progress go.
        engine: Where parts are computed; by default in this process.
        replace: Replace an existing output, but continue from finished parts that are made from the same things.

    Raises:
        OutputError: If the output is in use, would replace an input, or exists and may not be replaced by the job;
            without `force`, also if it exists (unless `replace`), or if a valuable step has finished parts that are
            made from something else.
    """
    parts = job.output.with_name(job.output.name + PARTS)
    with (
        claimed_output(job.output, job.inputs, job.may_replace, force=force or replace),
        full_disk_named(job.output, parts),
    ):
        work = Work(parts, reporter, engine)
        work.open(job.made_from(), valuable=job.valuable, force=force)
        try:
            with atomic_path(job.output) as unfinished:
                summary = job.make(unfinished, work)
        except CorpusError:
            work.remove()  # none of it is of use: what it is made from has to change
            raise
        finally:
            work.remove_unless_begun()
        work.remove()
    return summary


class Files:
    """Writes the files of one part; several processes may do this at the same time."""

    def __init__(self, part: "FinishedPart") -> None:
        self._part = part
        self.written: dict[str, _Written] = {}

    @contextmanager
    def file(self, suffix: str, *, lasts: bool = True) -> Iterator[Path]:
        """Yield a path for the part's file with this suffix; with `lasts=False` it may be removed after use."""
        path = self._part.file(suffix)
        with written_once(path) as unfinished:
            yield unfinished
            self.written[path.name] = _Written(unfinished.stat().st_size, file_digest(unfinished), lasts)

    @contextmanager
    def folder(self, suffix: str) -> Iterator[Path]:
        """Yield a new folder for files of the part; only for steps that are computed in order, by one process."""
        path = self._part.file(suffix)
        with atomic_path(path) as unfinished:
            unfinished.mkdir()
            yield unfinished
        for file in sorted(path.iterdir()):
            self.written[f"{path.name}/{file.name}"] = _Written(file.stat().st_size, file_digest(file), lasts=True)


class _Written(NamedTuple):
    num_bytes: int
    digest: str
    lasts: bool


@dataclass(frozen=True, kw_only=True)
class Step(Generic[Part]):
    """A step of a job, and how its parts are computed; a part must come out bit for bit the same each time.

    Attributes:
        name: The name of the step's folder and of its progress bar.
        compute: Returns a part's value, anything that JSON can express, and may write files. It is pickled once, to
            reach workers; models are pickled as the path and the digest of their folder.
        unit: What the progress counts.
        size: Returns how many units a part has, given its value.
        total: How many units there are, if that is known.
        in_order: Whether a part needs the parts before it; they are then computed in this process, one after another.
    """

    name: str
    compute: Callable[[Part, Files], Json]
    unit: str = "parts"
    size: Callable[[Json], int] = lambda _: 1
    total: int | None = None
    in_order: bool = False


@dataclass(frozen=True)
class FinishedPart:
    """A part of a step, and its files on disk once it is finished."""

    folder: Path
    name: str

    @property
    def record(self) -> Path:
        """The part's record, which is written after its other files."""
        return self.file("json")

    def file(self, suffix: str) -> Path:
        """Return the path of the part's file with this suffix."""
        return self.folder / f"{self.name}.{suffix}"

    def value(self) -> Json:
        """Return the value that `compute` returned, as JSON gives it back."""
        record = self._read()
        if record is None:
            raise OutputError.damaged(self.record, "it changed while it was in use")
        return record[0]

    def is_whole(self, *, check_digests: bool = False) -> bool:
        """Return whether the part is finished and its files have the right sizes and, with `check_digests`, digests."""
        record = self._read()
        return record is not None and all(
            self._has(self.folder / name, written, check_digests) for name, written in record[1].items()
        )

    @staticmethod
    def _has(path: Path, written: _Written, check_digest: bool) -> bool:
        if not path.is_file():
            return not written.lasts
        if path.stat().st_size != written.num_bytes:
            return False
        return not check_digest or file_digest(path) == written.digest

    def write(self, value: Json, files: Files) -> None:
        """Write the record: the value and the files, with a digest of the record itself."""
        record = sealed({"value": value, "files": files.written})
        with written_once(self.record) as unfinished:
            unfinished.write_text(json.dumps(record), encoding="utf-8")

    def _read(self) -> tuple[Json, dict[str, _Written]] | None:
        try:
            record = read_sealed(self.record)
        except (FileNotFoundError, ValueError):
            return None
        return record["value"], {name: _Written(*written) for name, written in record["files"].items()}


def _has_parts(folder: Path) -> bool:
    return any(folder.rglob("part-*.json"))


class Work:
    """The unfinished work on an output, in a folder beside it."""

    def __init__(self, path: Path, reporter: Reporter, engine: Engine | None = None) -> None:
        """Compute parts with the engine, by default in this process."""
        self.path, self.reporter, self._engine = path, reporter, engine or ThisProcess()
        self._hints = Hints(reporter)

    # The folder

    def open(self, made_from: Mapping[str, Json], *, valuable: Sequence[str] = (), force: bool = False) -> None:
        """Create the folder; start over with `force`, or if its finished parts are made from other things.

        Raises:
            OutputError: If the folder is not ours, or has finished parts of a valuable step that are made from
                something else, without `force`.
        """
        manifest = json.loads(json.dumps({"elmo_zh": __version__, **made_from}))
        known = self._read_manifest()
        changed = [name for name in {**known, **manifest} if known.get(name) != manifest.get(name)]
        if changed and not force and any(_has_parts(self.path / name) for name in valuable):
            raise OutputError(
                _(
                    "{path} contains unfinished work made with other inputs, other settings or another version of"
                    " elmo-zh ({changed}). To continue it, use the same ones as before; to start over, add --force."
                ).format(path=self.path, changed=", ".join(changed))
            )
        if changed or force:
            self.remove()
        write_json(self.path / _MANIFEST, manifest)

    def _read_manifest(self) -> dict[str, Json]:
        """Return what the work in the folder is made from, or {}; raise OutputError if the folder is not ours."""
        manifest = self.path / _MANIFEST
        is_ours = manifest.is_file() or all(path.name.startswith(_MANIFEST) for path in self.path.glob("*"))
        if self.path.is_symlink() or (self.path.exists() and not (self.path.is_dir() and is_ours)):
            raise OutputError(_(NOT_REPLACED).format(path=self.path, option="--output"))
        try:
            return dict(read_json(manifest, dict[str, Any]))
        except (FileNotFoundError, ValueError):
            return {}

    def remove(self) -> None:
        """Delete the folder."""
        remove(self.path)

    def remove_unless_begun(self) -> None:
        """Delete the folder unless it has a finished part, from which the job can continue."""
        if not _has_parts(self.path):
            self.remove()

    def within(self, name: str) -> "Work":
        """Return the work in a folder inside this one, for steps that may occur several times in a job."""
        return Work(self.path / name, self.reporter, self._engine)

    def discard(self, name: str) -> None:
        """Delete all parts of a step, when they are no longer needed."""
        remove(self.path / name)

    # Parts

    def finished(self, name: str) -> list[FinishedPart]:
        """Return the finished parts of a step up to the first that is missing or damaged."""
        parts: list[FinishedPart] = []
        while self._is_finished(part := self._part(name, len(parts))):
            parts.append(part)
        return parts

    def run(
        self, step: Step[Part], parts: Iterable[Part], *, after: Sequence[FinishedPart] = ()
    ) -> Iterator[FinishedPart]:
        """Compute the parts of a step that are not finished, and yield those parts and the finished ones, in order.

        Args:
            step: How a part is computed.
            parts: The parts, read as workers become free; the same each time that the job runs.
            after: The first parts, from `finished`, if `parts` begins after them; they are not yielded.
        """
        waiting: deque[FinishedPart] = deque()
        pending: set[str] = set()
        compute = Shared(step.compute)

        def iter_tasks() -> Iterator[_Task]:
            is_stale = False
            for number, part in enumerate(parts, start=len(after)):
                result = self._part(step.name, number)
                waiting.append(result)
                if is_stale:
                    result.record.unlink(missing_ok=True)
                if self._is_finished(result):
                    progress.update(step.size(result.value()))
                else:
                    is_stale = step.in_order
                    pending.add(result.name)
                    yield _Task(compute, part, result)

        engine = ThisProcess() if step.in_order else self._engine
        initial = sum(step.size(part.value()) for part in after)
        with self.reporter.progress(step.name, unit=step.unit, total=step.total, initial=initial) as progress:
            for task, computed in engine.run(_compute, iter_tasks()):
                task.result.write(*computed)
                if not task.result.is_whole():
                    raise unshared_disk(task.result.folder)
                progress.update(step.size(task.result.value()))
                pending.discard(task.result.name)
                while waiting and waiting[0].name not in pending:
                    yield waiting.popleft()
            yield from waiting

    def _part(self, step: str, number: int) -> FinishedPart:
        return FinishedPart((self.path / step).absolute(), f"part-{number:012d}")

    def _is_finished(self, part: FinishedPart) -> bool:
        if part.is_whole(check_digests=True):
            return True
        if part.record.exists():
            message = _("Some finished work in {path} is damaged and will be computed again.")
            self._hints.give("damage", message.format(path=self.path))
            part.record.unlink()
        return False


class _Task(NamedTuple):
    compute: Shared[Callable[[Any, Files], Json]]
    part: Any
    result: FinishedPart
    version: str = __version__


def _compute(task: _Task) -> tuple[Json, Files]:
    """Compute a part and write its files, on any machine with the same version; return what its record needs."""
    if task.version != __version__:
        message = _("A worker has elmo-zh {version}; expected {expected}. Install elmo-zh {expected} on its machine.")
        raise ClusterError(message.format(version=__version__, expected=task.version))
    make_folder(task.result.folder)
    files = Files(task.result)
    with task.compute.used() as compute:
        return compute(task.part, files), files
