"""Messages, progress, failures and help, in the language of the user."""

import errno
import gettext
import inspect
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from tqdm import tqdm

from elmo_zh.config.load import HERE, name_here, sections_with
from elmo_zh.errors import ElmoZhError
from elmo_zh.invocation import explain_missing
from elmo_zh.language import DOMAIN, LOCALES, N_, _, chosen_language
from elmo_zh.run.files import FULL_DISK, is_full_disk, system_error_number
from elmo_zh.run.reporter import Progress, display_width, wrapped

# No line in the first 15 seconds; the rate is the mean since the start.
_EVERY_15_SECONDS: dict[str, Any] = {"ncols": 0, "mininterval": 15.0, "delay": 15.0, "miniters": 0, "smoothing": 0}
# What progress bars show besides names of commands and those in elmo_zh.names.
_NAMES = (N_("vectors"), N_("models"), N_("trainings"), N_("loss"), N_("dev"))
_COMMANDS_WITH_SETTINGS = ("plan", "segment", "vocab", "word2vec", "encode", "train", "pipeline")
_EXAMPLE = N_("Example:")


def one_line(message: str) -> str:
    """Escape control characters, line breaks and lone surrogates in a message; file names may contain them."""
    return "".join(
        ascii(sign)[1:-1] if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") else sign for sign in message
    )


class Console:
    """Prints messages and progress on stderr; stdout is for results only."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, message: str) -> None:
        """Print an informative message, unless --quiet."""
        if not self._quiet:
            _print(message)

    def warn(self, message: str) -> None:
        """Print a warning, even with --quiet."""
        _print(_("Warning: {message}").format(message=message))

    @contextmanager
    def progress(
        self, description: str, *, unit: str, total: int | None = None, initial: int = 0
    ) -> Iterator[Progress]:
        """Show a running count with its rate, unless --quiet: as a bar on a terminal, otherwise as plain lines."""
        on_terminal = sys.stderr.isatty()
        with (tqdm if on_terminal else _Lines)(
            desc=_(description),
            unit=f" {_(unit)}",
            total=total,
            initial=initial,
            unit_scale=True,
            leave=False,
            file=sys.stderr,
            disable=self._quiet,
            **({"dynamic_ncols": True} if on_terminal else _EVERY_15_SECONDS),
        ) as bar:
            yield _Bar(bar)


def _print(message: str) -> None:
    """Print a message, above the progress bar if there is one."""
    if sys.stderr.isatty():
        tqdm.write(one_line(message), file=sys.stderr)
    else:
        click.echo(one_line(message), err=True)


def _figure(value: float) -> str:
    """Return a number for display: without decimals from 1000 up (rates), with three below that (losses)."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


class _Bar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def update(self, amount: int, **figures: float) -> None:
        if figures:
            shown = {_(name): _figure(value) for name, value in figures.items()}
            self._bar.set_postfix(shown, refresh=not (amount or isinstance(self._bar, _Lines)))
        self._bar.update(amount)


class _Lines(tqdm):  # type: ignore[misc]
    """Progress as whole lines, in the format of the progress bar."""

    monitor_interval = 0

    def display(self, msg: str | None = None, pos: int | None = None) -> None:  # noqa: ARG002
        """Print a line; print nothing for "", with which tqdm clears a bar."""
        if msg is None:
            click.echo(str(self), err=True)


def explain_failure(error: Exception, command: str = "") -> list[str] | None:
    """Return the messages for a known problem in a command, or None for a bug, which needs its traceback.

    Known problems are elmo-zh's own errors, missing extras, too little memory, and errors of the operating system.
    """
    if isinstance(error, ElmoZhError):
        return list(error.messages)
    if isinstance(error, ImportError) and (message := explain_missing(error, command)):
        return [message]
    text = " ".join(str(error).split())
    number = system_error_number(error)
    filename = error.filename if isinstance(error, OSError) else None
    system = os.strerror(number) if number else text
    place = f"{filename}: " if filename else ""
    if is_full_disk(error):
        return [_(FULL_DISK).format(place=place or "elmo-zh: ")]
    if number == errno.ENOMEM or isinstance(error, MemoryError) or re.search("out of memory|t allocate memory", text):
        message = _(
            "There is not enough memory ({detail}). Set text.num_workers=1, lower train.batch_size or"
            " embed.batch_tokens, or process less text."
        )
        return [message.format(detail=system[:200] or "MemoryError")]
    if number or isinstance(error, OSError):
        return [_("{place}{system}. Check the path, its permissions and the disk.").format(place=place, system=system)]
    return None


def with_advice(error: click.UsageError) -> click.UsageError:
    """Return a usage error; for an unknown option, add advice if there is any."""
    context = error.ctx
    if not isinstance(error, click.NoSuchOption) or context is None:
        return error
    key, advice = error.option_name.lstrip("-").replace("-", "_"), ""
    if context.info_name in _COMMANDS_WITH_SETTINGS and (sections := sections_with(key)):
        advice = _(HERE).format(name=", ".join(f"--set {section}.{key}=VALUE" for section in sections))
    else:
        advice = name_here(key, "--set {}=VALUE")
    return click.UsageError(f"{error.message} {advice}", context) if advice else error


def translate_help(command: click.Command, translate: Callable[[str], str] = _) -> None:
    """Translate the help texts of a command, its options and its subcommands, paragraph by paragraph."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    command.help = "\n\n".join(
        text.replace(_EXAMPLE, translate(_EXAMPLE)) if text.startswith("\b") else translate(" ".join(text.split()))
        for text in paragraphs
    )
    for option in command.params:
        if isinstance(option.type, click.Path):  # click translates its name before it knows the catalogue
            option.type.name = translate(option.type.name)
        if isinstance(option, click.Option) and option.help:
            option.help = translate(option.help)
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        translate_help(subcommand, translate)


def speak(command: click.Group) -> None:
    """Make click and the help of all commands use the language of the environment."""
    language = chosen_language()
    # click translates its own words with gettext, which looks at this variable first.
    os.environ["LANGUAGE"] = language
    if language != "en":
        gettext.bindtextdomain(DOMAIN, str(LOCALES))
        click.Context.formatter_class = _WideFormatter
        translate_help(command)


class _WideFormatter(click.HelpFormatter):
    """Formats help in which characters may be two columns wide."""

    def write_heading(self, heading: str) -> None:
        """Write the title of a section, followed by a full-width colon."""
        self.write(f"{' ' * self.current_indent}{heading}：\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs, indented; those that begin with \\b keep their line breaks."""
        for number, paragraph in enumerate(text.split("\n\n")):
            if number:
                self.write("\n")
            lines = paragraph.split("\n")[1:] if paragraph.startswith("\b") else [" ".join(paragraph.split())]
            for line in lines:
                kept = [line] if paragraph.startswith("\b") else wrapped(line, self.width - self.current_indent)
                self.write("".join(f"{' ' * self.current_indent}{part}\n" for part in kept))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and their descriptions in two columns."""
        rows = list(rows)
        first = min(max(display_width(name) for name, _ in rows), col_max) + col_spacing
        for name, description in rows:
            margin = " " * (self.current_indent + first)
            lines = list(wrapped(description, max(self.width - len(margin), 10)))
            start = f"{' ' * self.current_indent}{name}"
            fits = display_width(name) <= first - col_spacing
            self.write(f"{start}{' ' * (first - display_width(name))}{lines.pop(0)}\n" if fits else f"{start}\n")
            self.write("".join(f"{margin}{line}\n" for line in lines if line))
