"""Declare the fields of settings and options: default, meaning, allowed values, and whether they affect results."""

import ast
import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any

from elmo_zh.choices import Registry

Choices = Registry | tuple[str, ...]


def option(
    default: Any,
    *,
    choices: Choices | None = None,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    **attributes: Any,
) -> Any:
    """Return a dataclass field that is also a command-line option: `elmo_zh.cli.options.takes` adds it to commands.

    The docstring below the field is the option's help.

    Args:
        default: The default; ... for an option that must be given.
        choices: The allowed names.
        least: The smallest number allowed.
        most: The largest number allowed.
        above: The exclusive lower limit of a number, in place of `least`.
        attributes: Further arguments of click.option, such as metavar, or help if it is computed; names=("--seeds",) if
            the option is not named like the field; path={"exists": True, "dir_okay": False} for click.Path.
    """
    metadata = {"choices": choices, "least": least, "most": most, "above": above, "option": attributes}
    return field(default=MISSING if default is ... else default, metadata=metadata)


def field_docs(group: type) -> Mapping[str, str]:
    """Return the docstrings below the fields of a class, each in one line, read from the source code."""
    return _docs_in(group.__module__)[group.__name__]


@cache
def _docs_in(module: str) -> Mapping[str, Mapping[str, str]]:
    docs: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            for statement, following in zip(node.body, node.body[1:], strict=False):
                if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
                    text = " ".join(ast.literal_eval(following.value).split())
                    docs.setdefault(node.name, {})[ast.unparse(statement.target)] = text
    return docs


def free(default: Any, choices: Choices | None = None, *, least: float | None = None, most: float | None = None) -> Any:
    """Return a field that cannot affect any result; `choices`, if given, lists its allowed values."""
    metadata = {"affects_result": False, "choices": choices, "least": least, "most": most}
    return field(default=default, metadata=metadata)


def choice(default: str, choices: Choices) -> Any:
    """Return a field whose value is one of several names."""
    return field(default=default, metadata={"choices": choices})


def number(default: float, least: float | None = None, most: float | None = None, *, above: float | None = None) -> Any:
    """Return a field whose value is a number in a range."""
    return field(default=default, metadata={"least": least, "most": most, "above": above})


def later(declared: Any) -> Any:
    """Return a field, given its default or its declaration, that is recorded only if it is not at its default.

    Records made before the field existed then stay valid.
    """
    other = declared if isinstance(declared, Field) else field(default=declared)
    return field(default=other.default, metadata={**other.metadata, "later": True})


def named_file() -> Any:
    """Return a field that names a file or a bundle; records have the digest of its content instead of the name."""
    return field(default="", metadata={"is_file": True})


def problems_of_fields(group: Any, section: str = "") -> Iterator[str]:
    """Yield a message for each field whose value is out of range or not among its choices."""
    prefix = f"{section}." if section else ""
    for each in fields(group):
        name, value = prefix + each.name, getattr(group, each.name)
        choices, least, most, above = map(each.metadata.get, ("choices", "least", "most", "above"))
        if value is None:
            continue
        if choices is not None and value not in choices:
            advice = choices.advice.removesuffix(".") if isinstance(choices, Registry) else ""
            yield f"{name} = {value!r} is not one of {', '.join(choices)}" + (advice and f".{advice}")
        if least is not None and most is not None:
            yield from within(name, value, least, most)
        elif least is not None:
            yield from at_least(name, value, least)
        if above is not None and not above < value <= (math.inf if most is None else most):
            is_open = most is None
            yield (
                f"{name} = {value} must be above {above}"
                if is_open
                else (f"{name} = {value} must be above {above} and at most {most}")
            )


def is_encoding(name: str) -> bool:
    """Return whether Python knows an encoding by this name."""
    try:
        b"a".decode(name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # "a" is half of a character in this encoding, or is not in it
    return True


def at_least(name: str, value: float, least: float) -> Iterator[str]:
    """Yield a message if a value is below the minimum."""
    if not value >= least:
        yield f"{name} = {value} must be at least {least}"


def within(name: str, value: float, least: float, most: float) -> Iterator[str]:
    """Yield a message if a value is outside a range."""
    if not least <= value <= most:
        yield f"{name} = {value} must be between {least} and {most}"
