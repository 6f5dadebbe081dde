"""Options that several commands share, and the context that their values become."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property, partial, wraps
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, get_args, get_origin

import click

from elmo_zh.choices import DEVICES
from elmo_zh.cli.console import Console
from elmo_zh.config import Config, config_names, load_config, setting
from elmo_zh.config.declare import Value, declare, values_of
from elmo_zh.invocation import command
from elmo_zh.language import N_, _
from elmo_zh.names import label
from elmo_zh.run.layout import RunDir
from elmo_zh.run.outputs import claimed_output, require_no_input
from elmo_zh.run.reporter import aligned

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.corpus.input_texts import InputText
    from elmo_zh.engine import EngineChoice

Function = TypeVar("Function", bound=Callable[..., Any])
# Parameters with paths that a command writes; all other paths are read.
_OUTPUTS = ("output", "picture", "run_path")
# Options of commands that read any kind of text, and of those that can run on a cluster.
INPUT, ENGINE = ("text.format", "text.field", "text.encoding"), ("engine", "scheduler")
# What commands read by having an option, besides the setting that the option itself sets.
_READ_WITH = {
    "common_engine": ("text.num_workers",),
    "common_user_dictionary": ("text.user_dictionary",),
    "text__format": ("text.join_lines",),
}
# What is of no use to text that is already split into tokens.
_OF_RAW_TEXT = ("text.format", "text.field", "text.join_lines", "text.user_dictionary")


@dataclass(frozen=True, kw_only=True)
class Common:
    """The context of a command: the values of the options that commands share, each with those that it needs."""

    config_path: Path | None = declare(
        None,
        "TOML file of settings, or the name of a shipped file, such as small. Default: the run's own settings,"
        " otherwise the built-in defaults.",
        names=("--config",),
        metavar="FILE",
    )
    assignments: tuple[str, ...] = declare(
        (),
        "Change one setting, such as train.epochs=5; overrides --config and may be repeated.",
        names=("--set",),
        metavar="SECTION.KEY=VALUE",
    )
    force: bool = declare(False, "Run even if nothing has changed, and overwrite the output.")
    quiet: bool = declare(False, "Print only warnings and errors.")
    as_json: bool = declare(False, "Print the result as one JSON object on stdout.", names=("--json",))
    user_dictionary: Path | None = declare(
        None,
        "Words of your own that the segmenter keeps whole: a dictionary in jieba's format, or a table written by"
        " the words command.",
        metavar="FILE",
        path={"exists": True, "dir_okay": False},
    )
    engine: str = declare(
        "local",
        "Prepare or score text on this machine (local) or on a Dask cluster (dask; docs/clusters.md).",
        choices=("local", "dask"),
    )
    scheduler: str = declare(
        "",
        "Address of the Dask scheduler, such as tcp://192.168.0.1:8786; required with --engine dask.",
        metavar="ADDRESS",
    )
    model: Path | None = declare(
        None,
        "Folder of the model, or the name of an installed model. Default: $ELMO_ZH_MODEL, otherwise"
        " runs/latest/model, otherwise starter.",
        metavar="BUNDLE",
    )
    device: str | None = declare(
        None, "Device to compute on; auto uses a GPU (experimental) if there is one. Default: auto.", choices=DEVICES
    )
    segmented: bool = declare(
        False, "The text is already segmented: one sentence per line, with a single space between tokens."
    )
    stateful: bool = declare(
        False, "Carry the LSTM state across sentences, as the original ELMo does. This prevents batching and is slower."
    )
    named: frozenset[str] = frozenset()  # The settings that were given by --set or by options of their own
    config: Config = field(default_factory=Config)

    @classmethod
    def taken_from(cls, values: dict[str, Any]) -> "Common":
        """Move the values of shared options out of a command's `values`, and return them."""
        shared = {name.removeprefix("common_"): values.pop(name) for name in [*values] if name.startswith("common_")}
        settings: dict[str, Any] = {name.replace("__", "."): values.pop(name) for name in [*values] if "__" in name}
        settings = {name: value for name, value in settings.items() if value is not None}
        if shared.get("user_dictionary"):
            settings["text.user_dictionary"] = str(shared["user_dictionary"])
        # The run's settings or the defaults, changed first by --config, then by --set, then by other options.
        run_path, assignments = values.get("run_path"), shared["assignments"]
        load = RunDir(run_path).load_config if run_path else partial(load_config, Config())
        config = load(shared["config_path"], assignments, settings)
        named = frozenset({*config_names(None, assignments), *settings})
        common = cls(named=named, config=config, **shared)
        if (common.engine == "dask") != bool(common.scheduler):
            text = _("--engine dask and --scheduler ADDRESS must be used together. Give both or neither.")
            raise click.UsageError(text)
        return common

    @cached_property
    def console(self) -> Console:
        """The console that shows messages and progress."""
        return Console(quiet=self.quiet)

    def choose_engine(self, config: Config) -> "EngineChoice":
        """Return the engine that runs the tasks of the corpus stages."""
        from elmo_zh.engine import EngineChoice

        return EngineChoice(num_workers=config.text.num_workers, kind=self.engine, scheduler=self.scheduler)

    @contextmanager
    def opened_texts(
        self, files: Sequence[str], *, from_name: str | None = None, **changed: Any
    ) -> Iterator[list["InputText"]]:
        """Open the texts that a command reads, with `changed` settings in section text."""
        from elmo_zh.corpus.input_texts import input_text, opened_inputs

        text = replace(self.config.text, **changed)
        with opened_inputs(files, self.console) as sources:
            yield [input_text(file, text, segmented=self.segmented, from_name=from_name) for file in sources.sources]

    @contextmanager
    def claimed(
        self, output: Path | None, picture: Path | None = None, *, formats: Collection[str] = ()
    ) -> Iterator[None]:
        """Reserve the files that a command writes; if `formats` are given, the output must end with one of them."""
        from elmo_zh.run.tables import require_suffix

        with ExitStack() as stack:
            for path, option, suffixes in ((output, "--output", formats), (picture, "--picture", (".png",))):
                if path is not None:
                    if suffixes:
                        require_suffix(path, suffixes, option)
                    names = (option, "--force")
                    claim = claimed_output(path, (), Path.is_file, force=self.force, names=names)
                    stack.enter_context(claim)
            yield

    def finish(
        self,
        result: Mapping[str, Any],
        *lines: str,
        bundle: "Bundle | None" = None,
        following: Sequence[str | Path] = (),
    ) -> None:
        """Print the result: with --json, one JSON object that includes the model used; otherwise lines for people.

        `following` has the words of the command to type next.
        """
        if bundle is not None:
            from elmo_zh.bundle.read import describe_model

            result = {**result, "model": describe_model(bundle)}
        if self.as_json:
            click.echo(json.dumps(_without_nan(result), ensure_ascii=False, allow_nan=False))
        elif not self.quiet:
            for line in (*lines, *([_("Next: {command}").format(command=command(*following))] if following else [])):
                click.echo(line)


