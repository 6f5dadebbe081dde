"""Libraries that only some formats need, and what to type where one is missing."""

import importlib
from typing import Any

from elmo_zh.errors import CorpusError


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
        raise CorpusError(
            f'{what} needs {error.name or module}, which is not installed. Type: pip install "elmo-zh[corpus]"'
        ) from None
