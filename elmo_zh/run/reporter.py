"""Report messages and progress, wherever they are shown, and format figures and tables as text."""

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import reduce
from typing import Protocol

from elmo_zh.language import _, ngettext

# A line may break between any two Chinese characters, but not before these.
_NOT_FIRST = "，。；：、！？）》”’,.;:!?)"
_PIECES = re.compile(r"[!-~\x1b]+|\s+|.")


class Progress(Protocol):
    """A running count, such as the number of tokens trained on so far."""

    def update(self, amount: int, **figures: float) -> None:
        """Increase the count; each keyword argument is a figure to show beside it."""


class Reporter(Protocol):
    """Receives messages and progress, which the command line shows."""

    def note(self, message: str) -> None:
        """Report an informative message."""

    def warn(self, message: str) -> None:
        """Report something that the user should look at."""

    def progress(
        self, description: str, *, unit: str, total: int | None = None, initial: int = 0
    ) -> AbstractContextManager[Progress]:
        """Start a running count of `total` units (None: unknown), of which `initial` are already finished."""


class _NoProgress:
    def update(self, amount: int, **figures: float) -> None:
        pass


class SilentReporter:
    """A `Reporter` that shows nothing, but may pass warnings on."""

    _warn: Callable[[str], object] | None = None

    def __init__(self, warn: Callable[[str], object] | None = None) -> None:
        """Pass warnings to `warn`; without it, discard them."""
        self._warn = warn

    def note(self, message: str) -> None:  # noqa: D102
        pass

    def warn(self, message: str) -> None:  # noqa: D102
        if self._warn:
            self._warn(message)

    @contextmanager
    def progress(self, *_: object, **__: object) -> Iterator[Progress]:  # noqa: D102
        yield _NoProgress()


def silence_stderr() -> None:
    """Discard what is written to stderr from now on: after SIGHUP its terminal is closed, and writing would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class Hints:
    """Gives a reporter each piece of advice once, however many texts a command reads."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._given: set[str] = set()

    def give(self, reason: str, message: str) -> None:
        """Report advice as a warning, unless a warning for this reason was given before."""
        if reason not in self._given:
            self._given.add(reason)
            self._reporter.warn(message)


def format_date(moment: str) -> str:
    """Convert an ISO 8601 time stamp to the local date and time, such as 2026-11-22 16:18."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")


def format_seconds(seconds: float) -> str:
    """Format a duration: 45 s, 12 min, 3.4 h or 21 d."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 86_400:,.0f} d"


def counted(number: int, one: str, many: str) -> str:
    """Return the singular or plural message with its number: `counted(n, "{number} line", "{number} lines")`."""
    return ngettext(one, many, number).format(number=f"{number:,}")


def first_ten(names: Sequence[str], total: int = 0) -> str:
    """Join the first ten names with commas; add "and others" if there are more names, or `total` is larger."""
    shown = _(", ").join(names[:10])
    return _("{names} and others").format(names=shown) if max(len(names), total) > len(names[:10]) else shown


def joined(parts: Sequence[str]) -> str:
    """Join parts of a sentence, such as "2 labels, 3 spans", as the user's language does; leave out empty ones."""
    first, *others = filter(None, parts) if any(parts) else [""]
    return reduce(lambda text, detail: _("{text}, {detail}").format(text=text, detail=detail), others, first)


def format_bytes(num_bytes: float) -> str:
    """Format a size, such as 13 B, 1.5 kB or 22.0 MB."""
    if num_bytes < 1000:
        return f"{num_bytes:.0f} B"
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes / 1e3:,.1f} kB"


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,), header: Sequence[str] = ()) -> Iterator[str]:
    """Yield a table's rows for a terminal, below the translated header; the columns in `left` are left-aligned."""
    rows = [[*map(_, header)], *rows] if header else rows
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        spaces = (" " * (width - display_width(cell)) for cell, width in zip(row, widths, strict=True))
        cells = (
            cell + space if number in left else space + cell
            for number, (cell, space) in enumerate(zip(row, spaces, strict=True))
        )
        yield "  ".join(cells).rstrip()


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text takes up; a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def wrapped(text: str, columns: int) -> Iterator[str]:
    """Wrap a text and yield its lines; a Chinese character is two columns wide."""
    line = ""
    for piece in _PIECES.findall(text):
        if line and display_width(line + piece.rstrip()) > columns and piece[0] not in _NOT_FIRST:
            yield line.rstrip()
            line = piece.lstrip()
        else:
            line += piece
    yield line.rstrip()
