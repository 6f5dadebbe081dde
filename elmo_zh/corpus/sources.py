"""Find the sources of a corpus: the files that paths, folders and globs name, and standard input."""

import glob
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from elmo_zh.corpus.content import COMPRESSED_SUFFIXES, Content, is_corpus_name, shown
from elmo_zh.corpus.counts import Tally, skipped_lines
from elmo_zh.corpus.packing import NO_TEXT_NAMES, compression_of, unpacked, wrong_name
from elmo_zh.errors import INSIDE_RUN, CorpusError
from elmo_zh.language import N_, _
from elmo_zh.run.files import PARTS, UNFINISHED, make_folder, remove
from elmo_zh.run.outputs import kind_of
from elmo_zh.run.reporter import Reporter

STANDARD_INPUT = "standard input"
OUTPUTS = N_("elmo-zh outputs")


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of a corpus on disk."""

    name: str
    path: Path
    is_named: bool  # Whether the user named this file, not a folder or a glob
    is_local: bool = True  # Whether this is the user's own file, not a copy of standard input

    @property
    def file_name(self) -> str:
        """Name of the file without its folder."""
        return self.path.name

    def content(self) -> Content:
        """Return the file as content."""
        return Content(name=self.name, file_name=self.file_name, open=self.open, is_named=self.is_named)

    def open_packed(self) -> BinaryIO:
        """Open the bytes as they are on disk."""
        return self.path.open("rb")

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the bytes, decompressed if necessary; raise CorpusError if only the suffix says that they are packed."""
        with self.open_packed() as packed:
            head = packed.read(6)
            packed.seek(0)
            compression = compression_of(head)
            suffix = Path(self.file_name.lower()).suffix
            if compression is None and head and suffix in COMPRESSED_SUFFIXES:
                raise wrong_name(self.name, suffix)
            yield unpacked(packed, compression, self.name, self.path.stat().st_size) if compression else packed


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
            raise CorpusError.missing(source.name) from None
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
        """Tell the user about skipped files and outputs."""
        # A file whose name begins with a text's name is most likely an output that an earlier command made from it.
        texts = {source.path for source in self.sources}
        skipped = Tally()
        for path in self.passed_over:
            if texts.isdisjoint(_without_suffixes(path)):
                skipped.pass_over(NO_TEXT_NAMES, path.name)
        for path in self.outputs:
            skipped.pass_over(OUTPUTS, str(path))
        for line in skipped_lines(skipped.passed_over):
            reporter.note(line)


def _without_suffixes(path: Path) -> Iterator[Path]:
    """Yield a path without its last suffix, without the last two, and so on."""
    while path.suffix:
        yield (path := path.with_suffix(""))


@contextmanager
def gathered_sources(arguments: Sequence[str], leave_out: Path, fetched: Path) -> Iterator[Sources]:
    """Find the sources that arguments name; standard input (-) is kept in `fetched` until the block ends."""
    local = [argument for argument in arguments if argument != "-"]
    sources = find_sources(local, leave_out) if local else Sources(sources=())
    remove(fetched)
    try:
        read = [spooled_input(fetched / "stdin", STANDARD_INPUT)] if "-" in arguments else []
        names = (Path(argument).name if Path(argument).is_absolute() else argument for argument in arguments)
        typed = tuple(STANDARD_INPUT if name == "-" else shown(name) for name in names)
        yield replace(sources, sources=(*sources.sources, *read), arguments=typed)
    finally:
        remove(fetched)


def find_sources(arguments: Sequence[str], leave_out: Path | None = None) -> Sources:
    """Find the files that paths and globs name, each once; in folders, separate texts from other files and outputs."""
    texts, others, outputs = _find_files(arguments, leave_out)
    # A file with two names (relative and absolute, or a link) is read once.
    paths = sorted({path.resolve(): path for path in sorted(texts, reverse=True)}.values())
    named = {Path(argument) for argument in arguments}
    sources = tuple(Source(name=shown(str(path)), path=path, is_named=path in named) for path in paths)
    for source in sources:
        if source.path.exists() and not source.path.is_file():
            raise CorpusError(
                _(
                    "{name} is a pipe or a device, which can be read only once. Save its content in a file, and use"
                    " that file."
                ).format(name=source.name)
            )
    passed_over, own = tuple(sorted(others - texts)), tuple(sorted(outputs - texts))
    return Sources(sources=sources, passed_over=passed_over, outputs=own)


# What is found in folders: files to read, files whose names do not suggest text, and elmo-zh's own outputs.
_TEXT, _OTHER, _OUTPUT = range(3)


def _iter_folder(folder: Path, outside: Path | None) -> Iterator[tuple[Path, int]]:
    """Yield each visible file and output folder under a folder, except in `outside`, with its kind."""

    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        here = Path(parent).resolve()
        if outside in (here, *here.parents):
            folders.clear()
        elif _is_output(Path(parent), {*folders, *names}):
            yield Path(parent), _OUTPUT
            folders.clear()
        else:
            folders[:] = [name for name in folders if not name.startswith(".")]
            for path in (Path(parent, name) for name in names if not name.startswith(".")):
                if path.is_file() and outside not in path.resolve().parents:
                    yield path, _kind_of_file(path)


def _kind_of_file(path: Path) -> int:
    if not is_corpus_name(path.name):
        return _OTHER
    # news.txt.tsv beside news.txt is an output made from it. Other tables and pages are read, whoever wrote them.
    texts = _without_suffixes(path) if path.name.endswith(_SUFFIXES_OF_OUTPUTS) else ()
    return _OUTPUT if any(is_corpus_name(text.name) and text.is_file() for text in texts) else _TEXT


def _find_files(arguments: Sequence[str], leave_out: Path | None) -> tuple[set[Path], set[Path], set[Path]]:
    """Return the files to read, and other files and outputs in folders; raise CorpusError if a folder has no text."""
    outside = leave_out.resolve() if leave_out else None
    found: tuple[set[Path], set[Path], set[Path]] = (set(), set(), set())
    for path, is_named in (pair for argument in arguments for pair in _expand(argument)):
        if not path.is_dir():
            found[_TEXT].add(path)
        elif outside not in (path.resolve(), *path.resolve().parents):
            inside = list(_iter_folder(path, outside))
            if all(kind != _TEXT for _file, kind in inside):
                message = _("{path} contains no text files. Name the files to read, or use a folder with text.")
                raise CorpusError(message.format(path=path))
            for file, kind in inside:
                found[kind].add(file)
        elif is_named:  # a folder of the run that a glob matches is merely left out
            raise CorpusError(_(INSIDE_RUN).format(path=path, run=leave_out))
    return found


# Suffixes of texts that the outputs of commands have too.
_SUFFIXES_OF_OUTPUTS = (".tsv", ".csv", ".jsonl", ".html", ".parquet")


def _is_output(path: Path, names: Collection[str]) -> bool:
    """Return whether a folder with these files and folders is a run, a model, an index or another output."""
    if path.name.endswith(UNFINISHED) or (path.name.endswith(PARTS) and "manifest.json" in names):
        return True
    return kind_of(path) != ""


def _expand(argument: str) -> list[tuple[Path, bool]]:
    """Return the path that is named (True) or those that match a glob (False); raise CorpusError if nothing matches."""
    path = Path(argument)
    if path.exists():
        return [(path, True)]
    matches = [(Path(match), False) for match in glob.glob(argument, recursive=True)]  # noqa: PTH207
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
        raise CorpusError(_("Standard input is closed. Pipe text into the command, or use a file instead of -."))
    make_folder(path.parent)
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return Source(name=name, path=path, is_named=True, is_local=False)
