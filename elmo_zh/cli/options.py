"""Options that several commands share, and the context that holds their values."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elmo_zh.bundle.find_bundle import explain_no_bundle, find_bundle, require_no_bundle
from elmo_zh.choices import DEVICES
from elmo_zh.cli.console import Console
from elmo_zh.cli.declared import Function, option_of, with_options
from elmo_zh.config import Config, config_names, load_config, setting
from elmo_zh.config.declare import declare, values_of
from elmo_zh.errors import NO_EFFECT, BundleError, OptionError
from elmo_zh.invocation import command
from elmo_zh.language import _
from elmo_zh.names import label
from elmo_zh.run.layout import RunDir
from elmo_zh.run.outputs import claimed_output, require_no_input
from elmo_zh.run.reporter import aligned

if TYPE_CHECKING:
    from elmo_zh.bundle.read import Bundle
    from elmo_zh.corpus.input_texts import InputText
    from elmo_zh.engine import EngineChoice

# Kinds of paths.
FILE, FOLDER = {"dir_okay": False}, {"file_okay": False}
# Parameters with paths that a command writes; all other paths are read.
_OUTPUTS = ("common_output", "common_picture", "common_run_path")
# Options of commands that read any kind of text, and of those that can run on a cluster.
INPUT, ENGINE = ("text.format", "text.field", "text.encoding"), ("engine", "scheduler")
# Settings that a command reads if it has this option, besides the setting that the option itself sets.
_READ_WITH = {
    "common_engine": ("text.num_workers",),
    "common_user_dictionary": ("text.user_dictionary",),
    "text__format": ("text.join_lines",),
}
# Settings that have no effect on text that is already split into tokens.
_OF_RAW_TEXT = ("text.format", "text.field", "text.join_lines", "text.user_dictionary")

# What options say that set a setting, as the setting does.
_DICTIONARY, _DEVICE, _INIT, _WORDS = (
    value.help
    for name in ("text.user_dictionary", "train.device", "train.init", "vocab.words")
    if (value := setting(name))
)


def _checked_run(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Return the path of a run; raise RunError if the folder has files but is not a run, such as a model bundle."""
    from elmo_zh.run.layout import require_run_or_room

    if path is not None and not context.resilient_parsing:
        require_no_bundle(path)
        require_run_or_room(path)
    return path


