"""Messages and progress on stderr: a progress bar on a terminal, plain lines in a log."""

import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click
from tqdm import tqdm

from elmo_zh.language import translate
from elmo_zh.run.reporter import Progress, steps_watched

_SECONDS_BETWEEN_LINES = 15.0
# The place of a message, which is translated by itself, after the word that it begins with.
MARK = "\0"


def one_line(message: str) -> str:
    """Return a message with control characters, line breaks and lone surrogates in names escaped."""
    return "".join(
        ascii(sign)[1:-1] if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") else sign for sign in message
    )


class SteadyStream:
    """A message stream that goes silent, while the work goes on, when its terminal is closed or its disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the wrapped stream."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text if the stream accepts it."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush buffered text if the stream accepts it."""
        with suppress(OSError):
            self._stream.flush()


class Console:
    """Prints messages and progress on stderr; stdout is for results only."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, message: str) -> None:
        """Print an informative message, unless --quiet."""
        if not self._quiet:
            tqdm.write(one_line(translate(message)), file=sys.stderr)

    def warn(self, message: str) -> None:
        """Print a warning, even with --quiet."""
        tqdm.write(one_line(translate(f"Warning: {MARK}").replace(MARK, translate(message))), file=sys.stderr)

    @contextmanager
    def progress(
        self, description: str, *, unit: str, total: int | None = None, initial: int = 0
    ) -> Iterator[Progress]:
        """Show a running count with its rate and the time remaining."""
        on_terminal = sys.stderr.isatty()
        description, unit = translate(description), translate(unit)
        with tqdm(
            desc=description,
            unit=f" {unit}",
            total=total,
            initial=initial,
            unit_scale=True,
            leave=False,
            file=sys.stderr,
            disable=self._quiet or not on_terminal,
            dynamic_ncols=True,
        ) as bar:
            shown = _Bar(bar) if on_terminal or self._quiet else _Lines(description, unit, total, initial)
            with steps_watched(lambda num_tokens: shown.update(0, **{"tokens of this line": num_tokens})):
                yield shown


def _figure(value: float) -> str:
    """Return a number for display: without decimals from 1000 on (rates), with three below (losses)."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}"


class _Bar:
    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def update(self, amount: int, **figures: float) -> None:
        self._bar.update(amount)
        if figures:
            shown = {translate(name): _figure(value) for name, value in figures.items()}
            self._bar.set_postfix(shown, refresh=not amount)


class _Lines:
    """Prints a line every 15 seconds, formatted like the progress bar."""

    def __init__(self, description: str, unit: str, total: int | None, initial: int) -> None:
        self._description, self._unit, self._total = description, unit, total
        self._count = self._initial = initial
        self._start = self._last = time.monotonic()

    def update(self, amount: int, **figures: float) -> None:
        self._count += amount
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = now
        line = tqdm.format_meter(
            n=self._count,
            total=self._total,
            elapsed=now - self._start,
            initial=self._initial,
            ncols=0,
            prefix=self._description,
            unit=f" {self._unit}",
            unit_scale=True,
            postfix=", ".join(f"{translate(name)}={_figure(value)}" for name, value in figures.items()),
        )
        click.echo(line, err=True)
