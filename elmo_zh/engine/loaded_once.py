"""Large values, such as models, that tasks bring to a worker by name and that it loads once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Generic, TypeVarTuple

from elmo_zh.allocator import keep_freed_memory

Values = TypeVarTuple("Values")
# How a value is made: a function and its arguments, as `__reduce__` returns them; None stands for None.
_Recipe = tuple[Any, tuple[Any, ...]] | None

# A worker keeps as many of them: for the two commands that used it last.
_MOST_KEPT = 2
_turn = threading.RLock()


class LoadedOnce(Generic[*Values]):
    """Values that a worker loads when they are first used, and then keeps, however many tasks bring them.

    Tasks carry how each is made: what its `__reduce__` returns, such as a function and the folder and digest of a
    model. The arguments must be hashable.
    """

    def __init__(self, *values: *Values) -> None:
        self._values: tuple[*Values] | None = values
        self._recipes: tuple[_Recipe, ...] | None = None

    def __getstate__(self) -> tuple[_Recipe, ...]:
        if self._values is None:
            assert self._recipes is not None
            return self._recipes
        return tuple(None if value is None else _recipe(value) for value in self._values)

    def __setstate__(self, recipes: tuple[_Recipe, ...]) -> None:
        # Not loaded here: schedulers unpickle tasks too.
        self._values, self._recipes = None, recipes

    @contextmanager
    def used(self) -> Iterator[tuple[*Values]]:
        """Yield the values; threads of one process take turns."""
        with _turn:
            yield _loaded(self._recipes) if self._values is None else self._values


def _recipe(value: object) -> _Recipe:
    reduced: Any = value.__reduce__()
    function, arguments = reduced
    return function, arguments


@lru_cache(maxsize=_MOST_KEPT)
def _loaded(recipes: tuple[_Recipe, ...]) -> Any:
    keep_freed_memory()
    return tuple(None if recipe is None else recipe[0](*recipe[1]) for recipe in recipes)
