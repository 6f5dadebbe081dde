"""Choose the engine that runs the tasks of the corpus stages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from elmo_zh.engine.engine import Engine, ThisProcess, worker_processes

# Less text than this is finished before worker processes have started.
SMALL_BYTES = 500_000


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """The user's choice of engine for the tasks of the corpus stages; it does not affect the results."""

    num_workers: int = 0  # Number of processes on this machine; 0 means one for each processor core
    kind: str = "local"  # "local", or "dask" for the workers of a cluster
    scheduler: str = ""

    def num_processes(self, num_bytes: float) -> int:
        """Return the number of processes to use for this much text; 1 means that the main process works alone."""
        return (self.num_workers or os.cpu_count() or 1) if num_bytes >= SMALL_BYTES else 1

    @contextmanager
    def started(self, num_bytes: int) -> Iterator[Engine]:
        """Start the chosen engine for work on `num_bytes` of text; it stops when the block ends."""
        if self.kind == "dask":
            from elmo_zh.engine.dask_workers import dask_workers

            with dask_workers(self.scheduler) as engine:
                yield engine
            return
        num_processes = self.num_processes(num_bytes)
        if num_processes == 1:
            yield ThisProcess()
        else:
            with worker_processes(num_processes) as engine:
                yield engine
