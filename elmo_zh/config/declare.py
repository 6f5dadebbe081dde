"""Declare settings, options of commands and arguments of Python calls, each once.

`declare` makes a field of a dataclass. `values_of` returns each declared field's type, default, range and help, which
are used to check values and to write help texts, the JSON Schema and the pages on settings and commands.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, cast, get_args

from elmo_zh.choices import Registry
from elmo_zh.errors import ConfigError
from elmo_zh.language import N_, _

LAYER_NAMES = ("all", "average", "top", "mix")
_LAYERS_ALLOWED = N_("all, average, top, mix, the number of a layer (0, 1, ...), or numbers such as 1,2")


class Layers(str):
    """Layers of a model: all, average, top, mix, a number, or numbers separated by commas, in the order given.

    The value is a string in canonical form, without spaces, so it can be stored and compared like any other string.
    """

    __slots__ = ()

    def __new__(cls, value: object = "all") -> "Layers":
        """Return the layers given as a string, a number or several numbers.

        Raises:
            ValueError: If the value is not of one of these forms, or names a layer twice.
        """
        is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        parts = [str(part).strip() for part in (value if is_list else str(value).split(","))]  # type: ignore[attr-defined]
        is_named = len(parts) == 1 and parts[0] in LAYER_NAMES
        if not is_named and not all(part.isascii() and part.isdecimal() for part in parts):
            raise ValueError(f"expected {_LAYERS_ALLOWED}")
        text = parts[0] if is_named else ",".join(str(int(part)) for part in parts)
        if not parts or len(set(text.split(","))) < len(parts):
            raise ValueError(f"expected each layer once: {_LAYERS_ALLOWED}")
        return super().__new__(cls, text)

    def stacked(self, num_layers: int) -> tuple[int, ...]:
        """Return the numbers of the layers that stay separate, or () if the result is a single layer."""
        if self == "all":
            return tuple(range(num_layers))
        return self._numbers() if "," in self else ()

    def numbers(self, num_layers: int) -> tuple[int, ...]:
        """Return the numbers of the layers that are read: for average and mix, all of them."""
        if self == "top":
            return (num_layers - 1,)
        return tuple(range(num_layers)) if self in LAYER_NAMES else self._numbers()

    def _numbers(self) -> tuple[int, ...]:
        return tuple(map(int, self.split(",")))

    def require(self, num_layers: int, *names: str) -> "Layers":
        """Return these layers if a model has them; raise ValueError otherwise, or for a name that is not in `names`."""
        if (self in LAYER_NAMES and self not in names) or max(self.numbers(num_layers)) >= num_layers:
            raise ValueError(f"expected {', '.join(names)} or numbers from 0 to {num_layers - 1}")
        return self


Choices = Registry | tuple[str, ...]

_KINDS: Mapping[Any, str] = {
    bool: N_("true or false"),
    int: N_("a whole number"),
    float: N_("a number"),
    str: N_("text"),
    Layers: _LAYERS_ALLOWED,
}
# Larger whole numbers do not fit into the integers of arrays and files.
_MOST = {int: 2**63, float: math.inf}
_PAIRS = N_("a list of pairs of whole numbers, such as [[1, 32], [2, 64]]")


@dataclass(frozen=True, kw_only=True, eq=False)
class Value:
    """A declared value: a field of a dataclass, with everything that its declaration says."""

    name: str = ""
    kind: Any = None  # Its type, without None
    is_optional: bool = False  # Whether it may be None
    default: Any = None  # MISSING if it must be given
    help: str  # Its meaning, in English; shown in the user's language
    choices: Choices | None = None  # The allowed names
    least: float | None = None  # The smallest number allowed
    most: float | None = None  # The largest number allowed
    above: float | None = None  # The exclusive lower limit of a number, in place of `least`
    also: float | None = None  # A number outside the range that has a meaning of its own
    check: Callable[[str], bool] | None = None  # Returns whether a text is allowed
    expects: str = ""  # What `check` allows, in English
    free: bool = False  # Whether it cannot change any result, so that no stage has to run again
    later: bool = False  # Whether records leave out the default, so that those made before it was declared stay valid
    is_file: bool = False  # Whether it names a file or a bundle, of which records keep the digest
    # Further arguments of click.option, such as metavar; names=("--seeds",) if the option is not named like the field;
    # path={"exists": True, "dir_okay": False} for click.Path
    option: Mapping[str, Any] = field(default_factory=dict)

    def convert(self, value: Any) -> Any:
        """Return a value in the declared type; raise ValueError if it is not allowed, as `allowed` describes."""
        from msgspec import ValidationError, convert

        if hasattr(value, "item") and not getattr(value, "ndim", 0):
            value = value.item()  # a NumPy number
        if value is None and self.is_optional:
            return None
        if self.kind is Layers:
            return Layers(value)
        if self.kind is int and isinstance(value, float) and value.is_integer():
            value = int(value)  # 3e6 is a natural way to write three million
        if self.kind is str and type(value) is int:
            value = str(value)  # the number of a column
        try:
            converted = convert(value, self.kind)
        except ValidationError as error:
            raise ValueError(str(error)) from None
        is_known = self.choices is None or converted in self.choices
        if not (is_known and self._is_in_range(converted) and (self.check is None or self.check(converted))):
            raise ValueError(self.allowed(str))
        return converted

    def parse(self, text: str) -> Any:
        """Return the value of an option's text; raise ValueError if it is not allowed."""
        if self.kind not in (int, float):
            return self.convert(text)
        is_whole = text.strip().lstrip("+-").isdecimal()
        return self.convert(int(text) if is_whole else float(text))

    def limits(self) -> str:
        """Return the range of a number, such as "0, x>=4" if 0 is also allowed; "" without limits."""
        other = "" if self.also is None else f"{self.also:g}, "
        low = f"{self.above}<" if self.above is not None else f"{self.least}<=" if self.least is not None else ""
        high = "" if self.most is None else f"<={self.most}"
        if low and not high:
            return other + (f"x>{self.above}" if self.above is not None else f"x>={self.least}")
        return f"{other}{low}x{high}" if high else ""

    def _is_in_range(self, value: Any) -> bool:
        if not isinstance(value, int | float) or (self.also is not None and value == self.also):
            return True
        return (
            math.isfinite(value)
            and abs(value) < _MOST.get(self.kind, math.inf)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
        )

    def allowed(self, say: Callable[[str], str] = _) -> str:
        """Return the allowed kind and range, or the choices; `say` translates them, by default for the user."""
        if isinstance(self.choices, Registry):
            return self.choices.described(say)
        if self.choices is not None:
            return say(", ").join(self.choices)
        kind = say(self.expects or _KINDS.get(self.kind, _PAIRS))
        return f"{kind} ({self.limits()})" if self.limits() else kind

    def explained(self, say: Callable[[str], str] = _) -> str:
        """Return the help, translated by `say`; {choices} in it stands for the names in a registry."""
        registry = self.choices if isinstance(self.choices, Registry) else None
        return say(self.help).format(choices=registry.described(say)) if registry else say(self.help)

    def refusal(self, value: Any, section: str = "") -> str:
        """Return a sentence that refuses a value and says what is allowed."""
        name = f"{section}.{self.name}" if section else self.name
        return str(ConfigError.unexpected(f"{name} = {value!r}", self.allowed()))


