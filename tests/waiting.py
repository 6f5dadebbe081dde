"""Waiting in tests: for what must come, however slow the machine is."""

import time
from collections.abc import Callable
from typing import Protocol


class Process(Protocol):
    """A process such as subprocess.Popen, or a Running of contract/warm_python.py."""

    def poll(self) -> int | None:
        """Return None while it runs."""


def wait_until(condition: Callable[[], object], process: Process | None) -> None:
    """Wait until a condition holds, while the process that is to bring it about is running.

    There is no limit of its own: a machine may be slow and busy. A hang is ended by the suite's limit in conftest.py.
    """
    while not condition():
        assert process is None or process.poll() is None, "the process has ended"
        time.sleep(0.005)