def _found_vectors(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    """Return the folder of a model or run, given by path or installed name; raise BundleError if it does not exist."""
    if value is None:
        return None
    path = find_bundle(value)
    if not path.exists():
        raise BundleError(explain_no_bundle(path))
    return path


@dataclass(frozen=True, kw_only=True)
class Common:
    """The context of a command: the values of the shared options; those that the command lacks have their defaults."""

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
    quiet: bool = declare(False, "Print only warnings and errors and, with --json, the result.")
    as_json: bool = declare(False, "Print the result as one JSON object on stdout.", names=("--json",))
    user_dictionary: Path | None = declare(None, _DICTIONARY, metavar="FILE", path={"exists": True, "dir_okay": False})
    engine: str = declare(
        "local",
        "Where to run: on this machine (local) or on a Dask cluster (dask; docs/clusters.md).",
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
    device: str | None = declare(None, _DEVICE, choices=DEVICES)
    segmented: bool = declare(
        False, "The text is already segmented: one sentence per line, with a single space between tokens."
    )
    stateful: bool = declare(
        False, "Carry the LSTM state across sentences, as the original ELMo does. This prevents batching and is slower."
    )
    output: Path | None = declare(None, "File to write. Default: standard output.", metavar="FILE", path=FILE)
    picture: Path | None = declare(
        None, "Write a map of the occurrences, coloured by usage, to this PNG file.", metavar="FILE", path=FILE
    )
    run_path: Path | None = declare(
        None,
        "Folder of the run; segment and pipeline create it.",
        names=("--run",),
        metavar="RUN",
        path=FOLDER,
        callback=_checked_run,
    )
    init: Path | None = declare(None, _INIT, metavar="BUNDLE")
    checkpoint: str = declare(
        "best",
        "Checkpoint to export: best (lowest held-out perplexity), last, or a step number.",
        metavar="best|last|STEP",
    )
    source: Path | None = declare(None, _WORDS, names=("--from",), metavar="FILE", path=FILE)
    index: Path | None = declare(None, "Folder that the index command wrote.", metavar="INDEX")
    task: Path | None = declare(None, "Folder that task fit wrote.", metavar="TASK")
    word2vec: Path | None = declare(
        None,
        "Model or run whose word2vec vectors are compared. Default: the model's own vectors, if it has any.",
        metavar="PATH",
        callback=_found_vectors,
    )
    named: frozenset[str] = frozenset()  # The settings that were given by --set or by options of their own
    config: Config = field(default_factory=Config)

    @classmethod
    def taken_from(cls, values: dict[str, Any]) -> "Common":
        """Move the values of shared options out of a command's `values`; return them, with the settings loaded."""
        shared = {name.removeprefix("common_"): values.pop(name) for name in [*values] if name.startswith("common_")}
        settings: dict[str, Any] = {name.replace("__", "."): values.pop(name) for name in [*values] if "__" in name}
        settings = {name: value for name, value in settings.items() if value is not None}
        if shared.get("user_dictionary"):
            settings["text.user_dictionary"] = str(shared["user_dictionary"])
        # The run's settings or the defaults, changed first by --config, then by --set, then by other options.
        run_path, assignments = shared.get("run_path"), shared["assignments"]
        load = RunDir(run_path).load_config if run_path else partial(load_config, Config())
        config = load(shared["config_path"], assignments, settings)
        named = frozenset({*config_names(None, assignments), *settings})
        if "user_dictionary" in shared and "text.user_dictionary" in named and config.text.user_dictionary:
            shared["user_dictionary"] = path = Path(config.text.user_dictionary)
            if not path.is_file():
                raise OptionError.missing(path)
        common = cls(named=named, config=config, **shared)
        pair = ("--engine dask", "--scheduler ADDRESS")
        if (common.engine == "dask") != bool(common.scheduler):
            raise OptionError.needs(*(pair if common.engine == "dask" else reversed(pair)))
        return common

    @cached_property
    def console(self) -> Console:
        """The console that shows messages and progress."""
        return Console(quiet=self.quiet)

    def choose_engine(self, config: Config) -> "EngineChoice":
        """Return the engine that the user chose for the tasks of a stage or another job."""
        from elmo_zh.engine import EngineChoice

        return EngineChoice(num_workers=config.text.num_workers, kind=self.engine, scheduler=self.scheduler)

    @contextmanager
    def opened_texts(
        self, files: Sequence[str], *, from_name: str | None = None, **changed: Any
    ) -> Iterator[list["InputText"]]:
        """Open the texts that a command reads; `changed` overrides settings of section text."""
        from elmo_zh.corpus.input_texts import input_text, opened_inputs

        text = replace(self.config.text, **changed)
        with opened_inputs(files, self.console) as sources:
            yield [input_text(file, text, segmented=self.segmented, from_name=from_name) for file in sources.sources]

    @property
    def written(self) -> Path:
        """The output of a command that requires one."""
        assert self.output is not None, "the option is required"
        return self.output

    @property
    def run(self) -> RunDir:
        """The run of a command that requires one."""
        assert self.run_path is not None, "the option is required"
        return RunDir(self.run_path)

    @contextmanager
    def claimed(self, *formats: str) -> Iterator[None]:
        """Reserve the files that a command writes; if `formats` are given, the output's suffix must be one of them."""
        from elmo_zh.run.tables import require_suffix

        with ExitStack() as stack:
            for path, option, suffixes in ((self.output, "--output", formats), (self.picture, "--picture", (".png",))):
                if path is not None:
                    if suffixes:
                        require_suffix(path, suffixes, option)
                    names = (option, "--force")
                    stack.enter_context(claimed_output(path, (), Path.is_file, force=self.force, names=names))
            yield

    def finish(
        self,
        result: Mapping[str, Any],
        lines: Iterable[str] | None = None,
        *,
        bundle: "Bundle | None" = None,
        following: Sequence[str | Path] | str = (),
    ) -> None:
        """Print the result: with --json, one JSON object; otherwise lines for people, unless --quiet.

        Args:
            result: The values; the outputs that the command was given are added.
            lines: What people see; by default a line for each value. The outputs follow.
            bundle: The model used, which only the JSON object includes.
            following: The words of the command to type next, or a sentence on what to do next.
        """
        outputs = {"output": self.output, "picture": self.picture}
        written = {name: path for name, path in outputs.items() if path is not None}
        if self.as_json:
            if bundle is not None:
                from elmo_zh.bundle.read import describe_model

                result = {**result, "model": describe_model(bundle)}
            click.echo(json.dumps(_plain({**result, **written}), ensure_ascii=False, allow_nan=False))
        elif not self.quiet:
            shown = figures({**result, **written}) if lines is None else [*lines, *figures(written)]
            if following and not isinstance(following, str):
                following = _("Next: {command}").format(command=command(*following))
            for line in (*shown, *([following] if following else [])):
                click.echo(line)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold: paths become text, and numbers that are not finite become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def figures(result: Mapping[str, Any]) -> list[str]:
    """Return a line for each item of a result whose value is not None or empty: its name and its value."""
    from elmo_zh.info.describe import rows

    return [*rows({name: value for name, value in result.items() if value is not None})]


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table, headings first, with text columns left-aligned; [] if there are no rows."""
    if not rows:
        return []
    left = [number for number, value in enumerate(rows[0].values()) if isinstance(value, str)]
    return [*aligned([[*map(label, rows[0])], *([*map(_cell, row.values())] for row in rows)], left)]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def shared_options(*names: str, **changed: Any) -> Callable[[Function], Function]:
    """Return a decorator that adds options: fields of `Common`, or settings by names such as text.encoding.

    The command receives their values in a `Common`; `changed` has what differs from the declaration, such as help.
    """
    options = []
    for name in names:
        if value := setting(name):
            options.append(option_of(value, name.replace(".", "__"), is_setting=True, **{"default": None, **changed}))
        else:
            options.append(option_of(values_of(Common)[name], f"common_{name}", **changed))
    return lambda function: with_options(function, options)


def reads(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that declares which settings (section or section.key) a command reads besides its options."""

    def declare_reads(function: Function) -> Function:
        function.__dict__["reads"] = names
        return function

    return declare_reads


def common_options_of_readers(function: Callable[..., Any]) -> Any:
    """Add the options that all commands share; leave --force out of the help, for a command that does not need it."""
    return common_options(function, hides_force=True)


def common_options(function: Callable[..., Any], *, hides_force: bool = False) -> Any:
    """Add the options that all commands share; the function receives their values as its first argument, a `Common`.

    Outputs may not replace a file or folder given to the command. Commands without --run warn about settings, from
    --set or an option, that they do not read.
    """

    @wraps(function)
    def decorated(**values: Any) -> Any:
        context = click.get_current_context()
        _refuse_outputs(context)
        common = Common.taken_from(values)
        if "common_run_path" not in context.params:
            _name_unread(common, context, getattr(function, "reads", ()))
        return function(common, **values)

    first, last = ("config_path", "assignments"), ("quiet", "as_json")
    force = shared_options("force", hidden=hides_force)
    return with_options(decorated, [shared_options(*first), force, shared_options(*last)])


def _name_unread(common: Common, context: click.Context, also_read: Collection[str]) -> None:
    """Warn about each setting that --set or an option changes but the command does not read."""
    read = {*also_read, *(name.replace("__", ".") for name in context.params if "__" in name)}
    read |= {setting for parameter, names in _READ_WITH.items() if parameter in context.params for setting in names}
    # Segmented text is not prepared; an index, which is read without files, was prepared when it was made.
    if common.segmented or not context.params.get("files", True):
        read -= {"text", *_OF_RAW_TEXT}
    for name in sorted(common.named):
        if name not in read and name.partition(".")[0] not in read:
            typed = context.command_path.removeprefix(context.find_root().command_path).strip()
            typed += " --segmented" if common.segmented else ""
            common.console.warn(_(NO_EFFECT).format(name=name, other=typed))
    # With a model, its own segmenter decides.
    text = common.config.text
    if common.user_dictionary and not (common.segmented or "common_model" in context.params or text.dictionary):
        reason = f"text.segmenter = {text.segmenter}"
        common.console.warn(_(NO_EFFECT).format(name="text.user_dictionary", other=reason))


def _refuse_outputs(context: click.Context) -> None:
    """Raise an error for an output that does not name a file or folder, or that would replace what is read."""
    for option in ("output", "picture"):
        path = context.params.get(f"common_{option}")
        if path in (Path(), Path("/")):  # click turns "" into the current folder
            raise OptionError.unexpected(f'--{option} "{path}"', "NAME")
        if path is not None:
            require_no_input(path, _given_paths(context), f"--{option}")


def _given_paths(context: click.Context) -> Iterator[Path]:
    for name, value in context.params.items():
        if name not in _OUTPUTS and isinstance(value, tuple | Path):
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, str | Path):
                    yield from map(Path, glob(str(path), recursive=True) or [str(path)])  # noqa: PTH207


def refuse_together(option: str, others: Mapping[str, bool]) -> None:
    """Raise OptionError if any of the other options is given too; `others` says for each whether it is."""
    for other in [name for name, is_given in others.items() if is_given]:
        raise OptionError.together(option, other)


def require_one(options: Mapping[str, bool]) -> None:
    """Raise OptionError unless exactly one of two options is given; `options` says for each whether it is."""
    if sum(options.values()) != 1:
        one, other = options
        raise OptionError(_("Use either {one} or {other}.").format(one=one, other=other))


def _only_standard_input(_context: click.Context, _parameter: object, files: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in files and len(files) > 1:
        refuse_together("-", {"FILE": True})
    return files


input_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...", callback=_only_standard_input)
