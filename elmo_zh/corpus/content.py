"""The bytes of one file, what its name and its first bytes reveal, and the error for files that are not a corpus."""

import importlib
import mimetypes
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from elmo_zh.choices import CORPUS_FORMATS
from elmo_zh.errors import CorpusError
from elmo_zh.invocation import needs
from elmo_zh.language import N_, _


@dataclass(frozen=True, kw_only=True)
class Content:
    """The bytes of one file, which can be read more than once."""

    name: str
    file_name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]
    is_named: bool  # Whether the user named this file rather than a folder or an archive that holds it
    member: str = ""  # Its path within its archive, on one line; empty outside archives
    encoding: str = ""  # Its encoding, if we wrote the bytes ourselves


class UnsuitableError(CorpusError):
    """A file that cannot be read as a corpus: an error if the user named it; otherwise callers may skip it.

    Args:
        name: Name of the file.
        reason: Reason in English, translated for display; records count files by it.
        advice: The next step.
        details: This file's particulars, shown in parentheses.
    """

    def __init__(self, name: str, reason: str, advice: str, details: str = "") -> None:
        shown = f"{_(reason)} ({details})" if details else _(reason)
        super().__init__(_("{name}: {reason}. {advice}").format(name=name, reason=shown, advice=advice))
        self.reason = reason


TOO_LARGE = N_("too large to be read in its format")
CONVERT = N_("Convert it to plain text, or to CSV if it is a table; unpack it if it is an archive.")
CORRECT = N_("Correct the file, or specify its format: --input-format NAME")
# The first bytes of files that are not text, with the kind of file.
_FOREIGN = {
    (b"%PDF-",): "PDF",
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf"): "DOC, RTF",
    (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*"): "PNG, JPEG, GIF, TIFF",
    (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"): "ELF, Mach-O",
    (b"SQLite format 3\0",): "SQLite",
    (b"\x89HDF\r\n\x1a\n", b"\x93NUMPY"): "HDF5, NumPy",
    (b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"): "7z, RAR",
}


def refuse_foreign(content: Content) -> None:
    """Raise UnsuitableError for a file whose first bytes show that it is not text, whatever its name."""
    with content.open() as stream:
        head = stream.read(64)
    for starts, kind in _FOREIGN.items():
        if head.startswith(starts):
            raise UnsuitableError(content.name, kind, _(CONVERT))


def too_long(place: str, longest: int) -> CorpusError:
    """Return the error for a line, a record or a page that is too long to read."""
    message = _(
        "{place} is longer than {longest:,} characters. Divide it, or check the format of the file: --input-format"
    )
    return CorpusError(message.format(place=place, longest=longest))


def import_extra(module: str, what: str, extra: str = "corpus") -> Any:
    """Import and return a module of an extra; if it is missing, raise CorpusError, which says that `what` needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CorpusError(needs(what, error.name or module, extra)) from None


COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".tzst")
EXCEL_SUFFIX, PARQUET_SUFFIX = ".xlsx", ".parquet"

# Multistream dumps come with a file of offsets.
_DUMP_INDEX = re.compile(r"-multistream-index\d*\.txt$")


def columns_of_name(pattern: str, name: str) -> dict[str, str]:
    """Return the values in a file name that fits a pattern such as {year}_{author}.txt; otherwise raise CorpusError.

    >>> columns_of_name("{year}_{author}.txt", "texts/1921_鲁迅.txt")
    {'year': '1921', 'author': '鲁迅'}
    """
    parts = re.split(r"{(\w+)}", pattern)
    if len(parts) == 1 or len({*parts[1::2]}) < len(parts[1::2]) or not all(map(str.isidentifier, parts[1::2])):
        raise CorpusError.unexpected(f"--from-name {pattern!r}", "'{year}_{author}.txt'")
    expression = "".join(f"(?P<{part}>.+?)" if odd % 2 else re.escape(part) for odd, part in enumerate(parts))
    found = re.fullmatch(expression, PurePosixPath(name).name)
    if found is None:
        raise CorpusError.unexpected(name, f"--from-name {pattern!r}")
    return found.groupdict()


@cache
def _format_of_suffix() -> dict[str, str]:
    """Return the format name for each suffix; built-in formats take precedence over plug-ins."""
    found: dict[str, str] = {}
    for name in CORPUS_FORMATS.names():
        for suffix in CORPUS_FORMATS.load(name).suffixes:
            found.setdefault(suffix, name)
    return found


def format_of_name(name: str) -> str | None:
    """Return the corpus format indicated by a file's suffix, ignoring compression, or None."""
    return _format_of_suffix().get(suffix_of(name))


def without_compression(name: str) -> str:
    """Return a file's name in lower case, without its folder and its compression suffix."""
    name = PurePosixPath(name).name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name, ignoring compression: ".csv" for "a.csv.gz"; empty if there is no suffix."""
    return PurePosixPath(without_compression(name)).suffix


def is_corpus_name(name: str) -> bool:
    """Return whether a file found in a folder should be read: one with a known suffix or none, except dump indexes."""
    suffix = suffix_of(name)
    if _DUMP_INDEX.search(without_compression(name)):
        return False
    return not suffix or suffix in _format_of_suffix() or suffix in (*ARCHIVE_SUFFIXES, EXCEL_SUFFIX, PARQUET_SUFFIX)


def is_archive_name(name: str) -> bool:
    """Return whether a file's name marks it as an archive."""
    return suffix_of(name) in ARCHIVE_SUFFIXES


def is_other_name(name: str) -> bool:
    """Return whether a name shows that a file is not a corpus but, for example, an image, a program or a document."""
    if is_corpus_name(name):
        return False
    # Python's own table, not the machine's, so that the result is the same everywhere.
    kind, _ = mimetypes.MimeTypes().guess_type(without_compression(name))
    return kind is not None or bool(_DUMP_INDEX.search(without_compression(name)))


def shown(name: str) -> str:
    """Return a name on one line, with unprintable characters and undecodable bytes escaped."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in name)


def is_hidden(path: PurePosixPath) -> bool:
    """Return whether a name in a path starts with a dot (except ..) or is the __MACOSX of macOS archives."""
    return any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in path.parts)
