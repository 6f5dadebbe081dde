"""Large values, such as models, that tasks bring to a worker by name and that it loads once."""

import pickle
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Generic, TypeVar

from elmo_zh.allocator import keep_freed_memory

Value = TypeVar("Value")

# A worker keeps as many of them: those of the two commands that used it last.
_MOST_KEPT = 2
_turn = threading.RLock()


class LoadedOnce(Generic[Value]):
    """A value that a worker loads when it is first used, and then keeps, however many tasks bring it.

    It is pickled together with this, so its pickle should be small: a model pickles as its folder and its digest.
    """

    def __init__(self, value: Value) -> None:
        self._value: Value | None = value
        self._pickled: bytes | None = None

    def __getstate__(self) -> bytes:
        return pickle.dumps(self._value) if self._pickled is None else self._pickled

    def __setstate__(self, pickled: bytes) -> None:
        # Not loaded here: schedulers unpickle tasks too.
        self._value, self._pickled = None, pickled

    @contextmanager
    def used(self) -> Iterator[Value]:
        """Yield the value; threads of one process take turns."""
        with _turn:
            yield self._value if self._pickled is None else _loaded(self._pickled)  # type: ignore[misc]


@lru_cache(maxsize=_MOST_KEPT)
def _loaded(pickled: bytes) -> Any:
    keep_freed_memory()
    return pickle.loads(pickled)  # noqa: S301 - it comes from the engine, whose tasks are pickled anyway
