"""Tasks in worker processes: all done, or an error that names what to do."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import active_children

import pytest

from elmo_zh.engine import EngineChoice, ThisProcess, worker_processes
from elmo_zh.errors import ClusterError, CorpusError

LARGE = 10_000_000


def square(number: int) -> int:
    return number * number


def die(_task: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def refuse(task: int) -> int:
    raise CorpusError(f"{task} is refused")


def own_process(_task: int) -> int:
    return os.getpid()


def test_every_task_is_done_and_taken_as_it_is_needed() -> None:
    taken = []

    def tasks() -> Iterator[int]:
        for number in range(40):
            taken.append(number)
            yield number

    with worker_processes(2) as engine:
        results = engine.run(square, tasks())
        first = next(results)
        assert len(taken) <= 6
        assert sorted([first, *results]) == [(number, number * number) for number in range(40)]
        assert sorted(engine.run(square, [])) == []


def test_a_worker_that_dies_is_an_error() -> None:
    message = r"A worker process was killed.*--set text\.num_workers=1"
    with pytest.raises(ClusterError, match=message), worker_processes(2) as engine:
        list(engine.run(die, [1, 2, 3]))
    assert active_children() == []


def test_an_error_of_a_task_ends_the_workers() -> None:
    with pytest.raises(CorpusError, match="1 is refused"), worker_processes(2) as engine:
        list(engine.run(refuse, [1]))
    assert active_children() == []


def test_little_work_and_one_worker_need_no_processes() -> None:
    with EngineChoice(num_workers=2).started(1000) as engine:
        assert list(engine.run(own_process, [1])) == [(1, os.getpid())]
    with EngineChoice(num_workers=1).started(LARGE) as engine:
        assert isinstance(engine, ThisProcess)
    with EngineChoice(num_workers=2).started(LARGE) as engine:
        assert [result for _, result in engine.run(own_process, [1])] != [os.getpid()]


def test_a_closed_terminal_ends_all() -> None:
    code = """
import signal, sys, time
from elmo_zh.engine import worker_processes

signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
if __name__ == "__main__":
    with worker_processes(2) as engine:
        for task, _ in engine.run(time.sleep, [0.01, 600, 600, 600]):
            print(task, flush=True)
"""
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, start_new_session=True, text=True, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0.01\n"
        os.killpg(process.pid, signal.SIGHUP)
        process.communicate()  # returns when the last worker has ended
    assert process.returncode == 129
