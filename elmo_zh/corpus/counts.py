"""Count the text read from each source, changed, kept or dropped, with examples, and the files that were skipped.

The counts of consecutive parts can be added up.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple
from unicodedata import category

import msgspec

from elmo_zh.language import _

MOST_EXAMPLES = 5
# How many names a record lists for one reason at most.
_MOST_NAMES = 20


@dataclass
class FoundLines:
    """Lines of one kind, such as those that one step changed: how many, their characters, and the first examples."""

    lines: int = 0
    characters: int = 0
    characters_after: int = 0  # after the step that changed them
    examples: list[str | tuple[str, str]] = field(default_factory=list)

    def count(self, line: str) -> None:
        """Count one line; empty lines are not used as examples."""
        self.lines += 1
        self.characters += len(line)
        if line and len(self.examples) < MOST_EXAMPLES:
            self.examples.append(shortened(line))

    def add(self, other: "FoundLines") -> None:
        """Add the counts of later lines."""
        self.lines += other.lines
        self.characters += other.characters
        self.characters_after += other.characters_after
        self.examples += other.examples[: MOST_EXAMPLES - len(self.examples)]


class LedgerEntry(NamedTuple):
    """Number of characters in all kept text before and after a step, and the number of lines that it changed."""

    step: str
    lines: int
    characters_in: int
    characters_out: int


@dataclass(slots=True)
class LineCounts:
    """Counts the lines of a corpus shard as they are read: kept, dropped, changed, and worth checking.

    Characters are counted as read, so their total is `kept_characters` plus the characters of `dropped`. Changes to a
    line are counted when the line is kept. `normalised_characters` counts kept characters after all changes.
    """

    kept_lines: int = 0
    kept_characters: int = 0
    normalised_characters: int = 0
    steps: dict[str, FoundLines] = field(default_factory=dict)
    dropped: dict[str, FoundLines] = field(default_factory=dict)
    noticed: dict[str, FoundLines] = field(default_factory=dict)
    _changes: dict[str, FoundLines] = field(default_factory=dict, repr=False, compare=False)
    _notices: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def lines(self) -> int:
        """Number of lines, kept and dropped."""
        return self.kept_lines + sum(found.lines for found in self.dropped.values())

    def change(self, step: str, before: str, after: str) -> None:
        """Record that a step changed the current line or one of its sentences."""
        change = self._changes.get(step)
        if change is None:
            has_room = step not in self.steps or len(self.steps[step].examples) < MOST_EXAMPLES
            change = self._changes[step] = FoundLines(1, examples=[around_change(before, after)] if has_room else [])
        change.characters += len(before)
        change.characters_after += len(after)

    def notice(self, reason: str) -> None:
        """Record that the current line may be worth checking."""
        self._notices.append(reason)

    def keep(self, line: str, normalised_characters: int) -> None:
        """Count the current line as kept, with its changes."""
        self.kept_lines += 1
        self.kept_characters += len(line)
        self.normalised_characters += normalised_characters
        if self._changes:
            _add_all(self.steps, self._changes)
            self._changes.clear()
        if self._notices:
            for reason in self._notices:
                self.noticed.setdefault(reason, FoundLines()).count(line)
            self._notices.clear()

    def drop(self, reason: str, line: str) -> None:
        """Count the current line as dropped, without its changes."""
        self.dropped.setdefault(reason, FoundLines()).count(line)
        self._changes.clear()
        self._notices.clear()

    def merge(self, other: "LineCounts") -> None:
        """Add the counts of later lines in the corpus."""
        self.kept_lines += other.kept_lines
        self.kept_characters += other.kept_characters
        self.normalised_characters += other.normalised_characters
        _add_all(self.steps, other.steps)
        _add_all(self.dropped, other.dropped)
        _add_all(self.noticed, other.noticed)

    def ledger(self, steps: Iterable[str]) -> Iterator[LedgerEntry]:
        """Yield how many characters the kept text had before and after each step, in the order of the steps."""
        characters = self.kept_characters
        for step in steps:
            change = self.steps.get(step, FoundLines())
            after = characters - change.characters + change.characters_after
            yield LedgerEntry(step, change.lines, characters, after)
            characters = after
        assert characters == self.normalised_characters, "every change belongs to one of the steps"

    def as_record(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {name: value for name, value in asdict(self).items() if not name.startswith("_")}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "LineCounts":
        """Restore the counts from a record made by `as_record`, even after a round trip through JSON."""
        return msgspec.convert(record, cls)


def _add_all(totals: dict[str, FoundLines], others: Mapping[str, FoundLines]) -> None:
    for reason, found in others.items():
        totals.setdefault(reason, FoundLines()).add(found)


LONGEST_EXAMPLE = 80
_BEFORE_CHANGE = 20
_PLAIN = re.compile(r"[ !-\[\]-~\u3001-\u3029\u4e00-\u9fa5\uff01-\uff5e]*")


def visible(text: str) -> str:
    r"""Return a text with invisible and combining characters escaped as in Python strings.

    >>> visible("苹\u200b果\u3000\x1b[2J e\u0301 \\")
    '苹\\u200b果\\u3000\\x1b[2J e\\u0301 \\\\'
    """
    if _PLAIN.fullmatch(text):
        return text
    # This also escapes lone surrogates, which no file can hold.
    return "".join(
        sign
        if sign.isprintable() and sign != "\\" and not category(sign).startswith("M")
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def shortened(text: str) -> str:
    """Return the start of a text for display, with invisible characters escaped."""
    return visible(text if len(text) <= LONGEST_EXAMPLE else text[: LONGEST_EXAMPLE - 1] + "…")


def around_change(before: str, after: str) -> tuple[str, str]:
    """Cut two versions of a text to the part around their first difference, for display."""
    pairs = zip(before, after, strict=False)
    first = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = max(0, first - _BEFORE_CHANGE) if max(len(before), len(after)) > LONGEST_EXAMPLE else 0
    mark = "…" if start else ""
    return shortened(mark + before[start:]), shortened(mark + after[start:])


@dataclass
class PassedOver:
    """Files and pages that were left out of the corpus, by reason: how many, and the first names."""

    counts: Counter[str] = field(default_factory=Counter)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: str) -> None:
        """Count one file or wiki page, and keep its name if it is one of the first."""
        self.counts[reason] += 1
        listed = self.names.setdefault(reason, [])
        if len(listed) < _MOST_NAMES:
            listed.append(name)

    def extend(self, other: "PassedOver") -> None:
        """Add the counts of a later part."""
        for reason, names in other.names.items():
            listed = self.names.setdefault(reason, [])
            listed += names[: _MOST_NAMES - len(listed)]
        self.counts += other.counts

    @classmethod
    def restored(cls, described: dict[str, Any]) -> "PassedOver":
        """Restore the counts from the output of `described`."""
        return cls(
            counts=Counter({reason: entry["count"] for reason, entry in described.items()}),
            names={reason: list(entry["names"]) for reason, entry in described.items()},
        )

    def described(self) -> dict[str, Any]:
        """Return the counts in the form that a record stores."""
        return {reason: {"count": n, "names": self.names[reason]} for reason, n in sorted(self.counts.items())}

    def summary_lines(self) -> Iterator[str]:
        """Yield one message for each reason, with the first names."""
        for reason, count in sorted(self.counts.items()):
            names = ", ".join(self.names[reason][:3])
            if count > 3:
                names = _("{names} and {count:,} more").format(names=names, count=count - 3)
            yield _("Skipped ({reason}): {names}").format(reason=_(reason), names=names)


@dataclass
class Tally:
    """Counts for one source, in characters before any change; kept and dropped text add up to all that was read."""

    # Format, encoding and field of each file in the source; one entry unless the source is an archive.
    forms: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    read_field: str = ""  # Field or column read from the current file; its reader sets it before the first document
    # Fields or columns with Chinese text other than the chosen one, with the number of files.
    other_fields: Counter[str] = field(default_factory=Counter)
    # Layouts of plain text that make wrong words (`find_layout`), each with an example.
    layouts: dict[str, str] = field(default_factory=dict)
    documents: int = 0
    characters: int = 0
    kept_characters: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    dropped_items: Counter[str] = field(default_factory=Counter)  # Dropped lines, records or elements by reason

    def drop(self, reason: str, characters: int, items: int = 1) -> None:
        """Count text that was read but left out."""
        self.characters += characters
        self.dropped[reason] += characters
        self.dropped_items[reason] += items

    def take(self, lines: LineCounts) -> None:
        """Add the counts of this source's kept and dropped lines."""
        self.characters += lines.kept_characters
        self.kept_characters += lines.kept_characters
        for reason, found in lines.dropped.items():
            self.drop(reason, found.characters, found.lines)

    def extend(self, other: "Tally") -> None:
        """Add the counts of another part of the same source."""
        for name in ("forms", "other_fields", "dropped", "dropped_items"):
            getattr(self, name).update(getattr(other, name))
        self.layouts = {**other.layouts, **self.layouts}
        self.documents += other.documents
        self.characters += other.characters
        self.kept_characters += other.kept_characters

    @classmethod
    def restored(cls, described: dict[str, Any]) -> "Tally":
        """Restore the counts from the output of `described`."""
        dropped = described["dropped"]
        forms = {
            (form["format"], form["encoding"], form.get("field", "")): form["files"] for form in described["read_as"]
        }
        return cls(
            forms=Counter(forms),
            other_fields=Counter(described.get("other_fields", {})),
            layouts=described.get("layouts", {}),
            documents=described["documents"],
            characters=described["characters"],
            kept_characters=described["kept_characters"],
            dropped=Counter({reason: entry["characters"] for reason, entry in dropped.items()}),
            dropped_items=Counter({reason: entry["items"] for reason, entry in dropped.items()}),
        )

    def described(self) -> dict[str, Any]:
        """Return the counts in the form that a record stores."""
        return {
            "read_as": [
                {"format": kind, "encoding": encoding, **({"field": name} if name else {}), "files": count}
                for (kind, encoding, name), count in sorted(self.forms.items())
            ],
            **({"other_fields": dict(sorted(self.other_fields.items()))} if self.other_fields else {}),
            **({"layouts": self.layouts} if self.layouts else {}),
            "documents": self.documents,
            "characters": self.characters,
            "kept_characters": self.kept_characters,
            "dropped": {
                reason: {"items": self.dropped_items[reason], "characters": self.dropped[reason]}
                for reason in sorted(self.dropped_items)
            },
        }
