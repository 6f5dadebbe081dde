"""The bytes of one file, from disk or from an archive, and the reasons why it cannot be read as a corpus."""

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from elmo_zh.errors import CorpusError
from elmo_zh.extras import install_line

# Modules without a wheel, with the first Python that has none; pyproject.toml leaves them out there.
_WITHOUT_WHEEL = {"mwparserfromhell": (3, 14)}


@dataclass(frozen=True, kw_only=True)
class Content:
    """Bytes that can be read more than once.

    Attributes:
        is_named: Whether the user named this file, not a folder or an archive that holds it.
        member: Its path in its archive, in one line; empty if it is in none.
    """

    name: str
    file_name: str
    open: Callable[[], AbstractContextManager[BinaryIO]]
    is_named: bool
    member: str = ""


class UnsuitableError(CorpusError):
    """A file that is not damaged but cannot be a corpus: skipped if found in a folder, an error if named."""

    def __init__(self, name: str, reason: str, advice: str) -> None:
        super().__init__(f"{name}: {reason}. {advice}")
        self.reason = reason


def import_extra(module: str, what: str) -> Any:
    """Return a module of the extra `corpus`, without which `what` cannot be read."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if sys.version_info >= _WITHOUT_WHEEL.get(module, (4,)):
            version = ".".join(map(str, sys.version_info[:2]))
            raise CorpusError(
                f"{what} needs {module}, which cannot be installed on Python {version}."
                " Use Python 3.13: make clean, then make train PYTHON=python3.13"
            ) from None
        raise CorpusError(
            f"{what} needs {error.name or module}, which is not installed. Install it with: {install_line('corpus')}"
        ) from None
