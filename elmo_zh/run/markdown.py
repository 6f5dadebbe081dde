"""Write Markdown: tables, and text that is shown exactly."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str | int]]) -> str:
    """Return a table; whole numbers get separators of thousands."""
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: str | int) -> str:
    # A bar would end the cell, even inside a code span.
    return f"{value:,}" if isinstance(value, int) else value.replace("|", "\\|")


def code_span(text: str) -> str:
    """Return Markdown that shows a text of visible characters exactly, whatever Markdown it contains.

    The fence is longer than any run of backticks in the text. A space is added on both sides if the text begins or
    ends with a backtick, or if Markdown would strip a space there.
    """
    if not text:
        return "(nothing)"
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    needs_room = text[0] == "`" or text[-1] == "`" or (text[0] == " " == text[-1] and text.strip())
    return f"{fence} {text} {fence}" if needs_room else f"{fence}{text}{fence}"


def spelled(value: object) -> str:
    """Return the value of a setting as TOML spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
