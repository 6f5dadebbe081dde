"""Find the runs in a folder, and tell runs from other folders."""

from collections.abc import Iterator
from pathlib import Path

from elmo_zh.errors import RunError
from elmo_zh.invocation import train_command
from elmo_zh.language import _
from elmo_zh.run.files import final_name, require_regular_files
from elmo_zh.run.layout import RunDir
from elmo_zh.run.mark import MARK

# Where runs are, by default.
RUNS = Path("runs")
# Files and folders that only a run has; a copy of a run, or one of an earlier version, may have only some of them.
_FILES = {
    MARK,
    "config.toml",
    "stages",
    "segmented",
    "vocab.data",
    "vocab.counts",
    "word2vec.txt",
    "ids",
    "checkpoints",
}
# A link to the run whose model is used by default.
LATEST = RUNS / "latest"


def is_run(path: Path) -> bool:
    """Return whether a folder is a run, that is, whether it has settings or records of stages."""
    return RunDir(path).config.is_file() or (path / "stages").is_dir()


def iter_runs(folder: Path) -> Iterator[Path]:
    """Yield each run in a folder and its subfolders once, by its own name and never by a link such as `latest`."""
    runs = [path.parent for pattern in ("*/stages", "*/*/stages") for path in folder.glob(pattern)]
    seen = set()
    for path in sorted(runs, key=lambda path: (path.is_symlink() or path.parent.is_symlink(), path)):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            yield path


def require_run_or_room(path: Path) -> None:
    """Raise RunError if a folder is not a run but holds other files, or if a run contains something besides files."""
    names = sorted(file.name for file in path.iterdir() if not file.name.startswith(".")) if path.is_dir() else []
    # A run whose first command was killed may hold only an unfinished config.toml.
    if names and _FILES.isdisjoint(map(final_name, names)):
        raise RunError(
            _(
                "{path} is not a run folder and contains other files, such as {other}. Choose another --run, such as"
                " {new}"
            ).format(path=path, other=names[0], new=RUNS / "new")
        )
    require_regular_files(path)


def explain_no_run(path: Path) -> str:
    """Say that there is no run at a path, and how to begin one."""
    return _("{path} is not a run folder. Begin a run with: {command}").format(path=path, command=train_command())
