"""Find files, and read lines of UTF-8 from plain and compressed files; no line is ever skipped."""

import codecs
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES, unpacked
from elmo_zh.errors import CorpusError
from elmo_zh.run.reporter import counted


@dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """The files of a corpus in reading order, and the files in its folders whose names do not suggest text."""

    paths: tuple[Path, ...]
    passed_over: tuple[Path, ...]


def find_files(
    arguments: Sequence[str], leave_out: Path | None, is_taken: Callable[[str], bool], kinds: str
) -> CorpusFiles:
    """Return the files that paths and globs name, each once, sorted by path.

    A file named directly is always taken. A folder is searched to any depth for files whose names `is_taken`, not in
    hidden files and `leave_out`; `kinds` names such files in messages.
    """
    outside = leave_out.resolve() if leave_out else None
    found: set[Path] = set()
    passed_over: set[Path] = set()
    for argument in arguments:
        for path in _expand(argument):
            if path.is_dir():
                if outside in (path.resolve(), *path.resolve().parents):
                    _require_glob(argument, path, leave_out)
                    continue
                inside = _files_inside(path, outside)
                text = {p for p in inside if is_taken(p.name)}
                if not text:
                    raise CorpusError(
                        f"{path} holds no text files ({kinds}; {counted(len(inside), 'other file')})."
                        " Give files by name, or a folder with text."
                    )
                found.update(text)
                passed_over.update(inside - text)
            else:
                found.add(path)
    # A file with two names (relative and absolute, or a link) is read once.
    paths = {path.resolve(): path for path in sorted(found, reverse=True)}
    return CorpusFiles(paths=tuple(sorted(paths.values())), passed_over=tuple(sorted(passed_over - found)))


def _require_glob(argument: str, folder: Path, run: Path | None) -> None:
    """Raise CorpusError if a folder of the run was named as the corpus; a glob may match one, which is left out."""
    if Path(argument).exists():
        where = "is the folder of the run" if run and folder.samefile(run) else f"is inside the run {run}"
        raise CorpusError(f"{folder} {where}, which is no part of the corpus. Give other text, or another --run.")


def _files_inside(folder: Path, outside: Path | None) -> set[Path]:
    found: set[Path] = set()
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found.update(Path(parent, name) for name in names if not name.startswith("."))
    return {path for path in found if path.is_file() and outside not in path.resolve().parents}


def _raise(error: OSError) -> None:
    """Raise the error of an unreadable folder, which os.walk would silently skip."""
    raise error


def _expand(argument: str) -> list[Path]:
    path = Path(argument)
    if path.exists():
        return [path]
    matches = [Path(match) for match in glob.glob(argument, recursive=True)]  # noqa: PTH207
    if not matches:
        raise CorpusError(
            f"{argument} does not exist. Check the path; it is taken from the current folder {Path.cwd()}."
        )
    return matches


def iter_lines(path: Path, *, drop_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without line ends, decompressed according to its suffix.

    Lines end at LF, with or without a CR before it, and nowhere else. With `drop_mark` U+FEFF at the start is a byte
    order mark; in segmented files it is a character.
    """
    offset = 0
    for number, raw in enumerate(_iter_raw_lines(path), start=1):
        has_mark = drop_mark and number == 1 and raw.startswith(codecs.BOM_UTF8)
        start = len(codecs.BOM_UTF8) if has_mark else 0
        try:
            yield raw[start:].decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte = offset + start + error.start
            raise CorpusError(
                f"{path}: line {number}, byte {byte} (0x{raw[start + error.start]:02x}) is not UTF-8."
                f" Convert the file first, for example: iconv -f GB18030 -t UTF-8 OLD > NEW"
            ) from None
        offset += len(raw)


def _iter_raw_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if path.suffix in COMPRESSED_SUFFIXES:
            yield from unpacked(file, path.suffix, str(path), path.stat().st_size)
        else:
            yield from file
