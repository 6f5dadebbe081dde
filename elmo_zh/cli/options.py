"""Options that several commands share, and the values that they become."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import MISSING, Field, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import click

from elmo_zh.choices import BAD_BYTES, CORPUS_FORMATS, DEVICES, DOCUMENTS, Registry
from elmo_zh.cli.console import Console
from elmo_zh.config import Config, load_config, render_config
from elmo_zh.config.fields import option
from elmo_zh.config.privacy import set_private
from elmo_zh.language import translate
from elmo_zh.run.files import inputs_noted
from elmo_zh.run.layout import RunDir

if TYPE_CHECKING:
    from elmo_zh.engine.select import EngineChoice

Function = TypeVar("Function", bound=Callable[..., Any])
# Parameters that name what a command writes; all other paths are read.
_OUTPUTS = ("output", "picture", "run_path")


class RegisteredName(click.Choice[str]):
    """A name in a registry. The names are looked up when one is checked or shown, so that starting stays fast."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The built-in names and those of installed plug-ins."""
        return tuple(self._registry)


@dataclass(kw_only=True)
class Common:
    """The values of the options that commands share; each command has those that it needs."""

    config_path: Path | None = option(
        None,
        "TOML file of settings, such as configs/small.toml. Default: the run's own, else built-in.",
        names=("--config",),
        metavar="FILE",
    )
    assignments: tuple[str, ...] = option(
        (),
        "Change one setting, such as train.epochs=5; overrides --config and may be repeated.",
        names=("--set",),
        metavar="SECTION.KEY=VALUE",
    )
    force: bool = option(False, "Run even if nothing has changed, and overwrite the output.")
    quiet: bool = option(False, "Print only warnings and errors.")
    as_json: bool = option(False, "Print the result as one JSON object on stdout.", names=("--json",))
    private: bool = option(False, "Keep tokens and lines of the text out of messages, reports and pictures.")
    print_config: bool = option(False, "Print the settings that the command would use, with explanations, and exit.")
    format: str | None = option(
        None,
        f"Format of the files: {', '.join((*CORPUS_FORMATS.also, *CORPUS_FORMATS.built_in))}."
        " Default auto: detected for each file.",
        choices=CORPUS_FORMATS,
        names=("--format", "--input-format"),
        metavar="FORMAT",
    )
    field: str | None = option(
        None,
        "Fields with the text: columns of CSV and TSV by name or number, JSON keys (a.b). Default: detected.",
        metavar="NAME,...",
    )
    encoding: str | None = option(
        None, "Encoding of the files, such as gb18030. Default: detected for each file.", metavar="NAME"
    )
    bad_bytes: str | None = option(
        None,
        "What to do with lines that cannot be decoded; strict is an error. Default skip-line.",
        choices=BAD_BYTES,
    )
    document: str | None = option(None, "Unit of plain text that is one document. Default file.", choices=DOCUMENTS)
    user_dictionary: Path | None = option(
        None,
        "Words of your own that the segmenter keeps whole: a dictionary in jieba's format, or a table that the command"
        " words has written.",
        metavar="FILE",
        path={"exists": True, "dir_okay": False},
    )
    engine: str = option(
        "local",
        "Run tasks on this machine (local) or on a Dask cluster (docs/clusters.md).",
        choices=("local", "dask"),
    )
    scheduler: str = option(
        "",
        "Address of Dask's scheduler, such as tcp://192.168.0.1:8786; needed by --engine dask.",
        metavar="ADDRESS",
    )

    @property
    def console(self) -> Console:
        """The console that shows messages and progress."""
        return Console(quiet=self.quiet)

    @property
    def reading(self) -> list[str]:
        """The settings of section text that options of reading set."""
        names = ("format", "field", "encoding", "bad_bytes", "document", "user_dictionary")
        return [f"text.{name}={value}" for name in names if (value := getattr(self, name)) is not None]

    def resolve(self, run: RunDir | None = None) -> Config:
        """Return the settings: the run's settings or the defaults, as changed by --config and then by --set."""
        if (self.engine == "dask") != bool(self.scheduler):
            raise click.UsageError("--engine dask and --scheduler ADDRESS need each other. Give both or neither.")
        assignments = [*self.assignments, *self.reading, *(["text.private=true"] if self.private else [])]
        if run is not None:
            config = run.load_config(self.config_path, assignments)
        else:
            config = load_config(Config(), self.config_path, assignments)
        set_private(config.text.private)
        return config

    @contextmanager
    def claimed(self, *outputs: Path | None, formats: Collection[str] = ()) -> Iterator[None]:
        """Reserve the files that a command writes; with `formats`, their names have to end with one of these."""
        from elmo_zh.run.files import claimed_output
        from elmo_zh.run.tables import require_suffix

        with ExitStack() as stack:
            for path in filter(None, outputs):
                if formats:
                    require_suffix(path, formats)
                stack.enter_context(claimed_output(path, (), Path.is_file, force=self.force))
            yield

    def choose_engine(self, config: Config) -> "EngineChoice":
        """Return the engine that runs the tasks of the corpus stages."""
        from elmo_zh.engine.select import EngineChoice

        return EngineChoice(num_workers=config.text.num_workers, kind=self.engine, scheduler=self.scheduler)

    def finish(self, result: Mapping[str, Any], *lines: str) -> None:
        """Print the result: one JSON object with --json, otherwise lines for people."""
        if self.as_json:
            click.echo(json.dumps(result, ensure_ascii=False))
        elif not self.quiet:
            for line in lines:
                click.echo(translate(line))


