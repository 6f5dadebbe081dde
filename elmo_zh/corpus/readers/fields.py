"""Where the text of a record is: keys from the outside in, joined by dots, given or known by the last one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# In order of preference, in small letters.
KNOWN_NAMES = (
    "text", "content", "contents", "paragraphs", "paragraph", "body", "article", "sentence", "review",
    "正文", "内容", "內容", "文本", "句子", "评论", "評論",
)  # fmt: skip


def parse_fields(field: str) -> tuple[str, ...]:
    """Return the names in a list like "title, body.text"."""
    return tuple(name.strip() for name in field.split(",") if name.strip())


def known_path(paths: Iterable[str]) -> str | None:
    """Return the path whose last key is best known as that of text, the shortest of several; None if there is none."""
    shortest_first = sorted(set(paths), key=lambda path: (path.count("."), path))
    for name in KNOWN_NAMES:
        for path in shortest_first:
            if path.rpartition(".")[2].lower() == name:
                return path
    return None


def listed(paths: Iterable[str], most: int = 8) -> str:
    """Return paths as a message shows them; that of a bare text is nothing."""
    names = sorted(filter(None, set(paths)))
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else ""


def strings_with_paths(record: Any) -> Iterator[tuple[str, str]]:
    """Yield every text in a record after the keys that lead to it; lists do not count as a step. In order."""
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
    """Return the texts of a record at any of the paths, path by path; the path of a bare text is empty."""
    if len(paths) == 1 and isinstance(record, dict) and "." not in paths[0]:
        # Nearly all records are such, and a text is mostly no list.
        record = {paths[0]: record.get(paths[0])}
        if isinstance(value := record[paths[0]], str):
            return [value]
    found = [(path, text) for path, text in strings_with_paths(record) if path in paths]
    return [text for wanted in paths for path, text in found if path == wanted]
