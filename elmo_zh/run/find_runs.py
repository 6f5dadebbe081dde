"""Find runs: all runs in a folder, or the one that a wrong path probably means."""

import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from elmo_zh.errors import RunError
from elmo_zh.invocation import program, train_command
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
    found = [path.parent for pattern in ("*/stages", "*/*/stages") for path in folder.glob(pattern)]
    found.sort(key=lambda path: (any(each.is_symlink() for each in (path, path.parent)), path))
    seen = set()
    for path in found:
        if path.resolve() not in seen:
            seen.add(path.resolve())
            yield path


def closest_run(path: Path, runs: list[Path]) -> Path | None:
    """Return the run whose name is most similar to the path's, if any is similar."""
    names = {run.name: run for run in runs}
    matches = get_close_matches(path.name, names, n=1, cutoff=0.6)
    return names[matches[0]] if matches else None


def require_run_or_room(path: Path) -> None:
    """Raise RunError if a folder is not a run but holds other files, or if a run contains something besides files."""
    if other := _other_content(path):
        raise RunError(
            f"{path} is not a run folder and contains other files, such as {other}. {_did_you_mean(path)}Choose another"
            f" --run, such as {RUNS / 'new'}"
        )
    require_regular_files(path)


def _did_you_mean(path: Path) -> str:
    close = closest_run(path, list(iter_runs(RUNS)))
    return f"Did you mean {close}? " if close else ""


def _other_content(path: Path) -> str:
    """Return the name of a visible file in a folder that is not a run; "" for a run, or if there is no such file."""
    names = sorted(each.name for each in path.iterdir() if not each.name.startswith(".")) if path.is_dir() else []
    # A run whose first command was killed may hold only an unfinished config.toml.
    return names[0] if names and _FILES.isdisjoint(map(final_name, names)) else ""


def explain_no_run(path: Path) -> str:
    """Explain to the user that a path is not a run or does not exist, and give the next step."""
    problem, new = ("is not a run folder", RUNS / "new") if path.exists() else ("does not exist", path)
    begin = f"{train_command()}, or {program()} segment CORPUS --run {shlex.quote(str(new))}"
    return f"{path} {problem}. {_did_you_mean(path)}Begin a run with: {begin}"
