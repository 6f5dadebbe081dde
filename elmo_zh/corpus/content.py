"""One file's bytes to be read, from disk or out of an archive, and why a file may be no corpus."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO

from elmo_zh.errors import CorpusError


@dataclass(frozen=True, kw_only=True)
class Content:
    """Bytes that can be read more than once.

    Attributes:
        name: What messages and records call it.
        file_name: The file's own name, whose suffix tells of its format.
        open: Opens the unpacked bytes at their start.
        is_named: Whether the user gave this very file, and not a folder or an archive that holds it.
    """

    name: str
    file_name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]
    is_named: bool


class UnsuitableError(CorpusError):
    """A file that is sound but no corpus: passed over where it was found, an error where it was named.

    Args:
        name: The file.
        reason: A few words for the count of what was passed over.
        advice: What the user can do, for the error.
    """

    def __init__(self, name: str, reason: str, advice: str) -> None:
        super().__init__(f"{name}: {reason}. {advice}")
        self.reason = reason
