"""The members of an archive, whose lines follow one another: which member has a line, and where in it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Members:
    """The members of an archive that have been read; empty for a file that is no archive.

    Attributes:
        names: Their paths in the archive.
        first_lines: The number of the first line of each, counted from 0 through all members.
    """

    names: list[str] = field(default_factory=list)
    first_lines: list[int] = field(default_factory=list)

    def add(self, name: str, first_line: int) -> None:
        """Add the next member."""
        self.names.append(name)
        self.first_lines.append(first_line)

    def place(self, archive: str, line: int) -> tuple[str, int]:
        """Return where a line is: the name of the file, such as texts.zip/old/1.txt, and its number there, from 0.

        Args:
            archive: The name of the archive. The name of a file that is not an archive is returned unchanged.
            line: The number of the line, counted from 0 through all members.
        """
        # A member without lines begins where the next one does.
        place = bisect_right(self.first_lines, line) - 1
        if place < 0:
            return archive, line
        return member_name(archive, self.names[place]), line - self.first_lines[place]

    def described(self) -> list[dict[str, Any]]:
        """Return the members as JSON values."""
        return [{"name": name, "first_line": line} for name, line in zip(self.names, self.first_lines, strict=True)]

    @classmethod
    def restored(cls, described: Sequence[dict[str, Any]]) -> "Members":
        """Return the object that `described` gave these values of.

        Raises:
            ValueError: If they are not what `described` returns.
        """
        members = cls()
        for member in described:
            name, line = member["name"], member["first_line"]
            if not (isinstance(name, str) and type(line) is int and line >= max(members.first_lines[-1:], default=0)):
                raise ValueError("a member without a name or a first line in order")
            members.add(name, line)
        return members


def member_name(archive: str, member: str) -> str:
    """Return the name of a member as the source of its lines."""
    return f"{archive}/{member}"
