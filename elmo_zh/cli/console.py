"""Messages and progress on stderr: a progress bar on a terminal, plain lines in a log."""

import errno
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click
from tqdm import tqdm

from elmo_zh.language import N_, _
from elmo_zh.run.reporter import Progress

# No line in the first 15 seconds; the rate is the mean since the start.
_EVERY_15_SECONDS: dict[str, Any] = {"ncols": 0, "mininterval": 15.0, "delay": 15.0, "miniters": 0, "smoothing": 0}
# What progress bars show: descriptions, units and figures, which callers give as plain names.
_NAMES = (
    *(N_("segment"), N_("vocab"), N_("encode"), N_("train"), N_("evaluate"), N_("score"), N_("pairs"), N_("predict")),
    *(
        N_("index"),
        N_("count"),
        N_("choose"),
        N_("join"),
        N_("drift"),
        N_("usages"),
        N_("words used alike"),
        N_("vectors"),
    ),
    *(N_("surprisal"), N_("compare"), N_("linear models"), N_("read the text")),
    *(N_("tokens"), N_("lines"), N_("texts"), N_("words"), N_("occurrences"), N_("models"), N_("training runs")),
    *(N_("epochs"), N_("loss"), N_("dev")),
)


def one_line(message: str) -> str:
    """Escape control characters, line breaks and lone surrogates in a message; file names may contain them."""
    return "".join(
        ascii(sign)[1:-1] if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") else sign for sign in message
    )


class TerminalStream:
    """A stream to a terminal that falls silent once the terminal is closed, so that SIGHUP decides what happens then.

    Otherwise the next message would fail, and end training without a checkpoint.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        self._unless_closed(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        self._unless_closed(self._stream.flush)

    @staticmethod
    def _unless_closed(write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            if error.errno != errno.EIO:
                raise


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
        """Show a running count with its rate and the time remaining."""
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
