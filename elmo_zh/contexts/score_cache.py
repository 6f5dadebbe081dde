"""Scores of lines that were met before, in bounded memory."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b

from elmo_zh.contexts.line_score import LineScore

# Each line weighs as one, and each token whose cost is kept as one more.
MAX_WEIGHT = 200_000

# A score, and the difference from that under the other model.
Known = tuple[LineScore, float | None]


class ScoreCache:
    """The scores of the lines that were used last, by content.

    Its content depends on the order of the lines alone, so a run that resumes can rebuild it from finished parts.
    """

    def __init__(self, max_weight: int = MAX_WEIGHT) -> None:
        self._scores: OrderedDict[bytes, Known] = OrderedDict()
        self._max_weight, self._weight = max_weight, 0

    def look_up(self, lines: Sequence[str], compute: Callable[[list[str]], list[Known]]) -> list[Known]:
        """Return the score of each line.

        Args:
            lines: The lines.
            compute: Returns the scores of those lines that are not known, each given once.
        """
        keys = [blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).digest() for line in lines]
        missing = {key: line for key, line in zip(keys, lines, strict=True) if key not in self._scores}
        new = dict(zip(missing, compute(list(missing.values())) if missing else [], strict=True))
        found = [new[key] if key in new else self._scores[key] for key in keys]
        for key, known in zip(keys, found, strict=True):
            self._keep(key, known)
        return found

    def _keep(self, key: bytes, known: Known) -> None:
        if key not in self._scores:
            self._weight += _weight(known)
        self._scores[key] = known
        self._scores.move_to_end(key)
        while self._weight > self._max_weight and len(self._scores) > 1:
            _, dropped = self._scores.popitem(last=False)
            self._weight -= _weight(dropped)


def _weight(known: Known) -> int:
    return 1 + len(known[0].tokens or ())
