"""The bytes of one file, from disk or from an archive, and the reasons why it cannot be read as a corpus."""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from elmo_zh.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Content:
    """Bytes that can be read more than once.

    Attributes:
        name: Name in messages and records.
        file_name: The file's own name; its suffix tells the format.
        open: Opens the unpacked bytes at the start.
        is_named: Whether the user named this file, not a folder or an archive that holds it.
    """

    name: str
    file_name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]
    is_named: bool


class UnsuitableError(CorpusError):
    """A file that is not damaged but cannot be a corpus: skipped if found in a folder, an error if named.

    Args:
        name: Name of the file.
        reason: The reason in a few words, as skipped files are counted.
        advice: What the user can do, for the message.
    """

    def __init__(self, name: str, reason: str, advice: str) -> None:
        super().__init__(f"{name}: {reason}. {advice}")
        self.reason = reason


def import_extra(module: str, what: str) -> Any:
    """Return a module of the extra `corpus`, which only some formats need.

    Args:
        module: Name of the module.
        what: What cannot be read without it, for the message.

    Raises:
        CorpusError: If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CorpusError(
            f"{what} needs {error.name or module}, which is not installed."
            ' Install it with: pip install "elmo-zh[corpus]"'
        ) from None