def _without_nan(value: Any) -> Any:
    """Return a JSON value with null for each number that is not finite, for which JSON has no form."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    return [_without_nan(item) for item in value] if isinstance(value, list | tuple) else value


def figures(result: Mapping[str, Any]) -> list[str]:
    """Return a line for each value of a result that has one, with its name."""
    from elmo_zh.info.describe import rows

    return [*rows({name: value for name, value in result.items() if value is not None})]


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table below the names of its columns; those with text are left-aligned."""
    if not rows:
        return []
    left = [number for number, value in enumerate(rows[0].values()) if isinstance(value, str)]
    return [*aligned([[*map(label, rows[0])], *([*map(_cell, row.values())] for row in rows)], left)]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


class _Path(click.Path):
    """The path of a file or folder; a wrong one is refused with the next step."""

    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        """Fail with click's message and what to give instead."""
        wanted = _("Give the path of a folder.") if not self.file_okay else _("Give the path of a file.")
        super().fail(f"{message} {wanted}" if self.file_okay != self.dir_okay else message, param, ctx)


class DeclaredType(click.ParamType[Any]):
    """The type of an option, as its declaration has it."""

    def __init__(self, value: Value) -> None:
        kind = (get_args(value.kind) or (value.kind,))[0]  # of `tuple[int, ...]`, int
        self.value, self._one = value, replace(value, kind=kind)
        self.name = {int: N_("integer"), float: N_("float")}.get(kind, N_("text"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; fail with what is allowed."""
        try:
            return self._one.parse(value) if isinstance(value, str) else value
        except ValueError:
            self.fail(_("{value}; expected {allowed}.").format(value=value, allowed=self._one.allowed()), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:  # noqa: ARG002
        """Return the choices, or the kind of value, as help shows them."""
        return f"[{'|'.join(self.value.choices)}]" if self.value.choices is not None else _(self.name).upper()


class DeclaredOption(click.Option):
    """An option that shows what its declaration says, in the user's language."""

    def __init__(self, names: Sequence[str], value: Value, *, is_setting: bool = False, **attributes: Any) -> None:
        self.value, self._is_setting = value, is_setting
        super().__init__(names, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's help entry."""
        written = self.help
        self.help = written or self.value.explained()  # only now, since looking for plug-ins takes time
        try:
            return super().get_help_record(ctx)
        finally:
            self.help = written  # so that the catalogue never collects a composed text

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what follows the help in brackets: default and range."""
        extra = super().get_help_extra(ctx)
        if self._is_setting and self.value.default not in (None, "", False):
            extra["default"] = str(self.value.default)
        if self.value.limits():
            extra["range"] = self.value.limits()
        return extra


def _option(value: Value, parameter: str, **changed: Any) -> Callable[[Any], Any]:
    """Return the option that a declaration describes, with its type, range and default."""
    attributes = {"default": value.default, **value.option, **changed}
    names = attributes.pop("names", (f"--{value.name.replace('_', '-')}",))
    path = attributes.pop("path", {})
    is_missing = attributes["default"] is MISSING
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
    """Add the options that a dataclass declares; the command gets them as `parameter`."""
    declared = {name: value for name, value in values_of(group).items() if name not in without}

    def decorate(function: Function) -> Any:
        @wraps(function)
        def decorated(*args: Any, **values: Any) -> Any:
            return function(*args, **{parameter: group(**{name: values.pop(name) for name in declared})}, **values)

        return with_options(decorated, [_option(value, name) for name, value in declared.items()])

    return decorate


def shared_options(*names: str, **changed: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds options declared by `Common` or, by names such as text.encoding, as settings.

    The command receives their values in a `Common`; `changed` has what differs from the declaration, such as help.
    """
    options = []
    for name in names:
        if value := setting(name):
            options.append(_option(value, name.replace(".", "__"), is_setting=True, **{"default": None, **changed}))
        else:
            options.append(_option(values_of(Common)[name], f"common_{name}", **changed))
    return lambda function: with_options(function, options)


def reads(*names: str) -> Callable[[Function], Function]:
    """Declare settings (section, or section.key) that a command reads although it has no options for them."""

    def declare_reads(function: Function) -> Function:
        function.__dict__["reads"] = names
        return function

    return declare_reads


def common_options_of_readers(function: Callable[..., Any]) -> Any:
    """Add the options of all commands to one that overwrites nothing; help does not show its --force."""
    return common_options(function, hides_force=True)


def common_options(function: Callable[..., Any], *, hides_force: bool = False) -> Any:
    """Add the options of all commands; the function receives the shared values as its first argument, a `Common`.

    Outputs may not replace a file or folder given to the command. A setting that was given and that the command does
    not read is named.
    """

    @wraps(function)
    def decorated(**values: Any) -> Any:
        context = click.get_current_context()
        _refuse_outputs(context)
        common = Common.taken_from(values)
        if "run_path" not in context.params:
            _name_unread(common, context, getattr(function, "reads", ()))
        return function(common, **values)

    first, last = ("config_path", "assignments"), ("quiet", "as_json")
    force = shared_options("force", hidden=hides_force)
    return with_options(decorated, [shared_options(*first), force, shared_options(*last)])


def _name_unread(common: Common, context: click.Context, also_read: Collection[str]) -> None:
    """Warn of each setting that was given by --set or an option, and that the command does not read."""
    read = {*also_read, *(name.replace("__", ".") for name in context.params if "__" in name)}
    read |= {setting for parameter, names in _READ_WITH.items() if parameter in context.params for setting in names}
    # Segmented text is not prepared; an index, which is read without files, was prepared when it was made.
    if common.segmented or not context.params.get("files", True):
        read -= {"text", *_OF_RAW_TEXT}
    for name in sorted(common.named):
        if name not in read and name.partition(".")[0] not in read:
            typed = context.command_path.removeprefix(context.find_root().command_path).strip()
            typed += " --segmented" if common.segmented else ""
            common.console.warn(_("{name} has no effect on {command}.").format(name=name, command=typed))


def _refuse_outputs(context: click.Context) -> None:
    """Raise an error for an output that is no name of a file or folder, or that would replace what is read."""
    for option in ("output", "picture"):
        path = context.params.get(option)
        if path in (Path(), Path("/")):  # click turns "" into the current folder
            text = _("--{name} cannot be empty, . or /. Give the name of a file or folder to write.")
            raise click.UsageError(text.format(name=option))
        if path is not None:
            require_no_input(path, _given_paths(context), _("Choose another {option}.").format(option=f"--{option}"))


def _given_paths(context: click.Context) -> Iterator[Path]:
    for name, value in context.params.items():
        if name not in _OUTPUTS and isinstance(value, tuple | Path):
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, str | Path):
                    yield from map(Path, glob(str(path), recursive=True) or [path])  # noqa: PTH207


def refuse_together(option: str, others: Mapping[str, bool]) -> None:
    """Raise UsageError if one of the other options is given too; each comes with whether it is given."""
    for other in [name for name, is_given in others.items() if is_given]:
        message = _("{option} and {other} cannot be combined. Leave out one of them.")
        raise click.UsageError(message.format(option=option, other=other))


def output_option(
    metavar: str, description: str, *, is_folder: bool = False, required: bool = False
) -> Callable[[Function], Function]:
    """Return the --output option of a command that writes a file or a folder, shown as `metavar` in its help."""
    kind = _Path(path_type=Path, file_okay=not is_folder, dir_okay=is_folder)
    return click.option("--output", type=kind, required=required, metavar=metavar, help=description)


def _only_standard_input(_context: click.Context, _parameter: object, files: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in files and len(files) > 1:
        raise click.UsageError(_("- (standard input) cannot be combined with other files. Give - on its own."))
    return files


input_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=_only_standard_input)
