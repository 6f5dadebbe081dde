"""Find the sources of a corpus: files, folders, standard input and network addresses."""

import glob
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from elmo_zh.corpus.content import COMPRESSED_SUFFIXES, import_extra, is_corpus_name, kinds_shown, shown
from elmo_zh.corpus.counts import PassedOver
from elmo_zh.corpus.packing import compression_of, unpacked
from elmo_zh.errors import CorpusError
from elmo_zh.language import N_, _, ngettext
from elmo_zh.run.files import PARTS, UNFINISHED, make_folder, remove
from elmo_zh.run.mark import kind_of
from elmo_zh.run.reporter import Reporter, first_ten

STANDARD_INPUT = "standard input"
_TIMEOUT_SECONDS = 60
_MOST_REASON_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of a corpus on disk."""

    name: str
    path: Path
    file_name: str
    is_named: bool  # Whether the user named this file, not a folder that holds it
    is_local: bool = True  # Whether this is the user's own file; fetched files exist only while they are read

    def open_packed(self) -> BinaryIO:
        """Open the bytes as they are on disk."""
        return self.path.open("rb")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes, decompressed if the file is compressed, whatever its name."""
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
    """The size and modification time of a source's file, which reveal changes without the file being read."""

    num_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, source: Source) -> "Stamp":
        """Return the stamp of a source; raise CorpusError if its file no longer exists."""
        try:
            status = source.path.stat()
        except FileNotFoundError:
            raise CorpusError(
                _("{name} no longer exists. Restore it, or leave it out.").format(name=source.name)
            ) from None
        return cls(num_bytes=status.st_size, modified_ns=status.st_mtime_ns)

    def require(self, source: Source) -> None:
        """Raise CorpusError if the source's file has changed or no longer exists."""
        if Stamp.of(source) != self:
            raise changed_error(source.name)


def changed_error(name: str) -> CorpusError:
    """Return the error for a file that changed while it was being read."""
    return CorpusError(
        _(
            "{name} changed while it was being read. Run the command again when no other program is writing to it."
        ).format(name=name)
    )


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The sources of a corpus in reading order, and the other files and outputs in its folders."""

    sources: tuple[Source, ...]
    passed_over: tuple[Path, ...] = ()  # Files whose names do not suggest text
    outputs: tuple[Path, ...] = ()  # Files and folders that elmo-zh has written
    # The names as the user typed them; absolute paths without their folders, which are private
    arguments: tuple[str, ...] = ()

    def total_bytes(self) -> int:
        """Return the total size on disk in bytes; compressed files are counted at their compressed size."""
        return sum(source.path.stat().st_size for source in self.sources)

    def report_skipped(self, reporter: Reporter) -> None:
        """Tell the user which files in the given folders are not read."""
        # A file whose name begins with a text's name is most likely an output that an earlier command made from it.
        texts = {source.path for source in self.sources}
        skipped = PassedOver()
        for path in self.passed_over:
            if texts.isdisjoint(_without_suffixes(path)):
                skipped.add(N_("files whose names do not suggest text"), path.name)
        for line in skipped.summary_lines():
            reporter.note(line)
        if self.outputs:
            named = first_ten(list(map(str, self.outputs)))
            reporter.note(_("Skipped outputs of elmo-zh among the texts: {names}").format(names=named))


def _without_suffixes(path: Path) -> Iterator[Path]:
    """Yield a path without its last suffix, without the last two, and so on."""
    while path.suffix:
        yield (path := path.with_suffix(""))


@contextmanager
def gathered_sources(arguments: Sequence[str], leave_out: Path, fetched: Path) -> Iterator[Sources]:
    """Find the sources that arguments name; downloads and standard input are kept in `fetched` until the block ends."""
    addresses = sorted({argument for argument in arguments if "://" in argument})
    local = [argument for argument in arguments if argument != "-" and "://" not in argument]
    found = find_sources(local, leave_out) if local else Sources(sources=())
    remove(fetched)
    try:
        remote = [_fetch(address, fetched / f"{number}") for number, address in enumerate(addresses)]
        if "-" in arguments:
            remote.append(spooled_input(fetched / "stdin", STANDARD_INPUT))
        names = (Path(argument).name if Path(argument).is_absolute() else argument for argument in arguments)
        typed = tuple(STANDARD_INPUT if name == "-" else shown(name) for name in names)
        yield replace(found, sources=(*found.sources, *remote), arguments=typed)
    finally:
        remove(fetched)


def find_sources(arguments: Sequence[str], leave_out: Path | None = None) -> Sources:
    """Return the files that paths and globs name, each once; from folders, only texts not written by elmo-zh."""
    found = _find_files(arguments, leave_out)
    # A file with two names (relative and absolute, or a link) is read once.
    paths = sorted({path.resolve(): path for path in sorted(found.texts, reverse=True)}.values())
    named = {Path(argument) for argument in arguments}
    sources = tuple(
        Source(name=shown(str(path)), path=path, file_name=path.name, is_named=path in named) for path in paths
    )
    for source in sources:
        if source.path.exists() and not source.path.is_file():
            raise CorpusError(
                _(
                    "{name} is a pipe or a device, which can be read only once. Pass its content on standard input"
                    " instead: - < {name}"
                ).format(name=source.name)
            )
    passed_over, outputs = (tuple(sorted(each - found.texts)) for each in (found.others, found.outputs))
    return Sources(sources=sources, passed_over=passed_over, outputs=outputs)


@dataclass(frozen=True)
class _Found:
    """Files to read, files in folders whose names do not suggest text, and elmo-zh's own outputs in folders."""

    texts: set[Path] = field(default_factory=set)
    others: set[Path] = field(default_factory=set)
    outputs: set[Path] = field(default_factory=set)


