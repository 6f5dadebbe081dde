"""How long work tells what it does, without knowing whether a terminal, a log or nobody listens."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Progress(Protocol):
    """One running count, such as the tokens trained so far."""

    def update(self, amount: int, **figures: float) -> None:
        """Add to the count; figures are shown beside it, each under its keyword."""


class Reporter(Protocol):
    """Where messages and progress go. The command line shows them; the Python API stays silent."""

    def note(self, message: str) -> None:
        """Tell something worth knowing."""

    def warn(self, message: str) -> None:
        """Tell something that the user should look at."""

    def progress(
        self, description: str, *, unit: str, total: int | None = None, initial: int = 0
    ) -> AbstractContextManager[Progress]:
        """Open a running count of `total` units (unknown if None), `initial` of them already done."""


class _NoProgress:
    def update(self, amount: int, **figures: float) -> None:
        pass


class SilentReporter:
    """Tells nothing; its methods are those of `Reporter`."""

    def note(self, message: str) -> None:  # noqa: D102
        pass

    def warn(self, message: str) -> None:  # noqa: D102
        pass

    @contextmanager
    def progress(self, *_: object, **__: object) -> Iterator[Progress]:  # noqa: D102
        yield _NoProgress()


def format_seconds(seconds: float) -> str:
    """Return a duration: 45 s, 12 min, 3.4 h, 21 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 86_400:,.0f} days"


def format_bytes(num_bytes: float) -> str:
    """Return a size: 1.5 kB, 22.0 MB, 3.4 GB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            return f"{num_bytes / size:,.1f} {unit}"
    return f"{num_bytes / 1e3:,.1f} kB"
