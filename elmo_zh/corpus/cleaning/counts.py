"""Counts of what became of lines, which add up over parts of a corpus in their order."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from elmo_zh.corpus.cleaning.examples import around_change, shortened

MOST_EXAMPLES = 5


@dataclass
class StepCounts:
    """What a step changed: lines, their changed pieces before and after in characters, and the first examples."""

    lines: int = 0
    characters_in: int = 0
    characters_out: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)

    def add(self, other: "StepCounts") -> None:
        """Add what comes after this in the corpus."""
        self.lines += other.lines
        self.characters_in += other.characters_in
        self.characters_out += other.characters_out
        self.examples += other.examples[: MOST_EXAMPLES - len(self.examples)]


@dataclass
class FoundLines:
    """Lines of one kind, such as those dropped for one reason: how many, of how many characters, the first examples."""

    lines: int = 0
    characters: int = 0
    examples: list[str] = field(default_factory=list)

    def count(self, line: str) -> None:
        """Count one line; an empty one is no example."""
        self.lines += 1
        self.characters += len(line)
        if line and len(self.examples) < MOST_EXAMPLES:
            self.examples.append(shortened(line))

    def add(self, other: "FoundLines") -> None:
        """Add what comes after this in the corpus."""
        self.lines += other.lines
        self.characters += other.characters
        self.examples += other.examples[: MOST_EXAMPLES - len(self.examples)]


class LedgerEntry(NamedTuple):
    """All kept text before and after a step, in characters, and the lines that it changed."""

    step: str
    lines: int
    characters_in: int
    characters_out: int


@dataclass(slots=True)
class LineCounts:
    """What became of the lines of a part of a corpus, in its order.

    Characters are counted as read, so that all that were read are `kept_characters` and those of `dropped`. What
    steps did to a line counts once it is kept.

    Attributes:
        kept_lines: Lines that gave sentences.
        kept_characters: Of them, before any change.
        normalised_characters: Of them, after all changes, spaces within sentences among them.
        steps: By name of the setting.
        dropped: By reason.
        noticed: Lines that were kept and might be looked at, by reason.
    """

    kept_lines: int = 0
    kept_characters: int = 0
    normalised_characters: int = 0
    steps: dict[str, StepCounts] = field(default_factory=dict)
    dropped: dict[str, FoundLines] = field(default_factory=dict)
    noticed: dict[str, FoundLines] = field(default_factory=dict)
    _changes: dict[str, StepCounts] = field(default_factory=dict, repr=False, compare=False)
    _notices: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def lines(self) -> int:
        """All lines."""
        return self.kept_lines + sum(found.lines for found in self.dropped.values())

    @property
    def characters(self) -> int:
        """Characters of all lines, before any change."""
        return self.kept_characters + sum(found.characters for found in self.dropped.values())

    def change(self, step: str, before: str, after: str) -> None:
        """Take down what a step did to a piece of the line at hand."""
        change = self._changes.get(step)
        if change is None:
            has_room = step not in self.steps or len(self.steps[step].examples) < MOST_EXAMPLES
            examples = [around_change(before, after)] if has_room else []
            self._changes[step] = StepCounts(1, len(before), len(after), examples)
        else:
            change.characters_in += len(before)
            change.characters_out += len(after)

    def notice(self, reason: str) -> None:
        """Take down something of the line at hand that is worth a look."""
        self._notices.append(reason)

    def keep(self, line: str, normalised_characters: int) -> None:
        """Count the line at hand as kept, and what was done to it."""
        self.kept_lines += 1
        self.kept_characters += len(line)
        self.normalised_characters += normalised_characters
        if self._changes:
            for step, change in self._changes.items():
                self.steps.setdefault(step, StepCounts()).add(change)
            self._changes.clear()
        if self._notices:
            for reason in self._notices:
                self.noticed.setdefault(reason, FoundLines()).count(line)
            self._notices.clear()

    def drop(self, reason: str, line: str) -> None:
        """Count the line at hand as dropped, whatever was done to it."""
        self.dropped.setdefault(reason, FoundLines()).count(line)
        self._changes.clear()
        self._notices.clear()

    def merge(self, other: "LineCounts") -> None:
        """Add the counts of what comes after this in the corpus."""
        self.kept_lines += other.kept_lines
        self.kept_characters += other.kept_characters
        self.normalised_characters += other.normalised_characters
        for step, change in other.steps.items():
            self.steps.setdefault(step, StepCounts()).add(change)
        for mine, others in ((self.dropped, other.dropped), (self.noticed, other.noticed)):
            for reason, found in others.items():
                mine.setdefault(reason, FoundLines()).add(found)

    def ledger(self, steps: Iterable[str]) -> Iterator[LedgerEntry]:
        """Yield what went into each step of all kept text, and what came out of it and went into the next.

        Args:
            steps: In their order; all that changed anything have to be among them.
        """
        characters = self.kept_characters
        for step in steps:
            change = self.steps.get(step, StepCounts())
            after = characters - change.characters_in + change.characters_out
            yield LedgerEntry(step, change.lines, characters, after)
            characters = after
        assert characters == self.normalised_characters, "every change is of one of the steps"

    def as_record(self) -> dict[str, Any]:
        """Return all of it as values that JSON has."""
        return {name: value for name, value in asdict(self).items() if not name.startswith("_")}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "LineCounts":
        """Return what `as_record` gave, also after JSON."""
        counts = cls(**{name: record[name] for name in ("kept_lines", "kept_characters", "normalised_characters")})
        for step, change in record["steps"].items():
            examples = [(before, after) for before, after in change["examples"]]
            counts.steps[step] = StepCounts(**{**change, "examples": examples})
        for name in ("dropped", "noticed"):
            for reason, found in record[name].items():
                getattr(counts, name)[reason] = FoundLines(**{**found, "examples": list(found["examples"])})
        return counts
