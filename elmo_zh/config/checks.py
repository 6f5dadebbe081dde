"""Fields of settings: what a field may hold, and whether it can change a result."""

from collections.abc import Iterator
from dataclasses import field, fields
from typing import Any

from elmo_zh.choices import Registry

Choices = Registry | tuple[str, ...]


def free(default: Any, choices: Choices | None = None) -> Any:
    """Return a dataclass field that cannot change any result; with `choices`, one of these."""
    return field(default=default, metadata={"affects_result": False, "choices": choices})


def choice(default: str, choices: Choices) -> Any:
    """Return a dataclass field that holds one of several names."""
    return field(default=default, metadata={"choices": choices})


def choice_problems(section: Any, name: str) -> Iterator[str]:
    """Yield a line for each field of a section that holds none of its choices."""
    for each in fields(section):
        choices, value = each.metadata.get("choices"), getattr(section, each.name)
        if choices is not None and value not in choices:
            advice = choices.advice.removesuffix(".") if isinstance(choices, Registry) else ""
            yield f"{name}.{each.name} = {value!r} is not one of {', '.join(choices)}" + (advice and f".{advice}")


def is_encoding(name: str) -> bool:
    """Return whether Python knows an encoding."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # "a" is half of a character in this encoding, or is not in it
    return True


def at_least(name: str, value: float, least: float) -> Iterator[str]:
    """Yield a line for a value below the least one allowed."""
    if not value >= least:
        yield f"{name} = {value} is below {least}"


def within(name: str, value: float, least: float, most: float) -> Iterator[str]:
    """Yield a line for a value outside a range."""
    if not least <= value <= most:
        yield f"{name} = {value} is not within {least} and {most}"
