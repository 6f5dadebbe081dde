"""Train the biLM, and measure how well it predicts held-out text.

This module reads the rank of the process without importing torch, so that a command quickly knows whether other
processes train with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from elmo_zh.errors import RunError

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The place of a process among all that train a model together."""

    rank: int = 0  # Number of the process among all, from 0
    size: int = 1  # Number of processes on all machines
    local_rank: int = 0  # Number of the process on its machine, from 0


def read_launch(environment: Mapping[str, str]) -> Launch:
    """Return this process's place, which torchrun or another launcher sets; without one, it is the only process.

    With several processes, raise RunError if RANK, WORLD_SIZE, LOCAL_RANK or MASTER_PORT is missing or not a number.
    """
    if environment.get("WORLD_SIZE", "1") == "1":
        return Launch()
    wrong = [name for name in _VARIABLES if name != "MASTER_ADDR" and not environment.get(name, "").isdecimal()]
    if wrong:
        needed = ", ".join(f"{name}=N" for name in wrong)
        raise RunError.needs(f"WORLD_SIZE={environment['WORLD_SIZE']}", f"{needed} (torchrun)")
    rank, size, local_rank = (int(environment[name]) for name in _VARIABLES[:3])
    return Launch(rank=rank, size=size, local_rank=local_rank)
