"""Options that several commands share, and the values that they become."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

import click

from elmo_zh.choices import BAD_BYTES, BUNDLE_LAYOUTS, CORPUS_FORMATS, DEVICES, DOCUMENTS, WEIGHT_DTYPES, Registry
from elmo_zh.cli.console import Console
from elmo_zh.config import Config, load_config
from elmo_zh.config.fields import is_encoding
from elmo_zh.run.layout import RunDir

if TYPE_CHECKING:
    from elmo_zh.engine.select import EngineChoice

ENGINES = ("local", "dask")

Function = TypeVar("Function", bound=Callable[..., Any])


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
    """The values of the common options."""

    config_path: Path | None = None
    assignments: list[str] = field(default_factory=list)
    reading: list[str] = field(default_factory=list)
    engine: str = "local"
    scheduler: str = ""
    force: bool = False
    quiet: bool = False
    as_json: bool = False

    @property
    def console(self) -> Console:
        """The console that shows messages and progress."""
        return Console(quiet=self.quiet)

    def resolve(self, run: RunDir | None = None) -> Config:
        """Return the settings: the run's settings or the defaults, as changed by --config and then by --set."""
        assignments = [*self.assignments, *self.reading]
        if run is not None:
            config = run.load_config(self.config_path, assignments)
        else:
            config = load_config(Config(), self.config_path, assignments)
        return config

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
                click.echo(line)


def keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return a callback that keeps an option's value in the context's `Common`."""

    def callback(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        setattr(context.ensure_object(Common), name, list(value) if name == "assignments" else value)

    return callback


def with_options(function: Function, options: Sequence[Callable[[Any], Any]]) -> Function:
    """Return a command's function with options, which its help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def takes(group: type, parameter: str) -> Callable[[Function], Function]:
    """Add the options that a dataclass declares with `config.fields.option`, in the order of its fields.

    The command gets them as one value of that class, in the parameter that is named.
    """
    declared = [each for each in fields(group) if "option" in each.metadata]

    def decorate(function: Function) -> Any:
        @wraps(function)
        def command(*args: Any, **values: Any) -> Any:
            chosen = group(**{each.name: values.pop(each.name) for each in declared})
            return function(*args, **{parameter: chosen}, **values)

        return with_options(command, [_declared_option(each) for each in declared])

    return decorate


def _declared_option(declared: Field[Any]) -> Callable[[Any], Any]:
    """Return the option that a field declares, with type, range and default of the field."""
    attributes = dict(declared.metadata["option"])
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
    return click.option(*names, declared.name, **{**found, **attributes})


def _type_of(declared: Field[Any], path: Mapping[str, bool]) -> Any:
    choices, least, most, above = map(declared.metadata.get, ("choices", "least", "most", "above"))
    if choices is not None:
        return RegisteredName(choices) if isinstance(choices, Registry) else click.Choice(choices)
    # `int | None` and `tuple[int, ...]` are options of type int.
    (kind,) = [each for each in get_args(declared.type) or (declared.type,) if each not in (type(None), ...)]
    if kind is Path:
        return click.Path(path_type=Path, **path)
    if least is most is above is None:
        return kind
    if kind is int:
        return click.IntRange(least, most)
    if kind is float:
        return click.FloatRange(above if least is None else least, most, min_open=above is not None)
    return kind


def common_options(function: Function) -> Function:
    """Add the options of all commands that write; their values are kept in the context's `Common`."""
    force = click.option(
        "--force",
        is_flag=True,
        help="Run even if nothing has changed, and overwrite the output.",
        expose_value=False,
        callback=keep("force"),
    )
    return _add_common(function, force)


def common_options_of_readers(function: Function) -> Function:
    """Add the options of all commands, for one that overwrites nothing; --force is still accepted, with a warning."""

    def warn(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            Console(quiet=False).warn(f"--force has no effect on {context.info_name}. Leave it out.")

    return _add_common(function, click.option("--force", is_flag=True, hidden=True, expose_value=False, callback=warn))


def _add_common(function: Function, force: Callable[[Function], Function]) -> Function:
    options: list[Callable[[Function], Function]] = [
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="TOML file of settings, such as configs/small.toml. Default: the run's own, else built-in.",
            expose_value=False,
            callback=keep("config_path"),
        ),
        click.option(
            "--set",
            multiple=True,
            metavar="SECTION.KEY=VALUE",
            help="Change one setting, such as train.epochs=5; overrides --config and may be repeated.",
            expose_value=False,
            callback=keep("assignments"),
        ),
        force,
        click.option(
            "--quiet", is_flag=True, help="Print only warnings and errors.", expose_value=False, callback=keep("quiet")
        ),
        click.option(
            "--json",
            is_flag=True,
            help="Print the result as one JSON object on stdout.",
            expose_value=False,
            callback=keep("as_json"),
        ),
        click.option(
            "--print-config",
            is_flag=True,
            help="Print the settings that the command would use, with explanations, and exit.",
            expose_value=False,
        ),
    ]
    return with_options(function, options)


