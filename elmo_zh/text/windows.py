"""Group a stream into windows that are computed together, so that memory is bounded and little work can be lost."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

WINDOW_ITEMS, WINDOW_TOKENS = 2000, 20_000


def iter_windows(
    items: Iterable[Item], size: Callable[[Item], int], *, most_items: int = 0, most_size: int = 0
) -> Iterator[list[Item]]:
    """Yield consecutive items in lists; the item that reaches a limit (0 means the default) ends its list."""
    window: list[Item] = []
    total = 0
    for item in items:
        window.append(item)
        total += size(item)
        if len(window) >= (most_items or WINDOW_ITEMS) or total >= (most_size or WINDOW_TOKENS):
            yield window
            window, total = [], 0
    if window:
        yield window
