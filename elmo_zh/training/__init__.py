"""Train the biLM, and measure how well it predicts held-out text.

This module reads the rank of the process. It does not import torch, so that a command can quickly tell whether it is
the only training process.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from elmo_zh.errors import RunError

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The rank of one of the processes that train a model together."""

    rank: int = 0  # Number of the process among all, from 0
    size: int = 1  # Number of processes on all machines
    local_rank: int = 0  # Number of the process on its machine, from 0


def read_launch(environment: Mapping[str, str]) -> Launch:
    """Return the rank that torchrun, or another launcher, gives this process; if none, this is the only process."""
    if environment.get("WORLD_SIZE", "1") == "1":
        return Launch()
    wrong = [name for name in _VARIABLES if name != "MASTER_ADDR" and not environment.get(name, "").isdecimal()]
    if wrong:
        needed = ", ".join(f"{name}=N" for name in wrong)
        raise RunError.needs(f"WORLD_SIZE={environment['WORLD_SIZE']}", f"{needed} (torchrun)")
    rank, size, local_rank = (int(environment[name]) for name in _VARIABLES[:3])
    return Launch(rank=rank, size=size, local_rank=local_rank)
