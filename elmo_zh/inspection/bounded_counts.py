"""Counts of the frequent among any number of different things, in bounded memory."""

from collections import Counter
from collections.abc import Callable, Iterable


class BoundedCounts:
    """Counts like a Counter, and lets go of the rarest when there are too many (Manku and Motwani 2002).

    A thing that comes again after it was let go counts from 0, so counts are never too high, and too low by at most
    `largest_lost` each time that was done.

    Attributes:
        largest_lost: The highest count let go so far.
        num_lost: How many counts were let go.
    """

    def __init__(self, most: int, let_go: Callable[[str, int], None] = lambda _thing, _count: None) -> None:
        """Start with nothing.

        Args:
            most: Different things that are kept; between two rounds of letting go there may be twice as many.
            let_go: Told of each thing that is let go, and its count.
        """
        self._most, self._let_go = most, let_go
        self._counts: Counter[str] = Counter()
        self.largest_lost = 0
        self.num_lost = 0

    def update(self, things: Iterable[str]) -> None:
        """Count things."""
        self._counts.update(things)
        if len(self._counts) > 2 * self._most:
            self._shrink()

    def _shrink(self) -> None:
        ranked = self._counts.most_common()
        for thing, count in ranked[self._most :]:
            self._let_go(thing, count)
            self.largest_lost = max(self.largest_lost, count)
        self.num_lost += len(ranked) - self._most
        self._counts = Counter(dict(ranked[: self._most]))

    def most_common(self, number: int | None = None) -> list[tuple[str, int]]:
        """Return the most frequent things that are kept with their counts."""
        return sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:number]
