"""Options that several commands share, and the values they turn into."""

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import click

from elmo_zh.bundle.find_bundle import DEFAULT_MODEL, STARTER
from elmo_zh.choices import DEVICES, Registry
from elmo_zh.cli.console import Console
from elmo_zh.config import Config, describe_setting, load_config, render_config
from elmo_zh.config.fields import field_docs, option
from elmo_zh.language import _, translate
from elmo_zh.run.files import claimed_output, inputs_noted
from elmo_zh.run.layout import RunDir

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.corpus.input_texts import InputText
    from elmo_zh.engine.select import EngineChoice

Function = TypeVar("Function", bound=Callable[..., Any])
# Parameters with paths that a command writes; all other paths are read.
_OUTPUTS = ("output", "picture", "run_path")
# The model that commands use by default.
DEFAULT = f"$ELMO_ZH_MODEL, otherwise {DEFAULT_MODEL}, otherwise {STARTER}"


def model_help(default: str) -> str:
    """Return the help text of --model, which names the default."""
    return f"Folder of the model, or the name of an installed model. Default: {default}."


class RegisteredName(click.Choice[str]):
    """A name in a registry, which is only read when a name is checked or shown, to keep start-up fast."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of built-in and installed choices."""
        return tuple(self._registry)


@dataclass(kw_only=True)
class Common:
    """The values of the options that commands share; each command has only the ones it needs."""

    config_path: Path | None = option(None, names=("--config",), metavar="FILE")
    """TOML file of settings, or the name of a shipped file, such as small. Default: the run's own settings, otherwise
    the built-in defaults."""
    assignments: tuple[str, ...] = option((), names=("--set",), metavar="SECTION.KEY=VALUE")
    """Change one setting, such as train.epochs=5; overrides --config and may be repeated."""
    force: bool = option(False)
    """Run even if nothing has changed, and overwrite the output."""
    quiet: bool = option(False)
    """Print only warnings and errors."""
    as_json: bool = option(False, names=("--json",))
    """Print the result as one JSON object on stdout."""
    print_config: bool = option(False)
    """Print the settings that the command would use, with explanations, and exit."""
    user_dictionary: Path | None = option(None, metavar="FILE", path={"exists": True, "dir_okay": False})
    """Words of your own that the segmenter keeps whole: a dictionary in jieba's format, or a table written by the words
    command."""
    engine: str = option("local", choices=("local", "dask"))
    """Prepare or score text on this machine (local) or on a Dask cluster (dask; docs/clusters.md)."""
    scheduler: str = option("", metavar="ADDRESS")
    """Address of the Dask scheduler, such as tcp://192.168.0.1:8786; required with --engine dask."""
    model: Path | None = option(None, help=model_help(DEFAULT), metavar="BUNDLE")
    device: str | None = option(None, choices=DEVICES)
    """Device to compute on; auto uses a GPU (experimental) if there is one. Default: auto."""
    segmented: bool = option(False)
    """The text is already segmented: one sentence per line, with a single space between tokens."""
    stateful: bool = option(False)
    """Carry the LSTM state across sentences, as the original ELMo does. This prevents batching and is slower."""
    chosen: dict[str, str] = field(default_factory=dict)  # values of settings that have options of their own

    @classmethod
    def taken_from(cls, values: dict[str, Any]) -> "Common":
        """Move the values of shared options out of a command's `values`, and return them."""
        own = {name.removeprefix("common_"): values.pop(name) for name in [*values] if name.startswith("common_")}
        chosen = {name.replace("__", "."): values.pop(name) for name in [*values] if "__" in name}
        return cls(chosen={name: value for name, value in chosen.items() if value is not None}, **own)

    @property
    def console(self) -> Console:
        """The console that shows messages and progress."""
        return Console(quiet=self.quiet)

    @property
    def chosen_assignments(self) -> list[str]:
        """Settings changed with dedicated options, in the form used by --set."""
        dictionary = {"text.user_dictionary": self.user_dictionary} if self.user_dictionary else {}
        return [f"{name}={value}" for name, value in {**self.chosen, **dictionary}.items()]

    def resolve(self, run: RunDir | None = None) -> Config:
        """Return the settings: the run's settings or the defaults, changed first by --config and then by --set."""
        if (self.engine == "dask") != bool(self.scheduler):
            raise click.UsageError("--engine dask and --scheduler ADDRESS must be used together. Give both or neither.")
        assignments = [*self.assignments, *self.chosen_assignments]
        if run is not None:
            return run.load_config(self.config_path, assignments, options=self.chosen)
        return load_config(Config(), self.config_path, assignments, options=self.chosen)

    def choose_engine(self, config: Config) -> "EngineChoice":
        """Return the engine that runs the tasks of the corpus stages."""
        from elmo_zh.engine.select import EngineChoice

        return EngineChoice(num_workers=config.text.num_workers, kind=self.engine, scheduler=self.scheduler)

    @contextmanager
    def opened_texts(
        self, files: Sequence[str], *, from_name: str | None = None, **changed: Any
    ) -> Iterator[list["InputText"]]:
        """Open the texts that a command reads, with `changed` settings in section text."""
        from elmo_zh.corpus.input_texts import input_text, opened_inputs

        text = replace(self.resolve().text, **changed)
        with opened_inputs(files, self.console) as sources:
            yield [input_text(each, text, segmented=self.segmented, from_name=from_name) for each in sources.sources]

    @contextmanager
    def claimed(self, *outputs: Path | None, formats: Collection[str] = ()) -> Iterator[None]:
        """Reserve the files that a command writes; if `formats` are given, each name must end with one of them."""
        from elmo_zh.run.tables import require_suffix

        with ExitStack() as stack:
            for path in filter(None, outputs):
                if formats:
                    require_suffix(path, formats)
                names = "--picture" if path.suffix == ".png" else "--output", "--force"
                stack.enter_context(claimed_output(path, (), Path.is_file, force=self.force, names=names))
            yield

    def finish(self, result: Mapping[str, Any], *lines: str, bundle: "Bundle | None" = None) -> None:
        """Print the result: with --json, one JSON object that includes the model used; otherwise, lines for people."""
        if bundle is not None:
            from elmo_zh.bundle.description import describe_model

            result = {**result, "model": describe_model(bundle)}
        if self.as_json:
            click.echo(json.dumps(result, ensure_ascii=False))
        elif not self.quiet:
            for line in lines:
                click.echo(translate(line))


