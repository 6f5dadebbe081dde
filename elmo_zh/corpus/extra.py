"""Libraries that only some formats need, and what to type where one is missing."""

import importlib
import sys
from typing import Any

from elmo_zh.errors import CorpusError
from elmo_zh.extras import install_line

# Modules without a wheel from a version of Python on; pyproject.toml leaves them out there.
_WITHOUT_WHEEL = {"mwparserfromhell": (3, 14)}


def needed(module: str, what: str) -> Any:
    """Return a module of the extra `corpus`.

    Args:
        module: Its name.
        what: What cannot be read without it.

    Raises:
        CorpusError: If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if sys.version_info >= _WITHOUT_WHEEL.get(module, (4,)):
            version = ".".join(map(str, sys.version_info[:2]))
            raise CorpusError(
                f"{what} needs {module}, which cannot be installed on Python {version}."
                " Take Python 3.13: make clean, then make train PYTHON=python3.13"
            ) from None
        raise CorpusError(
            f"{what} needs {error.name or module}, which is not installed. Type: {install_line('corpus')}"
        ) from None
