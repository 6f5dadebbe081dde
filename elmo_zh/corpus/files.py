"""Find files, and read lines of UTF-8 from plain and compressed ones; no line is ever skipped."""

import codecs
import glob
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from elmo_zh.corpus.packing import COMPRESSED_SUFFIXES, unpacked
from elmo_zh.errors import CorpusError

TEXT_SUFFIXES = (".txt", ".text", "")


@dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """The files of a corpus in reading order, and those in its folders that are no text by their names."""

    paths: tuple[Path, ...]
    passed_over: tuple[Path, ...]

    def total_bytes(self) -> int:
        """Return the size on disk, compressed where the files are."""
        return sum(path.stat().st_size for path in self.paths)


def find_corpus_files(arguments: Sequence[str], leave_out: Path | None = None) -> CorpusFiles:
    """Return the plain text files that paths and globs stand for, as `find_files` does.

    Of a folder those files are taken that end in .txt, .text or nothing, or in one of these and .gz, .bz2, .xz or
    .zst.
    """
    return find_files(arguments, leave_out, _is_text_name, ".txt, also .txt.gz, .bz2, .xz, .zst")


def find_files(
    arguments: Sequence[str], leave_out: Path | None, is_taken: Callable[[str], bool], kinds: str
) -> CorpusFiles:
    """Return the files that paths and globs stand for, each once, sorted by path.

    A file named directly is taken whatever its name. A folder is searched to any depth; hidden files are not taken.

    Args:
        arguments: Files, folders and globs.
        leave_out: A folder that is no part of the corpus even where it stands inside, such as the run's.
        is_taken: Tells by its name whether a file of a folder is taken.
        kinds: What names are taken, for the error.

    Raises:
        CorpusError: For a path that does not exist, a glob that matches nothing, a folder without text.
    """
    outside = leave_out.resolve() if leave_out else None
    found: set[Path] = set()
    passed_over: set[Path] = set()
    for argument in arguments:
        for path in _expand(argument):
            if path.is_dir():
                inside = _files_inside(path, outside)
                text = {p for p in inside if is_taken(p.name)}
                if not text:
                    raise CorpusError(
                        f"{path} holds no text files ({kinds}; {len(inside)} other files)."
                        " Give files by name, or a folder with text."
                    )
                found.update(text)
                passed_over.update(inside - text)
            else:
                found.add(path)
    # One file under two names, relative and absolute or through a link, is read once.
    paths = {path.resolve(): path for path in sorted(found, reverse=True)}
    return CorpusFiles(paths=tuple(sorted(paths.values())), passed_over=tuple(sorted(passed_over - found)))


def _files_inside(folder: Path, outside: Path | None) -> set[Path]:
    found: set[Path] = set()
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found.update(Path(parent, name) for name in names if not name.startswith("."))
    return {path for path in found if path.is_file() and outside not in path.resolve().parents}


def _raise(error: OSError) -> None:
    """Tell of a folder that cannot be read, which would else be left out without a word."""
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


def _is_text_name(name: str) -> bool:
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return Path(name).suffix.lower() in TEXT_SUFFIXES


def iter_lines(path: Path, *, drop_mark: bool = True, digest: "Digest | None" = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line ends, decompressed by its suffix.

    Lines end at LF, with or without a CR before it, and nowhere else.

    Args:
        path: The file.
        drop_mark: Take U+FEFF at the start for a byte order mark; false in files of our own, where it is a character.
        digest: Updated with the bytes of the file, compressed where they are; whole after the last line.

    Raises:
        CorpusError: With file, line and byte for bytes that are not UTF-8; for a damaged compressed file.
    """
    offset = 0
    for number, raw in enumerate(_iter_raw_lines(path, digest), start=1):
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


def _iter_raw_lines(path: Path, digest: "Digest | None") -> Iterator[bytes]:
    with path.open("rb") as opened:
        file = opened if digest is None else cast(BinaryIO, io.BufferedReader(_DigestedFile(opened, digest)))
        if path.suffix in COMPRESSED_SUFFIXES:
            yield from unpacked(file, path.suffix, str(path), path.stat().st_size)
        else:
            yield from file


class Digest(Protocol):
    """The part of hashlib's objects that is used here."""

    def update(self, data: memoryview, /) -> None:
        """Add bytes."""


class _DigestedFile(io.RawIOBase):
    """A file whose bytes go into a digest as they are read."""

    def __init__(self, file: BinaryIO, digest: Digest) -> None:
        self._file, self._digest = file, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._digest.update(memoryview(buffer)[:count])
        return int(count)
