"""Count the text read from each source, kept or dropped, with examples, and the files that were skipped.

The counts of consecutive parts can be added up.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unicodedata import category

import msgspec

from elmo_zh.language import N_, _
from elmo_zh.run.reporter import first_ten, joined

MOST_EXAMPLES = 5
READING = N_("Reading {name}: {kinds}")
SKIPPED = N_("Skipped ({reason}): {names}")


class Found(msgspec.Struct):
    """Items of one kind, such as dropped lines: how many, their characters, and the first examples."""

    count: int = 0
    characters: int = 0
    examples: list[str] = []

    def add(self, other: "Found") -> None:
        """Add what was found later."""
        self.count += other.count
        self.characters += other.characters
        self.examples += other.examples[: MOST_EXAMPLES - len(self.examples)]


def _add_to(kinds: dict[str, Found], kind: str, characters: int, example: str, count: int = 1) -> None:
    found = kinds.setdefault(kind, Found())
    found.count += count
    found.characters += characters
    if example and len(found.examples) < MOST_EXAMPLES:
        found.examples.append(shortened(example))


class Form(msgspec.Struct):
    """A way in which files were read: their format, encoding, and field or column with the text; and their number."""

    format: str
    encoding: str
    field: str = ""
    files: int = 1

    def key(self) -> tuple[str, str, str]:
        """Return everything but the number of files."""
        return self.format, self.encoding, self.field

    def described(self, *, is_excel: bool = False) -> str:
        """Return the form for messages, such as csv, UTF-8, --field 2 (review)."""
        named = ["Excel"] if is_excel else [self.format, self.encoding.upper()]
        if self.field:
            named.append(f"--field {self.field.removeprefix('column ').removesuffix(', no header')}")
        return joined(named)


class Tally(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Counts for one source. Characters are counted before cleaning, as kept or dropped."""

    read_as: list[Form] = []
    # Fields or columns with Chinese text other than the chosen one, with the number of files.
    other_fields: dict[str, int] = {}
    # Layouts of plain text that make wrong words (`find_layout`), each with an example.
    layouts: dict[str, str] = {}
    lines: int = 0
    kept_characters: int = 0
    dropped: dict[str, Found] = {}
    noticed: dict[str, Found] = {}  # kept lines that were cleaned or may be worth checking
    passed_over: dict[str, Found] = {}  # files, archive members and wiki pages left out; characters not counted
    # Of the current file, set before its first line; and of the current line.
    read_field: str = ""
    line_notices: list[str] = []

    @property
    def characters(self) -> int:
        """Number of characters that were read."""
        return self.kept_characters + sum(found.characters for found in self.dropped.values())

    def num_dropped(self, reason: str) -> int:
        """Return how many lines, records or elements were left out for a reason."""
        return self.dropped[reason].count if reason in self.dropped else 0

    def add_fields(self, names: Iterable[str], count: int = 1) -> None:
        """Count files with Chinese text in other fields."""
        for name in names:
            self.other_fields[name] = self.other_fields.get(name, 0) + count

    def add_form(self, form: Form) -> None:
        """Count files that were read."""
        known = next((known for known in self.read_as if known.key() == form.key()), None)
        if known is None:
            self.read_as.append(msgspec.structs.replace(form))
        else:
            known.files += form.files

    def pass_over(self, reason: str, name: str) -> None:
        """Count a file or a page that does not belong to the corpus."""
        found = self.passed_over.setdefault(reason, Found())
        found.count += 1
        if len(found.examples) < MOST_EXAMPLES:
            found.examples.append(name)

    def drop(self, reason: str, characters: int, items: int = 1) -> None:
        """Count text that was read but left out."""
        _add_to(self.dropped, reason, characters, "", items)

    def drop_line(self, reason: str, line: str) -> None:
        """Count the current line as dropped, without its notices."""
        self.lines += 1
        _add_to(self.dropped, reason, len(line), line)
        self.line_notices.clear()

    def notice(self, reason: str) -> None:
        """Note that the current line was cleaned or may be worth checking; `keep` counts the notice."""
        self.line_notices.append(reason)

    def keep(self, line: str) -> None:
        """Count the current line as kept, with its notices."""
        self.lines += 1
        self.kept_characters += len(line)
        for reason in self.line_notices:
            _add_to(self.noticed, reason, len(line), line)
        self.line_notices.clear()

    def add(self, other: "Tally") -> None:
        """Add the counts of a later part."""
        for form in other.read_as:
            self.add_form(form)
        for name, count in other.other_fields.items():
            self.add_fields([name], count)
        self.layouts = {**other.layouts, **self.layouts}
        for name in ("lines", "kept_characters"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("dropped", "noticed", "passed_over"):
            counts = getattr(self, name)
            for kind, found in getattr(other, name).items():
                counts.setdefault(kind, Found()).add(found)

    def described(self) -> dict[str, Any]:
        """Return what the stage record says of a source: how it was read, and how much of it was kept and dropped."""
        optional = {"other_fields": self.other_fields, "layouts": self.layouts}
        return {
            "read_as": msgspec.to_builtins(self.read_as),
            **{name: value for name, value in optional.items() if value},
            "characters": self.characters,
            "kept_characters": self.kept_characters,
            "dropped": {
                reason: {"count": found.count, "characters": found.characters}
                for reason, found in sorted(self.dropped.items())
            },
        }


def reasons_line(numbers: Mapping[str, int]) -> str:
    """Return reasons with their numbers as one phrase, adding up those with the same prefix, as in "html: comment"."""
    totals = Counter[str]()
    for reason, number in numbers.items():
        totals[reason.partition(": ")[0]] += number
    return joined([_("{name}: {value}").format(name=_(reason), value=f"{total:,}") for reason, total in totals.items()])


def skipped_lines(passed_over: Mapping[str, Found]) -> Iterator[str]:
    """Yield one message for each reason why files were skipped, with the first names."""
    for reason, found in sorted(passed_over.items()):
        shown = _(reason)
        if found.count > 3:
            shown = _("{name}: {value}").format(name=shown, value=f"{found.count:,}")
        yield _(SKIPPED).format(reason=shown, names=first_ten(found.examples[:3], found.count))


LONGEST_EXAMPLE = 80
_PLAIN = re.compile(r"[ !-\[\]-~\u3001-\u3029\u4e00-\u9fa5\uff01-\uff5e]*")


def visible(text: str) -> str:
    r"""Return a text with invisible characters, combining characters and backslashes escaped as in Python strings.

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
