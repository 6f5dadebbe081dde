"""Blocks of consecutive lines, chosen at equal distances over a corpus while it is read."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random

BLOCK_BYTES = 2**14
# The picker keeps up to so many times the blocks that are wanted until the length of the corpus is known.
_KEPT_FACTOR = 4


@dataclass(eq=False)
class Block:
    """Consecutive lines, some 16 kB in UTF-8, or one longer line.

    Attributes:
        first_line: Number of the first line among all lines read.
        lines: The lines.
        num_bytes: Bytes in UTF-8.
        weight: For how many times its text it stands, where the rest of its file was not read.
        sentences: The tokens of each sentence, once segmented.
        counts: Numbers of sentences and tokens; characters of lines that are no copies; kept_characters of those that
            gave sentences.
    """

    first_line: int
    lines: list[str] = field(default_factory=list)
    num_bytes: int = 0
    weight: float = 1.0
    sentences: list[list[str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def words(self) -> Counter[str]:
        """Return how often each word occurs."""
        return Counter(token for sentence in self.sentences for token in sentence)


class BlockPicker:
    """Builds blocks of lines and keeps those that hold a point of a grid over the text (systematic sampling).

    The first distance between points is so small that every block is kept. When too many are, every second point goes.
    """

    def __init__(self, most_bytes: int, random: Random) -> None:
        self._random = random
        self._num_wanted = max(1, most_bytes // BLOCK_BYTES)
        self._most_bytes = most_bytes
        self._position, self._next_point, self._distance = 0.0, 0.0, float(BLOCK_BYTES)
        self._picks: list[Block] = []
        self._open: Block | None = None
        self._weight = 1.0

    def add(self, line: str, num_bytes: int, number: int, weight: float) -> bool:
        """Add a line that stands for `weight` times its length; return whether that ended its block."""
        if self._open is None:
            self._open, self._weight = Block(number), weight
        self._open.lines.append(line)
        self._open.num_bytes += num_bytes
        if self._open.num_bytes < BLOCK_BYTES:
            return False
        self.finish_block()
        return True

    def finish_block(self) -> None:
        """End the block being built, if there is one."""
        block, self._open = self._open, None
        if block is None:
            return
        self._position += self._weight * block.num_bytes
        while self._next_point < self._position:
            self._picks.append(block)
            self._next_point += self._distance
            if len(self._picks) > _KEPT_FACTOR * self._num_wanted:
                self._drop_every_second()

    def weigh_blocks(self, first_line: int, weight: float) -> None:
        """Let the blocks from a line on stand for `weight` times their text, as they are the start of a longer file."""
        self.finish_block()
        for block in self._picks:
            if block.first_line >= first_line:
                block.weight = weight

    def _drop_every_second(self) -> None:
        offset = self._random.randrange(2)
        if len(self._picks) % 2 != offset:
            self._next_point += self._distance
        self._picks = self._picks[offset::2]
        self._distance *= 2

    def chosen(self) -> list[Block]:
        """Return all blocks if they hold no more bytes than wanted, else about as many as make up these bytes."""
        last = self._open
        self.finish_block()
        if self._position <= self._most_bytes:
            blocks = self._picks if last is None else [*self._picks, last]
            return list(dict.fromkeys(blocks))
        start, step = self._random.random(), max(1.0, len(self._picks) / self._num_wanted)
        places = range(min(len(self._picks), self._num_wanted))
        return list(dict.fromkeys(self._picks[int((i + start) * step)] for i in places))