def declare(default: Any, help: str, **attributes: Any) -> Any:  # noqa: A002
    """Return the field of a setting, an option or an argument.

    Args:
        default: The default; `...` for an option that must be given.
        help: Its meaning, in English; shown in the user's language.
        attributes: Other attributes of `Value`, such as least or choices, and arguments of click.option.
    """
    about = {name: attributes.pop(name) for name in Value.__dataclass_fields__ if name in attributes}
    value = Value(help=help, option=attributes, **about)
    return field(default=MISSING if default is ... else default, metadata={"declared": value})


def values_of(group: type) -> Mapping[str, Value]:
    """Return the declared values of a dataclass by name."""
    return _values_of(cast(Hashable, group))


@cache
def _values_of(group: Any) -> Mapping[str, Value]:
    return {
        declared.name: replace(
            declared.metadata["declared"],
            name=declared.name,
            kind=_kind_of(declared.type),
            is_optional=type(None) in get_args(declared.type),
            default=declared.default,
        )
        for declared in fields(group)
        if "declared" in declared.metadata
    }


def _kind_of(annotation: Any) -> Any:
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    return kinds[0] if type(None) in get_args(annotation) else annotation


class Section:
    """A section of the settings; a subclass is named like the section, with Config after it."""

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each value that is not allowed or contradicts another one."""
        yield from problems_of(self, type(self).__name__.removesuffix("Config").lower())
        yield from self.contradictions()

    def contradictions(self) -> Iterator[str]:
        """Yield a sentence for values that contradict each other."""
        yield from ()


def problems_of(group: Any, section: str = "") -> Iterator[str]:
    """Yield a sentence for each declared value of a dataclass that is not allowed."""
    for name, value in values_of(type(group)).items():
        try:
            value.convert(getattr(group, name))
        except ValueError:
            yield value.refusal(getattr(group, name), section)


def is_encoding(name: str) -> bool:
    """Return whether a text is auto or an encoding that Python knows."""
    try:
        b"a".decode("utf-8" if name == "auto" else name)
    except LookupError:
        return False
    except UnicodeError:
        pass  # "a" is half of a character in this encoding, or is not in it
    return True


def is_pattern(text: str) -> bool:
    """Return whether a text is a regular expression."""
    try:
        re.compile(text)
    except re.error:
        return False
    return True
