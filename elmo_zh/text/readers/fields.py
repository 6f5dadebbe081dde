"""Where the text of a record is: a path of keys, given or known by its name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Path = tuple[str, ...]

# In order of preference, in small letters.
KNOWN_NAMES = (
    "text", "content", "contents", "paragraphs", "paragraph", "body", "article", "sentence", "review",
    "正文", "内容", "內容", "文本", "句子", "评论", "評論",
)  # fmt: skip


def parse_fields(field: str) -> tuple[str, ...]:
    """Return the names in a list like "title, body.text"."""
    return tuple(name.strip() for name in field.split(",") if name.strip())


def split_path(name: str) -> Path:
    """Return the keys of a path like data.paragraphs.text."""
    return tuple(name.split("."))


def known_path(paths: Iterable[Path]) -> Path | None:
    """Return the path whose last key is best known as that of text, the shortest of several; None if there is none."""
    listed = sorted(set(paths), key=lambda path: (len(path), path))
    for name in KNOWN_NAMES:
        for path in listed:
            if path and path[-1].lower() == name:
                return path
    return None


def listed(paths: Iterable[Path], most: int = 8) -> str:
    """Return paths as a message shows them; that of a bare text is nothing."""
    names = [".".join(path) for path in sorted(set(paths)) if path]
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else ""


def strings_with_paths(record: Any) -> Iterator[tuple[Path, str]]:
    """Yield every text in a record and the keys that lead to it; lists do not count as a step. In order."""
    waiting: list[tuple[Path, Any]] = [((), record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, list):
            waiting.extend((path, item) for item in reversed(value))
        elif isinstance(value, dict):
            waiting.extend(((*path, key), item) for key, item in reversed(value.items()))


def texts_at(record: Any, paths: Sequence[Path]) -> list[str]:
    """Return the texts of a record at any of the paths, path by path."""
    found = [(path, text) for path, text in strings_with_paths(record) if path in paths]
    return [text for wanted in paths for path, text in found if path == wanted]