def _reading_option(setting: str, *names: str, **attributes: Any) -> Callable[[Function], Function]:
    """Return an option that sets a setting of section text."""

    def keep(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
        if setting == "encoding" and value not in (None, "auto") and not is_encoding(str(value)):
            raise click.BadParameter(f"{value!r} is not an encoding that Python knows, such as utf-8 or gb18030.")
        if value is not None:
            context.ensure_object(Common).reading.append(f"text.{setting}={value}")

    return click.option(*names, f"reading_{setting}", default=None, expose_value=False, callback=keep, **attributes)


encoding_option = _reading_option(
    "encoding",
    "--encoding",
    metavar="NAME",
    help="Encoding of the files, such as gb18030. Default: detected for each file.",
)


def _options_of_files(*names_of_format: str) -> list[Callable[[Any], Any]]:
    """Return the options for format, field and encoding of the files that are read."""
    return [
        _reading_option(
            "format",
            *names_of_format,
            type=RegisteredName(CORPUS_FORMATS),
            metavar="FORMAT",
            help=f"Format of the files: {', '.join((*CORPUS_FORMATS.also, *CORPUS_FORMATS.built_in))}."
            " Default auto: detected for each file.",
        ),
        _reading_option(
            "field",
            "--field",
            metavar="NAME,...",
            help="Fields with the text: columns of CSV and TSV by name or number, JSON keys (a.b). Default: detected.",
        ),
        encoding_option,
    ]


def _only_standard_input(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in files and len(files) > 1:
        raise click.UsageError("- (standard input) cannot be combined with other files. Give it alone.")
    return files


input_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=_only_standard_input)


def input_options(function: Function) -> Function:
    """Add the options for how texts are read of which no line is left out."""
    return with_options(function, _options_of_files("--input-format"))


def reading_options(function: Function) -> Function:
    """Add the options for how a corpus is read; each sets the setting of that name in section text."""
    options = [
        *_options_of_files("--format", "--input-format"),
        _reading_option(
            "bad_bytes",
            "--bad-bytes",
            type=click.Choice(BAD_BYTES),
            help="What to do with lines that cannot be decoded; strict is an error. Default skip-line.",
        ),
        _reading_option(
            "document",
            "--document",
            type=click.Choice(DOCUMENTS),
            help="Unit of plain text that is one document. Default file.",
        ),
    ]
    return with_options(function, options)


def engine_options(function: Function) -> Function:
    """Add the options for where the tasks of the corpus stages run; they do not change the results."""

    def keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        if value is not None:
            setattr(context.ensure_object(Common), str(parameter.name), value)

    def check(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
        keep(context, parameter, value)
        common = context.ensure_object(Common)
        if (common.engine == "dask") != bool(common.scheduler):
            raise click.UsageError("--engine dask and --scheduler ADDRESS need each other. Give both or neither.")

    # The engine is eager: it must be known when the scheduler's callback checks the two.
    engine = click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default=None,
        is_eager=True,
        expose_value=False,
        callback=keep,
        help="Run tasks on this machine (local) or on a Dask cluster (docs/clusters.md). Default local.",
    )
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        default=None,
        expose_value=False,
        callback=check,
        help="Address of Dask's scheduler, such as tcp://192.168.0.1:8786; needed by --engine dask.",
    )
    return with_options(function, [engine, scheduler])


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


def bundle_form_options(function: Function) -> Function:
    """Add the options for the form in which a model is written."""
    layout = click.option(
        "--layout",
        type=click.Choice(BUNDLE_LAYOUTS),
        default="bundle",
        show_default=True,
        help="Files to write: a bundle of this program, or the files that another program reads.",
    )
    dtype = click.option(
        "--dtype",
        type=click.Choice(WEIGHT_DTYPES),
        default="float32",
        show_default=True,
        help="Number type of the weights. float16 halves the files; all readers still load them.",
    )
    return with_options(function, [layout, dtype])
