"""What sections of the settings say of their fields and values."""

from collections.abc import Iterator
from dataclasses import field
from typing import Any


def free(default: Any) -> Any:
    """Return a dataclass field that does not affect results."""
    return field(default=default, metadata={"affects_result": False})


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> Iterator[str]:
    """Yield a line unless a value is one of those allowed."""
    if value not in allowed:
        yield f"{name} = {value!r} is not one of {', '.join(allowed)}"


def is_encoding(name: str) -> bool:
    """Return whether Python knows an encoding."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # half of a character, or no letter of it
    return True


def at_least(name: str, value: float, least: float) -> Iterator[str]:
    """Yield a line for a value below the least."""
    if not value >= least:
        yield f"{name} = {value} is below {least}"


def within(name: str, value: float, least: float, most: float) -> Iterator[str]:
    """Yield a line for a value out of a range."""
    if not least <= value <= most:
        yield f"{name} = {value} is not within {least} and {most}"
