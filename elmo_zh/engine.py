"""Compute the parts of jobs with a `concurrent.futures.Executor`: in this process, in others, or on a Dask cluster."""

import importlib.util
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from elmo_zh.allocator import keep_freed_memory
from elmo_zh.errors import ClusterError
from elmo_zh.invocation import needs
from elmo_zh.language import _

Task = TypeVar("Task")
Result = TypeVar("Result")
Value = TypeVar("Value")

# Less text than this is finished before worker processes have started.
_SMALL_BYTES = 500_000
SECONDS_TO_CONNECT, _SECONDS_FOR_A_WORKER = 15, 30
# At least this many tasks are submitted to a cluster at a time, so that workers that join later get some too.
_LEAST_AHEAD = 64
_turn = threading.RLock()


class Engine:
    """Runs tasks on the workers of an executor.

    A task may run more than once, even at the same time. So it must write the same files each time, and give a file its
    name only when the file is complete.
    """

    def __init__(
        self, executor: Executor, *, num_ahead: int, killed: type[Exception] = BrokenExecutor, is_remote: bool = False
    ) -> None:
        """Keep up to `num_ahead` tasks submitted; the executor raises `killed` if workers were killed."""
        self._executor, self._num_ahead, self._killed, self._is_remote = executor, num_ahead, killed, is_remote

    def run(self, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
        """Do `work` on tasks, which are read one by one; yield each with its result as soon as it finishes."""
        upcoming, submitted = iter(tasks), dict[Future[Result], Task]()
        try:
            while True:
                for task in islice(upcoming, max(0, self._num_ahead - len(submitted))):
                    submitted[self._executor.submit(work, task)] = task
                if not submitted:
                    return
                for future in wait_for(submitted, return_when=FIRST_COMPLETED).done:
                    yield submitted.pop(future), future.result()
        except self._killed:
            raise ClusterError(
                _(
                    "A worker process was killed, perhaps because memory ran out. Run the command again with fewer"
                    " workers (on one machine: --set text.num_workers=1) or with more memory for each."
                )
            ) from None
        except CancelledError:
            raise ClusterError(
                _("The connection to the Dask scheduler was lost. Run the command again: finished tasks are skipped.")
            ) from None
        except FileNotFoundError as error:
            if not self._is_remote:
                raise
            raise unshared_disk(error.filename) from None


def unshared_disk(path: str | Path) -> ClusterError:
    """Return the error for a path that is not on every machine."""
    message = _(
        "{path} cannot be found on another machine. Workers must have access to the same disk, at the same path as on"
        " this machine."
    )
    return ClusterError(message.format(path=path))


class _InThisProcess(Executor):
    def submit(self, work: Callable[..., Result], /, *args: Any, **named: Any) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(work(*args, **named))
        return future


class ThisProcess(Engine):
    """Runs tasks one after another in this process."""

    def __init__(self) -> None:
        super().__init__(_InThisProcess(), num_ahead=1)


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """The user's choice of engine; it does not affect the results."""

    num_workers: int = 0  # Number of processes on this machine; 0 means one for each processor core
    kind: str = "local"  # "local", or "dask" for the workers of a cluster
    scheduler: str = ""

    def num_processes(self, num_bytes: float) -> int:
        """Return the number of processes to use for this much text; 1 means that the main process works alone."""
        return (self.num_workers or os.cpu_count() or 1) if num_bytes >= _SMALL_BYTES else 1

    def started(self, num_bytes: int) -> AbstractContextManager[Engine]:
        """Return a context manager that starts and stops the chosen engine for `num_bytes` bytes of text."""
        if self.kind == "dask":
            return dask_workers(self.scheduler)
        num_processes = self.num_processes(num_bytes)
        return nullcontext(ThisProcess()) if num_processes == 1 else worker_processes(num_processes)


# Processes on this machine


@contextmanager
def worker_processes(num_workers: int) -> Iterator[Engine]:
    """Yield an engine of `num_workers` processes; they end with the block, or immediately if it fails."""
    executor = ProcessPoolExecutor(num_workers, get_context("spawn"), initializer=_start_worker)
    try:
        # One task more than there are workers, so that a free worker finds its next task waiting.
        yield Engine(executor, num_ahead=num_workers + 1)
    except BaseException:
        # Ctrl-C or a failed task: do not wait for the other tasks, which may take a long time.
        for process in list((executor._processes or {}).values()):
            process.terminate()
        if sys.version_info < (3, 11, 5):
            # If a task does not fit into the pipe to the workers, the thread that writes it would wait forever, and
            # this process could not exit. Later versions close the pipe themselves (python/cpython#94777).
            executor._call_queue._reader.close()  # type: ignore[attr-defined]
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the main process, which ends its workers
    main = parent_process()
    if main is not None:
        threading.Thread(target=_end_after, args=(main,), daemon=True).start()


def _end_after(main: BaseProcess) -> None:
    """End this worker once the main process has ended, even if it was killed."""
    main.join()
    os._exit(1)


class Shared(Generic[Value]):
    """A value that many tasks share, such as work that needs a model: a worker unpickles it on first use."""

    def __init__(self, value: Value) -> None:
        self._value: Value | None = value
        self._pickled = b""

    def __getstate__(self) -> bytes:
        self._pickled = self._pickled or pickle.dumps(self._value)
        return self._pickled

    def __setstate__(self, pickled: bytes) -> None:
        # Not unpickled here: schedulers read tasks too.
        self._value, self._pickled = None, pickled

    @contextmanager
    def used(self) -> Iterator[Value]:
        """Yield the value to one thread of a process at a time."""
        with _turn:
            yield _unpickled(self._pickled) if self._value is None else self._value


@lru_cache(maxsize=2)
def _unpickled(pickled: bytes) -> Any:
    keep_freed_memory()
    return pickle.loads(pickled)  # noqa: S301 (from the process that submits the tasks)


# Dask


@contextmanager
def dask_workers(scheduler: str) -> Iterator[Engine]:
    """Yield an engine for the workers of a Dask scheduler, on machines that see the same files at the same paths."""
    if importlib.util.find_spec("distributed") is None:
        raise ClusterError(needs("--engine dask", "distributed", "dask"))
    from distributed import Client
    from distributed.scheduler import KilledWorker

    with ExitStack() as stack:
        try:
            client = stack.enter_context(Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False))
            client.wait_for_workers(1, timeout=_SECONDS_FOR_A_WORKER)
        except (OSError, ValueError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
            raise ClusterError(
                _(
                    "Cannot reach a Dask scheduler with workers at {scheduler} ({reason}). Start a scheduler with"
                    " `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`, and pass the scheduler's"
                    " address: --scheduler ADDRESS"
                ).format(scheduler=scheduler, reason=reason)
            ) from None
        num_ahead = max(_LEAST_AHEAD, 4 * sum(client.nthreads().values()))
        # pure=False: run a task even if an equal one ran before, since the files may have been removed meanwhile.
        executor = client.get_executor(pure=False)
        yield Engine(executor, num_ahead=num_ahead, killed=KilledWorker, is_remote=True)