def with_options(function: Function, options: Sequence[Callable[[Any], Any]]) -> Function:
    """Return a command's function with options, which its help lists in this order."""
    for add in reversed(options):
        function = add(function)
    return function


def takes(group: type, parameter: str, *, without: Collection[str] = ()) -> Callable[[Function], Function]:
    """Add the options that a dataclass declares with `config.fields.option`, in the order of its fields.

    The command gets them as one value of that class, in the parameter that is named. Fields in `without` are no options
    of this command.
    """
    declared = [each for each in fields(group) if "option" in each.metadata and each.name not in without]

    def decorate(function: Function) -> Any:
        @wraps(function)
        def command(*args: Any, **values: Any) -> Any:
            chosen = group(**{each.name: values.pop(each.name) for each in declared})
            return function(*args, **{parameter: chosen}, **values)

        return with_options(command, [_declared_option(each, each.name) for each in declared])

    return decorate


def _declared_option(declared: Field[Any], name: str, **changed: Any) -> Callable[[Any], Any]:
    """Return the option that a field declares, with type, range and default of the field."""
    attributes = {**declared.metadata["option"], **changed}
    names = attributes.pop("names", (f"--{declared.name.replace('_', '-')}",))
    has_default = declared.default is not MISSING
    found = {
        "required": not has_default,
        "show_default": has_default and declared.default not in (None, "", False, ()),
        "multiple": get_origin(declared.type) is tuple,
        "is_flag": declared.type is bool,
        "type": _type_of(declared, attributes.pop("path", {})),
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
        return click.FloatRange(above if least is None else least, most, min_open=above is not None)
    return kind


def _kept(name: str, **changed: Any) -> Callable[[Any], Any]:
    """Return the option that a field of `Common` declares, which is kept in the context's `Common`."""
    (declared,) = [each for each in fields(Common) if each.name == name]

    def keep(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        setattr(context.ensure_object(Common), name, value)

    return _declared_option(declared, f"common_{name}", **{"expose_value": False, "callback": keep, **changed})


def common_options(function: Callable[..., Any]) -> Any:
    """Add the options of all commands that write; no output may replace a file or folder that the command is given."""
    names = ("config_path", "assignments", "force", "quiet", "as_json", "private", "print_config")

    @wraps(function)
    def command(*args: Any, **values: Any) -> Any:
        context = click.get_current_context()
        for name in ("output", "picture"):
            # Of "" click makes the current folder.
            if context.params.get(name) in (Path(), Path("/")):
                raise click.UsageError(f"--{name} is no name of a file or folder to write. Give one.")
        with inputs_noted(_given_paths(context)):
            return function(*args, **values)

    return with_options(command, [_kept(name) for name in names])


def _given_paths(context: click.Context) -> Iterator[Path]:
    """Yield the files and folders that the arguments and options of a command name for reading."""
    given = [value for name, value in context.params.items() if name not in _OUTPUTS]
    common = context.ensure_object(Common)
    for value in (*given, common.config_path, common.user_dictionary):
        yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Path))


