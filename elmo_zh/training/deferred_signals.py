"""Ctrl-C and SIGTERM, kept for the end of a step."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_signals(*, second_breaks_in: bool) -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM in the yielded list instead of breaking into a step; a second one may break in.

    Outside the main thread, where Python allows no handlers, nothing is collected.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def receive(number: int, _frame: object) -> None:
        received.append(number)
        for each in signals if second_breaks_in else ():
            signal.signal(each, before[each])

    for number in signals:
        signal.signal(number, receive)
    try:
        yield received
    finally:
        for number in signals:
            signal.signal(number, before[number])