def with_options(function: Function, options: Sequence[Callable[[Any], Any]]) -> Function:
    """Add options to a command's function, in the order in which its help lists them."""
    for add in reversed(options):
        function = add(function)
    return function


def takes(group: type, parameter: str, *, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Add the options that a dataclass declares with `config.fields.option`; the command gets them as `parameter`."""
    declared = [each for each in fields(group) if "option" in each.metadata and each.name not in without]

    def decorate(function: Function) -> Any:
        @wraps(function)
        def command(*args: Any, **values: Any) -> Any:
            chosen = group(**{each.name: values.pop(each.name) for each in declared})
            return function(*args, **{parameter: chosen}, **values)

        return with_options(command, [_declared_option(group, each, each.name) for each in declared])

    return decorate


def _declared_option(group: type, declared: Field[Any], name: str, **changed: Any) -> Callable[[Any], Any]:
    """Return the option that a field declares, with the field's docstring, type, range and default."""
    attributes = {**declared.metadata["option"], **changed}
    names = attributes.pop("names", (f"--{declared.name.replace('_', '-')}",))
    has_default = declared.default is not MISSING
    found = {
        "required": not has_default,
        "show_default": has_default and declared.default not in (None, "", False, ()),
        "multiple": get_origin(declared.type) is tuple,
        "is_flag": declared.type is bool,
        "type": _type_of(declared, attributes.pop("path", {})),
        "cls": _DescribedOption,
        "describe": lambda: field_docs(group)[declared.name],
        **({"default": declared.default} if has_default else {}),
    }
    return click.option(*names, name, **{**found, **attributes})


def _type_of(declared: Field[Any], path: Mapping[str, bool]) -> Any:
    choices, least, most, above = map(declared.metadata.get, ("choices", "least", "most", "above"))
    if choices is not None:
        return RegisteredName(choices) if isinstance(choices, Registry) else click.Choice(choices)
    # `int | None` and `tuple[int, ...]` are options of type int.
    (kind,) = [each for each in get_args(declared.type) or (declared.type,) if each not in (type(None), ...)]
    if path or kind is Path:
        return click.Path(path_type=Path, **path)
    if least is most is above is None:
        return kind
    if kind is int:
        return click.IntRange(least, most)
    if kind is float:
        return FiniteRange(above if least is None else least, most, min_open=above is not None)
    return kind


class FiniteRange(click.FloatRange):
    """Numbers in a range; click's own range lets nan pass."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fail if it is not finite."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found


def shared_options(*names: str, **changed: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds options declared by `Common`; the command receives their values in a `Common`."""
    declared = {each.name: each for each in fields(Common)}
    options = [_declared_option(Common, declared[name], f"common_{name}", **changed) for name in names]
    return lambda function: with_options(function, options)


class _DescribedOption(click.Option):
    """An option whose help is the docstring of a field, read from the source code only when it is needed."""

    def __init__(self, names: Sequence[str], describe: Callable[[], str], **attributes: Any) -> None:
        self._describe = describe
        super().__init__(names, **attributes)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's help entry."""
        self.help = self.help or _(self._describe())
        return super().get_help_record(ctx)


def setting_option(setting: str, *names: str, metavar: str | None = None) -> Callable[[Function], Function]:
    """Return an option that sets a setting, such as text.bad_bytes; it is --bad-bytes unless other names are given."""
    section, key = setting.split(".")
    (declared,) = [each for each in fields(getattr(Config(), section)) if each.name == key]
    names = (*(names or (f"--{key.replace('_', '-')}",)), setting.replace(".", "__"))
    kind, describe = _type_of(declared, {}), lambda: describe_setting(setting)
    return click.option(*names, cls=_DescribedOption, describe=describe, type=kind, metavar=metavar)


def setting_options(*settings: str) -> Callable[[Function], Function]:
    """Return a decorator that adds an option for each of these settings."""
    return lambda function: with_options(function, [setting_option(each) for each in settings])


def common_options(function: Callable[..., Any]) -> Any:
    """Add the options of all commands that write; outputs may not replace a file or folder given to the command."""
    return _with_common(function, shared_options("force"))


def _with_common(function: Callable[..., Any], force: Callable[[Any], Any]) -> Any:
    """Add the options of all commands; the function receives the shared values as its first argument, a `Common`."""

    @wraps(function)
    def command(**values: Any) -> Any:
        context = click.get_current_context()
        for name in ("output", "picture"):
            # click turns "" into the current folder.
            if context.params.get(name) in (Path(), Path("/")):
                raise click.UsageError(f"--{name} cannot be empty, . or /. Give the name of a file or folder to write.")
        with inputs_noted(_given_paths(context)):
            return function(Common.taken_from(values), **values)

    first, last = ("config_path", "assignments"), ("quiet", "as_json", "print_config")
    return with_options(command, [shared_options(*first), force, shared_options(*last)])


def _given_paths(context: click.Context) -> Iterator[Path]:
    for value in (value for name, value in context.params.items() if name not in _OUTPUTS):
        yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Path))