def common_options_of_readers(function: Function) -> Function:
    """Add the options of all commands, for one that overwrites nothing; --force is still accepted, with a warning."""

    def warn(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            Console(quiet=False).warn(f"--force has no effect on {context.info_name}. Leave it out.")

    names = ("config_path", "assignments", "quiet", "as_json", "private", "print_config")
    return with_options(function, [*(_kept(name) for name in names), _kept("force", hidden=True, callback=warn)])


def input_options(function: Function) -> Function:
    """Add the options for how texts are read of which no line is left out."""
    return with_options(function, [_kept("format", names=("--input-format",)), _kept("field"), encoding_option])


def reading_options(function: Function) -> Function:
    """Add the options for how a corpus is read; each sets the setting of that name in section text."""
    return with_options(function, [_kept(name) for name in ("format", "field", "encoding", "bad_bytes", "document")])


def engine_options(function: Function) -> Function:
    """Add the options for where the tasks of the corpus stages run; they do not change the results."""
    return with_options(function, [_kept("engine"), _kept("scheduler")])


encoding_option = _kept("encoding")
user_dictionary_option = _kept("user_dictionary")


def _only_standard_input(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in files and len(files) > 1:
        raise click.UsageError("- (standard input) cannot be combined with other files. Give it alone.")
    return files


input_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=_only_standard_input)


def check_run_path(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Return the path of a run; raise RunError for a model bundle and for a folder of anything else."""
    from elmo_zh.bundle.find_bundle import require_no_bundle
    from elmo_zh.run.find_runs import require_run_or_room

    if path is not None and not context.resilient_parsing:
        require_no_bundle(path)
        require_run_or_room(path)
    return path


corpus_argument = click.argument("corpus", nargs=-1, required=True)

run_option = click.option(
    "--run",
    "run_path",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="RUN",
    callback=check_run_path,
    help="Folder of the run; segment and pipeline create it.",
)
init_option = click.option(
    "--init",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="BUNDLE",
    help="Start from the weights of this model, trained on other text. Default: train from scratch.",
)
device_option = click.option(
    "--device",
    type=click.Choice(DEVICES),
    default=None,
    help="Device that computes; auto uses a GPU, which is experimental, if there is one. Default auto.",
)


class SettingsGroup(click.Group):
    """A click group whose commands with --print-config print their settings and need nothing else, not even a run."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command that is called, the command, and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        is_whole = command is not None and not isinstance(command, click.Group)
        if command is not None and is_whole and "--print-config" in rest and "--help" not in rest:
            command = settings_command(command)
        return name, command, rest


def settings_command(command: click.Command) -> click.Command:
    """Return a command that takes the options of another one, needs none of them, and prints the settings."""
    params = [copy(param) for param in command.params]
    for param in params:
        param.required = False

    @click.pass_context
    def print_settings(context: click.Context, /, run_path: Path | None = None, **_: Any) -> None:
        config = context.ensure_object(Common).resolve(RunDir(run_path) if run_path else None)
        click.echo(render_config(config), nl=False)

    return click.Command(command.name, params=params, callback=print_settings, help=command.help)
