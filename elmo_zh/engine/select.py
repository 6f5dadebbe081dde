"""Selection of the engine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from elmo_zh.engine.engine import Engine, ThisProcess
from elmo_zh.engine.processes import worker_processes

# Less text than this is finished before worker processes have started.
SMALL_BYTES = 500_000


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """The engine that the user wants for the tasks of the corpus stages; it does not change the results.

    Attributes:
        num_workers: Number of processes on this machine; 0 means one for each processor core.
        kind: "local", or "dask" for the workers of a cluster.
        scheduler: Address of Dask's scheduler.
    """

    num_workers: int = 0
    kind: str = "local"
    scheduler: str = ""

    @contextmanager
    def started(self, num_bytes: int) -> Iterator[Engine]:
        """Yield the engine for work on `num_bytes` of text.

        Raises:
            ClusterError: If the cluster cannot be used.
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
