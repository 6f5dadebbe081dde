"""Choose the engine that computes the parts of jobs: this machine, or the workers of a Dask cluster."""

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from elmo_zh.engine.engine import Engine, ThisProcess, worker_processes
from elmo_zh.errors import ClusterError
from elmo_zh.invocation import install_line
from elmo_zh.language import _

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Result = TypeVar("Result")

# Less text than this is finished before worker processes have started.
SMALL_BYTES = 500_000
SECONDS_TO_CONNECT, _SECONDS_FOR_A_WORKER = 15, 30
# At least this many tasks are submitted to a cluster at a time, so that workers that join later get some too.
_LEAST_AHEAD = 64


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """The user's choice of engine; it does not affect the results."""

    num_workers: int = 0  # Number of processes on this machine; 0 means one for each processor core
    kind: str = "local"  # "local", or "dask" for the workers of a cluster
    scheduler: str = ""

    def num_processes(self, num_bytes: float) -> int:
        """Return the number of processes to use for this much text; 1 means that the main process works alone."""
        return (self.num_workers or os.cpu_count() or 1) if num_bytes >= SMALL_BYTES else 1

    def started(self, num_bytes: int) -> AbstractContextManager[Engine]:
        """Start the chosen engine for work on `num_bytes` of text; it stops when the block ends."""
        if self.kind == "dask":
            return dask_workers(self.scheduler)
        num_processes = self.num_processes(num_bytes)
        return nullcontext(ThisProcess()) if num_processes == 1 else worker_processes(num_processes)


@contextmanager
def dask_workers(scheduler: str) -> Iterator[Engine]:
    """Yield an engine for the workers of a Dask scheduler, on machines that see the same files at the same paths."""
    if not scheduler:  # Dask would start a cluster of its own
        raise ClusterError(_("--engine dask needs the scheduler's address: --scheduler tcp://HOST:8786"))
    if importlib.util.find_spec("distributed") is None:
        message = _("--engine dask needs Dask. Install it here and on the workers with: {line}")
        raise ClusterError(message.format(line=install_line("dask")))
    try:
        client = _connect(scheduler)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise ClusterError(
            _(
                "No Dask scheduler with workers answers at {scheduler} ({reason}). Start them with `dask scheduler` and"
                " `dask worker ADDRESS --nthreads 1`, and pass the scheduler's address: --scheduler ADDRESS"
            ).format(scheduler=scheduler, reason=reason)
        ) from None
    with client:
        num_ahead = max(_LEAST_AHEAD, 4 * sum(client.nthreads().values()))
        # pure=False: run a task even if an equal one ran before, since the files may have been removed meanwhile.
        yield _DaskEngine(lambda: client.get_executor(pure=False), num_ahead=num_ahead)


def _connect(scheduler: str) -> "Client":
    from distributed import Client

    client = Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    try:
        client.wait_for_workers(1, timeout=_SECONDS_FOR_A_WORKER)
    except TimeoutError:
        client.close()
        raise
    return client


class _DaskEngine(Engine):
    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        from distributed.scheduler import KilledWorker

        try:
            yield from super().run(work, tasks)
        except KilledWorker as error:
            raise ClusterError(
                _(
                    "Several Dask workers died while running the same task, the last one at {address}, perhaps because"
                    " memory ran out. Look at their logs, give them more memory, and run the command again."
                ).format(address=error.last_worker.address)
            ) from None
        except FileNotFoundError as error:
            raise ClusterError(
                _(
                    "A Dask worker cannot find {path}. Workers must have access to the same disk, at the same path as"
                    " on this machine."
                ).format(path=error.filename)
            ) from None
        except CancelledError:
            raise ClusterError(
                _("The connection to the Dask scheduler was lost. Run the command again: finished tasks are skipped.")
            ) from None
