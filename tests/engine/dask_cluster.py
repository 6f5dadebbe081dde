"""A Dask scheduler and its workers, as processes on this machine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from waiting import wait_until

ROOT = Path(__file__).parents[2]
# Schedulers and workers import what tasks are made of: elmo_zh, and this module.
IMPORTED = (ROOT, ROOT / "tests", ROOT / "tests" / "engine")


@dataclass
class Cluster:
    folder: Path
    address: str
    stack: ExitStack
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start_worker(self, *paths: Path) -> "subprocess.Popen[bytes]":
        """Start a worker of one thread, without the nanny that would start it again; it imports from `paths` first."""
        arguments = ("worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard")
        arguments += ("--local-directory", str(self.folder))
        worker = self.stack.enter_context(started(self.folder, arguments, (*paths, *IMPORTED)))
        self.workers.append(worker)
        return worker


@contextmanager
def started(folder: Path, arguments: tuple[str, ...], paths: tuple[Path, ...]) -> Iterator["subprocess.Popen[bytes]"]:
    code = f"import sys; sys.argv[0] = 'dask'; from distributed.cli.dask_{arguments[0]} import main; main()"
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(map(str, paths)),
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    }
    with (folder / f"{arguments[0]}.log").open("ab") as log:
        command = [sys.executable, "-W", "ignore", "-c", code, *arguments[1:]]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_address(log: Path, process: "subprocess.Popen[bytes]") -> str:
    wait_until(lambda: re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text(encoding="utf-8")), process)
    found = re.search(r"Scheduler at:\s+(tcp://\S+)", log.read_text(encoding="utf-8"))
    assert found
    return found[1]