def _find_files(arguments: Sequence[str], leave_out: Path | None) -> _Found:
    outside = leave_out.resolve() if leave_out else None
    found = _Found()
    for argument in arguments:
        for path in _expand(argument):
            if path.is_dir():
                if outside in (path.resolve(), *path.resolve().parents):
                    _require_glob(argument, path, leave_out)
                    continue
                inside = _files_inside(path, outside)
                if not inside.texts:
                    raise CorpusError(
                        ngettext(
                            "{path} contains no text files ({kinds}), only {count:,} other. Give files by name, or a"
                            " folder with text.",
                            "{path} contains no text files ({kinds}), only {count:,} others. Give files by name, or a"
                            " folder with text.",
                            len(inside.others) + len(inside.outputs),
                        ).format(path=path, kinds=kinds_shown(), count=len(inside.others) + len(inside.outputs))
                    )
                found.texts.update(inside.texts)
                found.others.update(inside.others)
                found.outputs.update(inside.outputs)
            else:
                found.texts.add(path)
    return found


def _require_glob(argument: str, folder: Path, run: Path | None) -> None:
    """Raise CorpusError if a folder of the run was named as the corpus; one matched by a glob is merely left out."""
    if Path(argument).exists():
        raise CorpusError(
            _(
                "{folder} is in the run {run}, so it cannot be in the corpus. Give different text, or another --run."
            ).format(folder=folder, run=run)
        )


def _files_inside(folder: Path, outside: Path | None) -> _Found:
    found = _Found()
    for parent, folders, names in os.walk(folder, onerror=_raise):
        here = Path(parent).resolve()
        if outside in (here, *here.parents):
            folders.clear()
        elif _is_own_folder(Path(parent), {*folders, *names}):
            found.outputs.add(Path(parent))
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths = [Path(parent, name) for name in names if not name.startswith(".")]
            for path in paths:
                if path.is_file() and outside not in path.resolve().parents:
                    _kind_of(found, path).add(path)
    return found


def _kind_of(found: _Found, path: Path) -> set[Path]:
    if not is_corpus_name(path.name):
        return found.others
    # news.txt.tsv beside news.txt is an output made from it. Other tables and pages are read, whoever wrote them.
    is_output = path.name.endswith(_SUFFIXES) and any(
        is_corpus_name(text.name) and text.is_file() for text in _without_suffixes(path)
    )
    return found.outputs if is_output else found.texts


# Suffixes of texts that the outputs of commands have too.
_SUFFIXES = (".tsv", ".csv", ".jsonl", ".html")


def _is_own_folder(path: Path, names: Collection[str]) -> bool:
    """Return whether a folder with these files and folders is a run, a model, an index or another output."""
    if path.name.endswith(UNFINISHED) or (path.name.endswith(PARTS) and "manifest.json" in names):
        return True
    return kind_of(path) != ""


def _raise(error: OSError) -> None:
    """Raise the error about an unreadable folder, which os.walk would skip silently."""
    raise error


def _expand(argument: str) -> list[Path]:
    path = Path(argument)
    if path.exists():
        return [path]
    matches = [Path(match) for match in glob.glob(argument, recursive=True)]  # noqa: PTH207
    if not matches:
        raise CorpusError(
            _(
                "{path} does not exist (looked in {folder}). Check the path. If it contains spaces, put it in quotes."
            ).format(path=argument, folder=path.parent if path.is_absolute() else Path.cwd())
        )
    return matches


def spooled_input(path: Path, name: str) -> Source:
    """Return standard input as a source, copied to a new file so that it can be read more than once."""
    if sys.stdin is None:
        raise CorpusError(_("Standard input is closed. Pipe text into the command, or give a file instead of -."))
    make_folder(path.parent)
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Source(name=name, path=path, file_name="stdin", is_named=True, is_local=False)


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
            _("{address} cannot be fetched ({reason}). Check the address and the network.").format(
                address=address, reason=_reason(error, address)
            )
        ) from None
    file_name = unquote(Path(urlsplit(address).path).name)
    return Source(name=address, path=path, file_name=file_name, is_named=True, is_local=False)


def _reason(error: BaseException, address: str) -> str:
    """Return the reason why a fetch failed, preferably the system error inside the library's errors."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    text = " ".join(str(error).replace(f" for url: {address}", "").split())
    return text if len(text) <= _MOST_REASON_CHARACTERS else f"{text[:_MOST_REASON_CHARACTERS]}…"
