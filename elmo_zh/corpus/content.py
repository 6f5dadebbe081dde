"""The bytes of one file, from disk or from an archive, and the reasons why it cannot be read as a corpus."""

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from elmo_zh.errors import CorpusError
from elmo_zh.invocation import install_line

# Modules that have no wheel from this Python version on; pyproject.toml leaves them out there.
_WITHOUT_WHEEL = {"mwparserfromhell": (3, 14)}


@dataclass(frozen=True, kw_only=True)
class Content:
    """The bytes of one file, which can be read more than once."""

    name: str
    file_name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]
    is_named: bool  # Whether the user named this file rather than a folder or an archive that holds it
    member: str = ""  # Its path within its archive, on one line; empty outside archives


class UnsuitableError(CorpusError):
    """A file that is intact but cannot be a corpus: skipped if found in a folder, an error if named."""

    def __init__(self, name: str, reason: str, advice: str) -> None:
        super().__init__(f"{name}: {reason}. {advice}")
        self.reason = reason


# The first bytes of files that are not text, with the kind of file and advice to the user.
_FOREIGN = {
    (b"%PDF-",): ("a PDF file", "Convert it to text, for example with pdftotext, and use the result"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf"): (
        "an office document (.doc, .xls, .rtf)",
        "Save it as plain text (a table as CSV), and use that file",
    ),
    (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*"): (
        "an image",
        "Extract its text with an OCR program, and use the result",
    ),
    (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"): ("a compiled program", "Give a text file"),
    (b"SQLite format 3\0",): (
        "an SQLite database",
        "Export a table: sqlite3 -header -csv FILE 'SELECT ...' > text.csv",
    ),
    (b"\x89HDF\r\n\x1a\n", b"\x93NUMPY"): ("an HDF5 or NumPy file", "Give a text file"),
    (b"PAR1",): ("a Parquet table", "Export its text as CSV or JSON lines"),
    (b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"): ("a 7z or RAR archive", "Unpack it and give the folder"),
}


def refuse_foreign(content: Content) -> None:
    """Raise UnsuitableError for a file whose first bytes show that it is not text, whatever its name."""
    with content.open() as stream:
        head = stream.read(64)
    found = next((told for starts, told in _FOREIGN.items() if head.startswith(starts)), None)
    if found:
        raise UnsuitableError(content.name, found[0], f"{found[1]}.")


def import_extra(module: str, what: str) -> Any:
    """Import and return a module of the extra `corpus`, which is needed to read `what`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if sys.version_info >= _WITHOUT_WHEEL.get(module, (4,)):
            version = ".".join(map(str, sys.version_info[:2]))
            raise CorpusError(
                f"{what} needs {module}, which cannot be installed on Python {version}. Install elmo-zh on Python 3.13."
            ) from None
        raise CorpusError(
            f"{what} needs {error.name or module}, which is not installed. Install it with: {install_line('corpus')}"
        ) from None
