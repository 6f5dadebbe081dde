"""Workers of a Dask cluster, as processes on this machine: the same files, whatever dies."""

import importlib.util
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from contract.command_line import contents_alone, elmo_zh
from contract.test_jobs import JOBS, LINES, Given
from drawn_bundles import SHAPES, write_model
from engine.dask_cluster import IMPORTED, Cluster, started, wait_for_address
from messages import message_of

from elmo_zh import engine as engine_module
from elmo_zh.config import TextConfig
from elmo_zh.engine import Shared, dask_workers
from elmo_zh.errors import ClusterError, CorpusError
from elmo_zh.run.job import FinishedPart, _compute, _Task, run_job
from elmo_zh.run.reporter import SilentReporter

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'distributed>=2026.1'")


def square(number: int) -> int:
    return number * number


def refuse(task: int) -> int:
    raise CorpusError(f"{task} is refused")


def open_file(path: Path) -> bytes:
    return path.read_bytes()


def die(_task: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pytest.fixture
def given(tmp_path: Path) -> Given:
    text, bundle = tmp_path / "given" / "text.txt", tmp_path / "given" / "model"
    text.parent.mkdir()
    text.write_text("".join(f"{line}\n" for line in LINES * 3), encoding="utf-8")
    return Given(write_model(bundle, SHAPES["token"], with_softmax=True, text=TextConfig(segmenter="character")), text)


class Killing(SilentReporter):
    """Kills a worker as soon as a part is finished."""

    def __init__(self, victim: "subprocess.Popen[bytes]") -> None:
        self._victim = victim

    @contextmanager
    def progress(self, *_: object, **__: object) -> Iterator["Killing"]:
        yield self

    def update(self, amount: int, **_: float) -> None:
        self._victim.kill()


@pytest.mark.parametrize("name", ["segment", "score", "embed", "index", "vocab", "encode"])
def test_workers_make_the_bytes_that_this_machine_makes_though_one_is_killed(
    two_workers: Cluster, given: Given, tmp_path: Path, name: str
) -> None:
    here, there = (JOBS[name](given, tmp_path / place / "out") for place in ("here", "there"))
    run_job(here, force=False, reporter=SilentReporter())
    victim = two_workers.workers[0]
    with dask_workers(two_workers.address) as engine:
        run_job(there, force=False, reporter=Killing(victim), engine=engine)
    assert victim.wait() == -signal.SIGKILL
    assert contents_alone(tmp_path / "there") == contents_alone(tmp_path / "here")


def test_every_task_is_done_and_errors_of_tasks_are_told(two_workers: Cluster, tmp_path: Path) -> None:
    with dask_workers(two_workers.address) as engine:
        tasks = list(range(100))
        assert sorted(engine.run(square, tasks)) == [(number, number * number) for number in tasks]
        assert message_of(CorpusError, lambda: list(engine.run(refuse, [5]))) == "5 is refused"
        told = message_of(ClusterError, lambda: list(engine.run(open_file, [tmp_path / "not there.txt"])))
        assert str(tmp_path / "not there.txt") in told
        other = _Task(Shared(square), 7, FinishedPart(tmp_path / "part", "part-0"), version="0.0.7")
        assert "0.0.7" in message_of(ClusterError, lambda: list(engine.run(_compute, [other])))
        # Here Dask gives up at the second death, else at the fourth.
        assert "killed" in message_of(ClusterError, lambda: list(engine.run(die, [1])))


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "SECONDS_TO_CONNECT", 0.5)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        assert address in message_of(ClusterError, lambda: dask_workers(address).__enter__())  # noqa: B023


def test_a_scheduler_that_goes(tmp_path: Path) -> None:
    with ExitStack() as stack:
        arguments = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        scheduler = stack.enter_context(started(tmp_path, arguments, IMPORTED))
        cluster = Cluster(tmp_path, wait_for_address(tmp_path / "scheduler.log", scheduler), stack)
        cluster.start_worker()
        with dask_workers(cluster.address) as engine:
            results = engine.run(square, range(10**6))
            next(results)
            scheduler.kill()
            assert "connection" in message_of(ClusterError, lambda: list(results))


def test_dask_is_not_installed(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(given.text.parent)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else find_spec(name))
    options = ("--segmented", "--model", given.bundle, "--output", "x", "--engine", "dask", "--scheduler", "tcp://x:9")
    assert elmo_zh("index", given.text, *options).only_error().endswith("[dask]'")
    assert sorted(path.name for path in given.text.parent.iterdir()) == ["model", "text.txt"]
