"""Fields of a record that hold text: paths of keys joined by dots, given by the user or recognised by the last key."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# In order of preference, in lower case.
KNOWN_NAMES = (
    "text", "content", "contents", "paragraphs", "paragraph", "body", "article", "sentence", "review",
    "正文", "内容", "內容", "文本", "句子", "评论", "評論",
    "评论内容", "評論內容", "评价内容", "評價內容",
)  # fmt: skip


# Formats without fields; others may come from plug-ins.
WITHOUT_FIELDS = ("text", "html", "markdown", "wikidump")

# Reasons in a tally.
SHORT_ROWS = "rows without the column"
WITHOUT_FIELD = "records without the field"
BLANK_LINES = "blank lines between records"


def parse_fields(field: str) -> tuple[str, ...]:
    """Return the names in a list such as "title, body.text"."""
    return tuple(name.strip() for name in field.split(",") if name.strip())


def known_path(paths: Iterable[str]) -> str | None:
    """Return the path whose last key is the first known name, the shortest of several; None if no key is known."""
    shortest_first = sorted(set(paths), key=lambda path: (path.count("."), path))
    for name in KNOWN_NAMES:
        for path in shortest_first:
            if path.rpartition(".")[2].lower() == name:
                return path
    return None


def listed(paths: Iterable[str], most: int = 8) -> str:
    """Return paths as messages show them; the path of a bare text is left out."""
    names = sorted(filter(None, set(paths)))
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else ""


def strings_with_paths(record: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and value of every text in a record, in order; lists add nothing to the path."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield ".".join(path), value
        elif isinstance(value, list):
            waiting.extend((path, item) for item in reversed(value))
        elif isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in reversed(value.items()))


def texts_at(record: Any, paths: Sequence[str]) -> list[str]:
    """Return the texts of a record at the given paths, path by path; the path of a bare text is empty."""
    if len(paths) == 1 and isinstance(record, dict) and "." not in paths[0]:
        # The common case, made fast: one key whose value is a text.
        record = {paths[0]: record.get(paths[0])}
        if isinstance(value := record[paths[0]], str):
            return [value]
    found = [(path, text) for path, text in strings_with_paths(record) if path in paths]
    return [text for wanted in paths for path, text in found if path == wanted]


def joined_line(texts: Sequence[str]) -> str:
    """Return the texts of a record as one line: each line end becomes a space, so that places in a text stay."""
    return " ".join(texts).replace("\n", " ").replace("\r", " ")
