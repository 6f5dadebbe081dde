"""A cache of the scores of lines, in bounded memory."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Generic, TypeVar

from elmo_zh.contexts.line_score import LineScore

# Each line weighs as one, and if its tokens are kept, each character as one more.
MAX_WEIGHT = 200_000

# A score, and the difference from that under the other model.
Known = tuple[LineScore, float | None]
Value = TypeVar("Value")


class ScoreCache(Generic[Value]):
    """A cache of the scores of the lines that were used last, by content.

    Which lines it knows depends on the lines alone, in their order. So it is the same in a run that resumes, and can be
    told before their scores are computed.
    """

    def __init__(self, max_weight: int = MAX_WEIGHT, *, by_token: bool = False) -> None:
        self._values: OrderedDict[bytes, tuple[Value, int]] = OrderedDict()
        self._max_weight, self._weight, self._by_token = max_weight, 0, by_token

    def look_up(self, lines: Sequence[str], compute: Callable[[list[str]], Sequence[Value]]) -> list[Value]:
        """Return the value of each line.

        Args:
            lines: The lines.
            compute: Returns the values of those lines that are not known, each given once.
        """
        keys = [blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).digest() for line in lines]
        missing = {key: line for key, line in zip(keys, lines, strict=True) if key not in self._values}
        new = dict(zip(missing, compute(list(missing.values())) if missing else [], strict=True))
        found = [new[key] if key in new else self._values[key][0] for key in keys]
        for key, line, value in zip(keys, lines, found, strict=True):
            self._keep(key, value, 1 + len(line) * self._by_token)
        return found

    def _keep(self, key: bytes, value: Value, weight: int) -> None:
        if key not in self._values:
            self._weight += weight
        self._values[key] = value, weight
        self._values.move_to_end(key)
        while self._weight > self._max_weight and len(self._values) > 1:
            _, (_, dropped) = self._values.popitem(last=False)
            self._weight -= dropped
