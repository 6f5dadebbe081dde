"""Advice on texts, given once for each reason, however many texts a command reads."""

from elmo_zh.run.reporter import Reporter, SilentReporter


class Hints:
    """Passes each kind of hint to a reporter once."""

    def __init__(self, reporter: Reporter | None = None) -> None:
        self._reporter = reporter or SilentReporter()
        self._given: set[str] = set()

    def give(self, kind: str, message: str) -> None:
        """Report a hint as a warning, unless one of its kind was given before."""
        if kind not in self._given:
            self._given.add(kind)
            self._reporter.warn(message)
