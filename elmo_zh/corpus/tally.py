"""Count the text read from each source, kept or dropped, and the files that were skipped."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from elmo_zh.corpus.cleaning.line_counts import LineCounts
from elmo_zh.language import _

# How many names a record lists for one reason at most.
_MOST_NAMES = 20


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
    # Layouts of plain text that make wrong words (corpus/layouts.py), each with an example.
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
