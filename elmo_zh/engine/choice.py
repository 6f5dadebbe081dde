"""Which engine to use."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.engine.processes import worker_processes

# Smaller work is done before worker processes have started.
SMALL_BYTES = 500_000


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """What the user wants the tasks of the corpus stages to run on.

    None of it changes a result.

    Attributes:
        num_workers: Processes on this machine; 0 means one for each processor core.
        kind: local, or dask for the workers of a cluster.
        scheduler: The address of Dask's scheduler.
    """

    num_workers: int = 0
    kind: str = "local"
    scheduler: str = ""

    @contextmanager
    def started(self, num_bytes: int) -> Iterator[Engine]:
        """Yield the engine for work on so many bytes.

        Raises:
            ClusterError: If there is no such cluster.
        """
        if self.kind == "dask":
            from elmo_zh.engine.dask_workers import dask_workers

            with dask_workers(self.scheduler) as engine:
                yield engine
            return
        num_workers = self.num_workers or os.cpu_count() or 1
        if num_workers == 1 or num_bytes < SMALL_BYTES:
            yield ThisProcess()
        else:
            with worker_processes(num_workers) as engine:
                yield engine