def common_options_of_readers(function: Callable[..., Any]) -> Any:
    """Add the options of all commands to one that overwrites nothing; it accepts --force, with a warning."""

    def warn(context: click.Context, _parameter: click.Parameter, value: bool) -> bool:
        if value:
            Console(quiet=False).warn(f"--force has no effect on {context.info_name}. Leave out --force.")
        return False

    return _with_common(function, shared_options("force", hidden=True, callback=warn))


def input_options(function: Function) -> Function:
    """Add the reading options of commands that may not skip lines."""
    return with_options(function, [_format_option("--input-format"), _field_option, encoding_option])


def reading_options(function: Function) -> Function:
    """Add the options for reading a corpus; each sets the value of the same name in the `text` section."""
    shared = [_format_option("--format", "--input-format"), _field_option, encoding_option]
    return with_options(function, [*shared, setting_options("text.bad_bytes", "text.document")])


def _format_option(*names: str) -> Callable[[Function], Function]:
    return setting_option("text.format", *names, metavar="FORMAT")


_field_option = setting_option("text.field", metavar="NAME,...")
encoding_option = setting_option("text.encoding", metavar="NAME")
# Where the tasks of the corpus stages run; it does not change the results.
engine_options = shared_options("engine", "scheduler")


def output_option(
    metavar: str, description: str, *, is_folder: bool = False, required: bool = False
) -> Callable[[Function], Function]:
    """Return the --output option of a command that writes a file or a folder, shown as `metavar` in its help."""
    kind = click.Path(path_type=Path, file_okay=not is_folder, dir_okay=is_folder)
    return click.option("--output", type=kind, required=required, metavar=metavar, help=description)


def _only_standard_input(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in files and len(files) > 1:
        raise click.UsageError("- (standard input) cannot be combined with other files. Give - on its own.")
    return files


input_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=_only_standard_input)


class SettingsGroup(click.Group):
    """A click group whose commands print their settings if given --print-config, and then need no other arguments."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the called command, the command itself, and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        is_whole = command is not None and not isinstance(command, click.Group)
        if command is not None and is_whole and "--print-config" in rest and "--help" not in rest:
            command = settings_command(command)
        return name, command, rest


def settings_command(command: click.Command) -> click.Command:
    """Return a command that takes the options of another one, requires none of them, and prints the settings."""
    params = [copy(param) for param in command.params]
    for param in params:
        param.required = False

    def print_settings(run_path: Path | None = None, **values: Any) -> None:
        config = Common.taken_from(values).resolve(RunDir(run_path) if run_path else None)
        click.echo(render_config(config), nl=False)

    return click.Command(command.name, params=params, callback=print_settings, help=command.help)
