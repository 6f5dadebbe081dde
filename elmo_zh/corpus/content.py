"""The bytes of one file, from disk or from an archive, and the reasons why it cannot be read as a corpus."""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from elmo_zh.errors import CorpusError
from elmo_zh.invocation import install_line
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
    """A file that is intact but cannot be a corpus: skipped if found in a folder, an error if named.

    Args:
        name: Name of the file.
        reason: Reason in English, marked with `N_`; records count files by it.
        advice: The next step.
        details: What is special in this file.
    """

    def __init__(self, name: str, reason: str, advice: str, details: str = "") -> None:
        shown = f"{_(reason)} ({details})" if details else _(reason)
        super().__init__(f"{name}: {shown}. {advice}")
        self.reason = reason


# The first bytes of files that are not text, with the kind of file and advice to the user.
_FOREIGN = {
    (b"%PDF-",): (N_("a PDF file"), N_("Convert it to text, for example with pdftotext.")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf"): (
        N_("an office document"),
        N_("Save it as plain text, or a table as CSV."),
    ),
    (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*"): (
        N_("an image"),
        N_("Extract its text with an OCR program."),
    ),
    (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"): (N_("a compiled program"), N_("Give a text file.")),
    (b"SQLite format 3\0",): (
        N_("an SQLite database"),
        N_("Export a table as CSV: sqlite3 -header -csv FILE 'SELECT ...' > text.csv"),
    ),
    (b"\x89HDF\r\n\x1a\n", b"\x93NUMPY"): (N_("an HDF5 or NumPy file"), N_("Give a text file.")),
    (b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07"): (N_("a 7z or RAR archive"), N_("Unpack it and give the folder.")),
}


def refuse_foreign(content: Content) -> None:
    """Raise UnsuitableError for a file whose first bytes show that it is not text, whatever its name."""
    with content.open() as stream:
        head = stream.read(64)
    for starts, (kind, advice) in _FOREIGN.items():
        if head.startswith(starts):
            raise UnsuitableError(content.name, kind, _(advice))


def import_extra(module: str, what: str, extra: str = "corpus") -> Any:
    """Import and return a module of an extra, which is needed to read `what`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CorpusError(
            _("{what} needs {module}, which is not installed. Install it with: {command}").format(
                what=what, module=error.name or module, command=install_line(extra)
            )
        ) from None
