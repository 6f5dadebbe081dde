"""The mark of a folder that elmo-zh wrote, `elmo-zh.json`: its kind, its format, what it was made from, its files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_zh.errors import OutputError
from elmo_zh.language import N_, _
from elmo_zh.run.files import file_digest, read_sealed, sealed, write_json
from elmo_zh.version import __version__

MARK = "elmo-zh.json"
# The folder inside an index where `explore` keeps its results; they may be deleted at any time.
CACHE = "pages"
# Larger files are listed without a digest; an index and a task record the digests of their arrays elsewhere.
_LARGEST_DIGESTED_BYTES = 2**26


@dataclass(frozen=True)
class Kind:
    """A kind of folder: its name, the files that show it without a mark, and the command that uses it."""

    what: str
    files: tuple[str, ...]
    reader: tuple[str, ...] = ()


# A bundle and a model in the layout of another program have no mark: their layouts are published, and bundle.json has
# the digests of the bundle. Indexes, tasks, comparisons, probes and runs of earlier versions have none either.
KINDS = {
    "bundle": Kind(N_("a model bundle"), ("options.json", "bundle.json"), ("embed", "file.txt", "--model")),
    "run": Kind(N_("a run"), ("config.toml", "stages")),
    "index": Kind(N_("an index"), ("index.json", "occurrences.npy"), ("senses", "WORD", "--index")),
    "task": Kind(N_("a trained task"), ("task.json", "*.safetensors"), ("task", "predict", "file.txt", "--task")),
    "comparison": Kind(N_("a comparison"), ("comparison.json", "comparison.md")),
    "probe": Kind(N_("a probe"), ("probe.json", "probe.md")),
    "vectors": Kind(N_("a folder of vectors"), ("info.json", "vectors.npy")),
    "model": Kind(N_("a model in another program's layout"), ("options.json", "vocab.txt")),
}


def write_mark(folder: Path, kind: str, number: int, made_from: Mapping[str, Any]) -> None:
    """Mark a folder whose other files are complete; `number` is the version of the kind's format."""
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if kind != "run" else []
    digests = {
        path.relative_to(folder).as_posix(): file_digest(path)
        if path.stat().st_size <= _LARGEST_DIGESTED_BYTES
        else None
        for path in files
    }
    mark = {"kind": kind, "format": number, "elmo_zh": __version__, "made_from": dict(made_from), "files": digests}
    write_json(folder / MARK, sealed(mark))


def load_mark(folder: Path) -> dict[str, Any]:
    """Return the mark of a folder, {} if it has none; raise OutputError if the mark is damaged."""
    path = folder / MARK
    if not path.exists():
        return {}
    try:
        mark = read_sealed(path)
    except ValueError as error:
        message = _("{path} is damaged ({error}). Write the folder again.")
        raise OutputError(message.format(path=path, error=error)) from None
    if mark["kind"] not in KINDS:
        message = _("A newer version of elmo-zh wrote {path}: {kind}. Update elmo-zh.")
        raise OutputError(message.format(path=path, kind=mark["kind"]))
    return mark


def kind_of(folder: Path) -> str:
    """Return the name in `KINDS` of the kind of a folder, or "" if elmo-zh did not write it."""
    if mark := load_mark(folder):
        return str(mark["kind"])
    return next((name for name, kind in KINDS.items() if all(any(folder.glob(file)) for file in kind.files)), "")


def require_unchanged(path: Path, remedy: str) -> None:
    """Raise OutputError if a file is not as the mark of its folder says; folders of earlier versions have no mark."""
    mark = load_mark(path.parent)
    if mark and file_digest(path) != mark["files"].get(path.name):
        message = _("{path} is damaged: its digest differs from the one in {mark}. {remedy}")
        raise OutputError(message.format(path=path, mark=MARK, remedy=remedy))


def changed_files(folder: Path, digests: Mapping[str, str | None]) -> list[str]:
    """Return the names of the files in a folder that are missing or whose digest is not the recorded one."""
    return [
        name
        for name, digest in digests.items()
        if not (folder / name).is_file() or digest not in (None, file_digest(folder / name))
    ]


def written_as(kind: str) -> Callable[[Path], bool]:
    """Return a function that says whether a folder is of this kind and may be replaced.

    It raises OutputError if the folder has files that its mark does not list, since replacing it would delete them.
    """

    def is_own(folder: Path) -> bool:
        if kind_of(folder) != kind:
            return False
        there = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
        written = {MARK, *load_mark(folder).get("files", {})}
        if others := sorted({path.as_posix() for path in there if path.parts[0] != CACHE} - written):
            message = _(
                "{folder} contains {file}, which elmo-zh.json does not list as written by this command, so the folder"
                " is not replaced. Move this file away or, if an earlier version wrote the folder, delete it."
            )
            raise OutputError(message.format(folder=folder, file=others[0]))
        return True

    return is_own
