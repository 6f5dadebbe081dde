"""Make the options of commands from fields made with `declare`, which have types, ranges, defaults and help."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, replace
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource

from elmo_zh.config.declare import Value, values_of
from elmo_zh.errors import OptionError
from elmo_zh.language import _

Function = TypeVar("Function", bound=Callable[..., Any])


class _Path(click.Path):
    """The path of a file or folder; the error for a wrong one names the next step."""

    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        """Fail with click's message and what to do instead."""
        name = param.human_readable_name if param is not None else ""
        option = param.opts[0] if isinstance(param, click.Option) else name
        step = _("Choose another {option}.").format(option=option)
        super().fail(f"{message} {step}", param, ctx)


class DeclaredType(click.ParamType[Any]):
    """The type of an option, taken from its declaration."""

    def __init__(self, value: Value) -> None:
        kind = (get_args(value.kind) or (value.kind,))[0]  # int for `tuple[int, ...]`
        self.value, self._one = value, replace(value, kind=kind)
        self.name = "number" if kind in (int, float) else "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a string as the declared type; if the value is not allowed, fail with a message that says what is."""
        try:
            return self._one.parse(value) if isinstance(value, str) else value
        except ValueError:
            self.fail(str(OptionError.unexpected(value, self._one.allowed())), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:  # noqa: ARG002
        """Return the choices, or the kind of value, as help shows them."""
        return f"[{'|'.join(self.value.choices)}]" if self.value.choices is not None else self.name.upper()


class DeclaredOption(click.Option):
    """An option that shows what its declaration says, in the user's language."""

    def __init__(self, names: Sequence[str], value: Value, *, is_setting: bool = False, **attributes: Any) -> None:
        self.value, self._is_setting = value, is_setting
        super().__init__(names, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's names and help, which comes from the declaration unless the command has its own."""
        written = self.help
        self.help = written or self.value.explained()  # only now, since looking for plug-ins takes time
        try:
            return super().get_help_record(ctx)
        finally:
            self.help = written  # so that the catalogue never collects a composed text

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what follows the help in brackets, such as the default and the range."""
        extra = super().get_help_extra(ctx)
        if self._is_setting and self.value.default not in (None, "", False):
            extra["default"] = str(self.value.default)
        if self.value.limits():
            extra["range"] = self.value.limits()
        return extra


def option_of(value: Value, parameter: str, **changed: Any) -> Callable[[Any], Any]:
    """Return a decorator that adds the option that a declaration describes, with its type, range and default."""
    attributes = {"default": value.default, **value.option, **changed}
    names = attributes.pop("names", (f"--{value.name.replace('_', '-')}",))
    path = attributes.pop("path", {})
    is_missing = attributes["default"] is MISSING or attributes.get("required", False)
    if is_missing:
        del attributes["default"]
    is_path = bool(path) or value.kind is Path
    attributes = {
        "required": is_missing,
        "show_default": not is_missing and attributes["default"] not in (None, "", False, ()),
        "multiple": get_origin(value.kind) is tuple and "nargs" not in attributes,
        "is_flag": value.kind is bool and not attributes.get("is_setting"),
        "type": _Path(path_type=Path, **path) if is_path else bool if value.kind is bool else DeclaredType(value),
        **attributes,
    }
    return click.option(*names, parameter, cls=DeclaredOption, value=value, **attributes)


def with_options(function: Function, options: Sequence[Callable[[Any], Any]]) -> Function:
    """Add options to a command's function, in the order in which its help lists them."""
    for add in reversed(options):
        function = add(function)
    return function


def takes(group: type, parameter: str, *, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Return a decorator that adds the options of a dataclass; the command gets an instance of it as `parameter`."""
    declared = {name: value for name, value in values_of(group).items() if name not in without}

    def decorate(function: Function) -> Any:
        @wraps(function)
        def decorated(*args: Any, **values: Any) -> Any:
            return function(*args, **{parameter: group(**{name: values.pop(name) for name in declared})}, **values)

        return with_options(decorated, [option_of(value, name) for name, value in declared.items()])

    return decorate


def typed_options(context: click.Context, *, without: Collection[str]) -> list[str]:
    """Return the options that the user typed, as words for another command, except the parameters in `without`."""
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        if not isinstance(option, click.Option) or name in without:
            continue
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if option.is_flag:
            words.append(option.opts[0])
        else:
            words += [word for each in (value if option.multiple else [value]) for word in (option.opts[0], str(each))]
    return words
