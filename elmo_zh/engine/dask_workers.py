"""An engine that uses the workers of a Dask cluster, on machines that see the same files at the same paths."""

import importlib.util
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from elmo_zh.engine.engine import Engine
from elmo_zh.errors import ClusterError
from elmo_zh.invocation import install_line
from elmo_zh.version import __version__

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Result = TypeVar("Result")

SECONDS_TO_CONNECT = 15
SECONDS_FOR_A_WORKER = 30
# Network file systems remember for up to a minute that a name did not exist.
SECONDS_UNTIL_SEEN = 70.0
# At least this many tasks are submitted at a time, so that workers that join later get some too.
_LEAST_AHEAD = 64


@contextmanager
def dask_workers(scheduler: str) -> Iterator[Engine]:
    """Yield an engine that runs tasks on the workers of a Dask scheduler; raise ClusterError if it cannot be used."""
    if not scheduler:  # Dask would start a cluster of its own
        raise ClusterError("--engine dask needs the scheduler's address: --scheduler tcp://HOST:8786")
    if importlib.util.find_spec("distributed") is None:
        raise ClusterError(f"--engine dask needs Dask. Install it here and on the workers with: {install_line('dask')}")
    client = _connect(scheduler)
    try:
        _require_workers(client, scheduler)
        yield _DaskEngine(client, scheduler)
    finally:
        client.close()


def _connect(scheduler: str) -> "Client":
    from distributed import Client
    from distributed.comm import get_address_host_port

    try:
        # Try the port first: a client that fails to connect would leave threads behind.
        socket.create_connection(get_address_host_port(scheduler), SECONDS_TO_CONNECT).close()
        return Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise ClusterError(
            f"No Dask scheduler answers at {scheduler} ({reason})."
            " Start one with `dask scheduler`, and pass the address that it prints: --scheduler ADDRESS"
        ) from None


def _require_workers(client: "Client", scheduler: str) -> None:
    """Raise ClusterError unless there are workers, and they and the scheduler run this version of elmo-zh."""
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
    except TimeoutError:
        raise ClusterError(
            f"The Dask scheduler at {scheduler} has no workers. Start some with: dask worker {scheduler} --nthreads 1"
        ) from None

    def find_version() -> str | None:
        """Return elmo-zh's version on the machine that runs this; sent as code, since it may not be installed there."""
        try:
            from elmo_zh.version import __version__ as installed
        except ImportError:
            return None
        return installed

    # The scheduler unpickles tasks too, before it passes them to workers.
    _require_version(f"scheduler at {scheduler}", client.run_on_scheduler(find_version), __version__)
    for worker, version in client.run(find_version).items():
        _require_version(f"worker {worker}", version, __version__)


def _require_version(who: str, version: str | None, expected: str) -> None:
    if version != expected:
        raise ClusterError(
            f"The Dask {who} has {f'elmo-zh {version}' if version else 'no elmo-zh'}; expected elmo-zh {expected}."
            " Install the expected version on that machine, and restart Dask."
        )


class _DaskEngine(Engine):
    def __init__(self, client: "Client", scheduler: str) -> None:
        num_ahead = max(_LEAST_AHEAD, 4 * sum(client.nthreads().values()))
        # pure=False: run a task even if an equal one ran before, since the files may have been removed meanwhile.
        super().__init__(
            lambda: client.get_executor(pure=False), num_ahead=num_ahead, seconds_until_seen=SECONDS_UNTIL_SEEN
        )
        self._scheduler = scheduler

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        from distributed.scheduler import KilledWorker

        try:
            yield from super().run(partial(_checked, work, __version__), tasks)
        except KilledWorker as error:
            raise ClusterError(
                f"Several Dask workers died while running the same task, the last one at {error.last_worker.address},"
                " perhaps because memory ran out. Look at their logs, give them more memory, and run the command again."
            ) from None
        except CancelledError:
            raise ClusterError(
                f"The connection to the Dask scheduler at {self._scheduler} was lost. Run the command again: finished"
                " tasks are skipped."
            ) from None


def _checked(work: Callable[[Task], Result], expected: str, task: Task) -> Result:
    """Do a task on a worker, which may have joined later, with another version or another disk."""
    from distributed import get_worker

    worker = get_worker().address
    _require_version(f"worker {worker}", __version__, expected)
    try:
        return work(task)
    except FileNotFoundError as error:
        raise ClusterError(
            f"The Dask worker {worker} cannot find {error.filename}."
            " Workers must have access to the same disk, at the same path as on this machine."
        ) from None
