"""Read the environment variables in which torchrun, or another launcher, gives a process its rank.

This module does not import torch, so a command quickly finds out whether it trains in one process.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from elmo_zh.errors import RunError

_RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_RENDEZVOUS_VARIABLES = ("MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The rank of one of the processes that train a model together."""

    rank: int = 0  # Number of the process among all, from 0
    size: int = 1  # Number of processes on all machines
    local_rank: int = 0  # Number of the process on its machine, from 0


def read_launch(environment: Mapping[str, str]) -> Launch:
    """Return the rank that the environment gives this process; if it gives none, this is the only process."""
    given = [name for name in _RANK_VARIABLES if environment.get(name)]
    if not given or environment.get("WORLD_SIZE") == "1":
        return Launch()
    missing = [name for name in (*_RANK_VARIABLES, *_RENDEZVOUS_VARIABLES) if not environment.get(name)]
    if missing:
        raise RunError(
            f"The environment sets {', '.join(given)} but not {', '.join(missing)}. Start with torchrun, which sets"
            f" them all, or unset {', '.join(given)} to train in one process."
        )
    values = {name: environment[name] for name in (*_RANK_VARIABLES, "MASTER_PORT")}
    listed = ", ".join(f"{name}={value}" for name, value in values.items())
    if not all(value.isdecimal() for value in values.values()):
        raise RunError(f"The environment variables {listed} should be whole numbers. Start with torchrun.")
    launch = Launch(
        **{name: int(values[key]) for name, key in zip(("rank", "size", "local_rank"), _RANK_VARIABLES, strict=True)}
    )
    if not launch.local_rank <= launch.rank < launch.size:
        raise RunError(
            f"The environment variables {listed} break LOCAL_RANK <= RANK < WORLD_SIZE. Start with torchrun."
        )
    return launch


def refuse_launch(environment: Mapping[str, str]) -> None:
    """Raise RunError if several processes were started for the pipeline, which runs in only one."""
    if (size := read_launch(environment).size) > 1:
        raise RunError(
            f"The pipeline was started in {size} processes, but only the train command supports several processes. Run"
            " the stages one by one: segment, vocab, word2vec and encode without torchrun, train with torchrun, and"
            " export without torchrun."
        )
