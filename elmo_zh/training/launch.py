"""What torchrun, or any launcher that sets the same variables, tells a process about its place among others.

Without torch, so that a command that trains on its own learns at once that it does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from elmo_zh.errors import RunError

_OF_RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_OF_MEETING = ("MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A process's place among those that train one model together.

    Attributes:
        rank: Its number among all, from 0.
        size: How many there are on all machines.
        local_rank: Its number on its machine, from 0.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0


def read_launch(environment: Mapping[str, str]) -> Launch:
    """Return the place that the environment gives this process; the only one of all where it gives none.

    Raises:
        RunError: If variables are missing or are no numbers that go together.
    """
    given = [name for name in _OF_RANKS if environment.get(name)]
    if not given or environment.get("WORLD_SIZE") == "1":
        return Launch()
    missing = [name for name in (*_OF_RANKS, *_OF_MEETING) if not environment.get(name)]
    if missing:
        raise RunError(
            f"The environment has {', '.join(given)} but not {', '.join(missing)}. Start with torchrun, which sets"
            f" them all, or unset {', '.join(given)} to train in one process."
        )
    numbers = {name: environment[name] for name in (*_OF_RANKS, "MASTER_PORT")}
    told = ", ".join(f"{name}={value}" for name, value in numbers.items())
    if not all(value.isdecimal() for value in numbers.values()):
        raise RunError(f"The environment has {told}: these should be whole numbers. Start with torchrun.")
    launch = Launch(
        **{name: int(numbers[key]) for name, key in zip(("rank", "size", "local_rank"), _OF_RANKS, strict=True)}
    )
    if not launch.local_rank <= launch.rank < launch.size:
        raise RunError(f"The environment has {told}: RANK should be below WORLD_SIZE. Start with torchrun.")
    return launch


def refuse_launch(environment: Mapping[str, str]) -> None:
    """Raise RunError where several processes were started for what one does."""
    if (size := read_launch(environment).size) > 1:
        raise RunError(
            f"The pipeline was started in {size} processes, and only train can use them. Do the stages one by one:"
            " segment, vocab, word2vec and encode without torchrun, train with it, export without."
        )
