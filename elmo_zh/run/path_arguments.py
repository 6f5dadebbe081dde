"""Paths that are given to the Python interface: checked, and shown in messages."""

from os import PathLike, fspath
from pathlib import Path


def shown_path(given: object, example: str | Path) -> str:
    """Return the path that was given in place of what is loaded from it, for a message; else an example of one."""
    return str(fspath(given) if isinstance(given, str | PathLike) else example)


def check_path(given: object, call: str, name: str, what: str) -> Path:
    """Return a path.

    Args:
        given: The argument.
        call: The function, for the message: build.
        name: Name of the argument.
        what: What the path is expected to be: a folder.

    Raises:
        TypeError: If it is neither a string nor a path.
    """
    if isinstance(given, str | PathLike):
        return Path(fspath(given))
    raise TypeError(f"{call}: {name} is {given!r:.60}, expected the path of {what}")
