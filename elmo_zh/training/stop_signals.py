"""Ctrl-C, SIGTERM and SIGHUP during training: deferred to the end of a step, and agreed on by all ranks."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from elmo_zh.training.distributed import ProcessGroup


class StopSignals:
    """The signals that should stop training between two steps."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group
        self._received: list[int] = []
        self._agreed_signal = 0

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Collect SIGINT, SIGTERM and SIGHUP (a closed terminal) instead of interrupting a step.

        With one rank a second signal interrupts immediately. With several it does not, because torchrun passes on
        signals that the terminal has already sent to the ranks. Outside the main thread, where Python allows no signal
        handlers, nothing is collected.
        """
        self._received = []
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        hangup = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []  # Windows has none
        wanted = [signal.SIGINT, signal.SIGTERM, *hangup]
        previous = {number: signal.getsignal(number) for number in wanted}
        # A program that was started with nohup ignores SIGHUP.
        signals = [number for number in wanted if previous[number] != signal.SIG_IGN]

        def receive(number: int, _frame: object) -> None:
            self._received.append(number)
            for each in signals if self._group.size == 1 else ():
                signal.signal(each, previous[each])

        for number in signals:
            signal.signal(number, receive)
        try:
            yield
        finally:
            for number in signals:
                signal.signal(number, previous[number])

    def average_loss(self, loss: float) -> float:
        """Return the mean of all ranks' losses; with the same operation, tell all ranks of a signal to any of them."""
        gathered = self._group.all_gather_numbers(loss, self._received[0] if self._received else 0)
        self._agreed_signal = int(max(number for _, number in gathered))
        return sum(each for each, _ in gathered) / len(gathered)

    def pending(self) -> int:
        """Return the signal to stop at, 0 if there is none; with several ranks, one that all ranks know of."""
        if self._group.size > 1:
            return self._agreed_signal
        return self._received[0] if self._received else 0
