"""The sources of a corpus: files, folders, standard input and network addresses."""

import glob
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from elmo_zh.corpus.content import import_extra
from elmo_zh.corpus.names import is_corpus_name, kinds_shown, shown
from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES, compression_of, unpacked
from elmo_zh.errors import CorpusError
from elmo_zh.run.files import make_folder, remove
from elmo_zh.run.reporter import counted

STANDARD_INPUT = "standard input"
_TIMEOUT_SECONDS = 60
_MOST_REASON_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of a corpus on disk.

    Attributes:
        is_named: Whether the user named this file, not a folder that holds it.
        is_local: Whether the path is the user's own file; fetched files are there only temporarily.
    """

    name: str
    path: Path
    file_name: str
    is_named: bool
    is_local: bool = True

    def open_packed(self) -> BinaryIO:
        """Open the bytes as they are on disk."""
        return self.path.open("rb")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes, unpacked if the file is compressed, whatever its name."""
        with self.open_packed() as packed:
            head = packed.read(6)
            packed.seek(0)
            compression = compression_of(head)
            named = next((suffix for suffix in COMPRESSED_SUFFIXES if self.file_name.lower().endswith(suffix)), None)
            if compression is None and (named is None or not head):
                yield packed
                return
            with unpacked(packed, compression or str(named), self.name, self.path.stat().st_size) as content:
                yield content


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """Size and time of a source's file, which show without reading it whether it has changed."""

    num_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, source: Source) -> "Stamp":
        """Return the stamp of a source."""
        try:
            status = source.path.stat()
        except FileNotFoundError:
            raise CorpusError(f"{source.name} is gone. Run the command again without it, or restore it.") from None
        return cls(num_bytes=status.st_size, modified_ns=status.st_mtime_ns)

    def require(self, source: Source) -> None:
        """Raise CorpusError if the source's file has changed or is gone."""
        if Stamp.of(source) != self:
            raise changed_error(source.name)


def changed_error(name: str) -> CorpusError:
    """Return the error for a file that changed while it was read."""
    return CorpusError(f"{name} changed while it was read. Run the command again when no other program writes it.")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The sources of a corpus in reading order, and the files in its folders whose names do not suggest text."""

    sources: tuple[Source, ...]
    passed_over: tuple[Path, ...]

    def total_bytes(self) -> int:
        """Return the size on disk, compressed where the files are."""
        return sum(source.path.stat().st_size for source in self.sources)


@contextmanager
def gathered_sources(arguments: Sequence[str], leave_out: Path, fetched: Path) -> Iterator[Sources]:
    """Yield the sources that arguments name: files sorted by path, then addresses, then standard input.

    Folders exclude what is in `leave_out`, such as the run. Downloads and standard input are kept in the folder
    `fetched`, which is removed at the end.
    """
    addresses = sorted({argument for argument in arguments if "://" in argument})
    local = [argument for argument in arguments if argument != "-" and "://" not in argument]
    found = find_sources(local, leave_out) if local else Sources(sources=(), passed_over=())
    remove(fetched)
    try:
        remote = [_fetch(address, fetched / f"{number}") for number, address in enumerate(addresses)]
        if "-" in arguments:
            remote.append(_spool(fetched / "stdin"))
        yield Sources(sources=(*found.sources, *remote), passed_over=found.passed_over)
    finally:
        remove(fetched)


def find_sources(arguments: Sequence[str], leave_out: Path | None = None) -> Sources:
    """Return the files that paths and globs name, each once, sorted by path.

    A file named directly is always taken. A folder is searched to any depth for files whose names suggest text, except
    hidden files and `leave_out`.
    """
    paths, passed_over = _find_files(arguments, leave_out)
    named = {Path(argument) for argument in arguments}
    sources = tuple(
        Source(name=shown(str(path)), path=path, file_name=path.name, is_named=path in named) for path in paths
    )
    for source in sources:
        if source.path.exists() and not source.path.is_file():
            raise CorpusError(
                f"{source.name} is a pipe or a device, which can be read only once. Give what comes out of it on"
                f" standard input, with - as its name: - < {source.name}"
            )
    return Sources(sources=sources, passed_over=tuple(passed_over))


def _find_files(arguments: Sequence[str], leave_out: Path | None) -> tuple[list[Path], list[Path]]:
    """Return the files that are taken, and those in folders whose names do not suggest text, both sorted."""
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
                text = {p for p in inside if is_corpus_name(p.name)}
                if not text:
                    raise CorpusError(
                        f"{path} holds no text files ({kinds_shown()}; {counted(len(inside), 'other file')})."
                        " Give files by name, or a folder with text."
                    )
                found.update(text)
                passed_over.update(inside - text)
            else:
                found.add(path)
    # A file with two names (relative and absolute, or a link) is read once.
    paths = {path.resolve(): path for path in sorted(found, reverse=True)}
    return sorted(paths.values()), sorted(passed_over - found)


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


def _spool(path: Path) -> Source:
    if sys.stdin is None:
        raise CorpusError("Standard input is closed. Give it something, or a file instead of -.")
    make_folder(path.parent)
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Source(name=STANDARD_INPUT, path=path, file_name="stdin", is_named=True, is_local=False)


def _fetch(address: str, path: Path) -> Source:
    smart_open = import_extra("smart_open", address)
    scheme = urlsplit(address).scheme
    failures: tuple[type[Exception], ...] = (OSError, ValueError, NotImplementedError, ImportError)
    if scheme in ("http", "https"):
        import_extra("requests", address)
        # Errors during the transfer are raised by urllib3, below requests.
        failures = (*failures, import_extra("urllib3.exceptions", address).HTTPError)
    parameters = {"timeout": _TIMEOUT_SECONDS} if scheme in ("http", "https") else {}
    make_folder(path.parent)
    try:
        with (
            smart_open.open(address, "rb", compression="disable", transport_params=parameters) as remote,
            path.open("wb") as file,
        ):
            shutil.copyfileobj(remote, file)
    except failures as error:
        raise CorpusError(
            f"{address} cannot be fetched ({_reason(error, address)}). Check the address and the network."
        ) from None
    file_name = unquote(Path(urlsplit(address).path).name)
    return Source(name=address, path=path, file_name=file_name, is_named=True, is_local=False)


def _reason(error: BaseException, address: str) -> str:
    """Return why an address cannot be fetched: the system's reason if there is one, which libraries wrap several times.

    Their own messages repeat the address, which may be long.
    """
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    text = " ".join(str(error).replace(f" for url: {address}", "").split())
    return text if len(text) <= _MOST_REASON_CHARACTERS else f"{text[:_MOST_REASON_CHARACTERS]}…"
