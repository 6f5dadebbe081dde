"""Workers of a Dask cluster, as processes on this machine: the same files, whatever dies."""

import os
import re
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from contract.command_line import contents_alone
from engine.dask_cluster import IMPORTED, Cluster, started, wait_for_address
from messages import message_of
from waiting import wait_until

from elmo_zh import __version__
from elmo_zh.config import Config, TextConfig
from elmo_zh.engine import dask_workers as module
from elmo_zh.engine.dask_workers import dask_workers
from elmo_zh.engine.engine import Shared
from elmo_zh.engine.select import EngineChoice
from elmo_zh.errors import ClusterError, CorpusError
from elmo_zh.run.job import Files, FinishedPart, Json, Step, Work, _compute, _Task
from elmo_zh.run.layout import RunDir
from elmo_zh.run.record import StageContext
from elmo_zh.run.reporter import SilentReporter
from elmo_zh.stages.segment import segment
from elmo_zh.vocabulary.counting import _count_file

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


@dataclass(frozen=True)
class AtOnce:
    """A part that two workers compute at the same time: each waits for the other before it begins."""

    meeting: Path  # where the workers leave their process ids

    def __call__(self, path: Path, files: Files) -> Json:
        (self.meeting / str(os.getpid())).touch()
        wait_until(lambda: len(list(self.meeting.iterdir())) == 2, None)
        return _count_file(path, files)


def test_segmenting_too(two_workers: Cluster, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"第{k}天天气很好。今天下雨了。\n\n" for k in range(15_000)), encoding="utf-8")
    config = Config(text=TextConfig(segmenter="character", shard_bytes=2**16))
    made = []
    for engine in (EngineChoice(num_workers=1), EngineChoice(kind="dask", scheduler=two_workers.address)):
        run = RunDir(tmp_path / engine.kind)
        segment(StageContext(run=run, config=config, engine=engine, reporter=SilentReporter()), [str(corpus)])
        made.append({path.name: path.read_bytes() for path in sorted(run.segmented.iterdir())})
    assert made[0] == made[1]
    assert len(made[0]) > 7


def test_a_part_that_two_workers_compute_at_once_or_again(two_workers: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("今天 下雨\n" * 101, encoding="utf-8")
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    [here] = Work(tmp_path / "here", SilentReporter()).run(Step(name="count", compute=_count_file), [path])
    with dask_workers(two_workers.address) as engine:
        work = Work(tmp_path / "there", SilentReporter(), engine)
        there = FinishedPart((work.path / "count").absolute(), here.name)
        task = _Task(Shared(AtOnce(meeting)), path, there)
        assert len(list(engine.run(_compute, [task, task]))) == 2
        assert contents_alone(there.folder) == contents_alone(here.folder)
        there.record.unlink()
        assert [part.value() for part in work.run(Step(name="count", compute=_count_file), [path])] == [here.value()]
    assert len(list(meeting.iterdir())) == 2
    assert contents_alone(there.folder) == contents_alone(here.folder)
    assert len(contents_alone(here.folder)) > 1


def test_every_task_is_done_and_errors_of_tasks_are_told(two_workers: Cluster) -> None:
    with dask_workers(two_workers.address) as engine:
        tasks = list(range(100))
        assert sorted(engine.run(square, tasks)) == [(number, number * number) for number in tasks]
        assert message_of(CorpusError, lambda: list(engine.run(refuse, [5]))) == "5 is refused"
        assert list(engine.run(square, [7])) == [(7, 49)]


def test_a_worker_that_does_not_see_the_disk(two_workers: Cluster, tmp_path: Path) -> None:
    with dask_workers(two_workers.address) as engine:
        told = message_of(ClusterError, lambda: list(engine.run(open_file, [tmp_path / "not there.txt"])))
    assert re.match(r"The Dask worker tcp://[\d.:]+ cannot find ", told)
    assert f" cannot find {tmp_path / 'not there.txt'}. Workers must have access to the same disk, at the same" in told


def test_a_worker_of_another_version(two_workers: Cluster, tmp_path: Path) -> None:
    (tmp_path / "elmo_zh").mkdir()
    (tmp_path / "elmo_zh" / "__init__.py").touch()
    (tmp_path / "elmo_zh" / "version.py").write_text('__version__ = "0.0.7"\n', encoding="utf-8")
    other = two_workers.start_worker(tmp_path)
    told = ""
    while not told:
        try:
            with dask_workers(two_workers.address):
                time.sleep(0.1)
        except ClusterError as error:
            (told,) = error.messages
    other.kill()
    other.wait()
    two_workers.workers.remove(other)
    assert re.match(r"The Dask worker tcp://[\d.:]+ has elmo-zh ", told)
    assert f" has elmo-zh 0.0.7; expected elmo-zh {__version__}. Install the expected version" in told


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS_TO_CONNECT", 0.5)
    told = message_of(ClusterError, lambda: dask_workers("tcp://127.0.0.1:9").__enter__())
    assert told.startswith("No Dask scheduler answers at tcp://127.0.0.1:9 (")
    assert told.endswith("). Start one with `dask scheduler`, and pass the address that it prints: --scheduler ADDRESS")
    told = message_of(ClusterError, lambda: dask_workers("").__enter__())
    assert told == "--engine dask needs the scheduler's address: --scheduler tcp://HOST:8786"
    told = message_of(ClusterError, lambda: dask_workers("nonsense://x").__enter__())
    assert "No Dask scheduler answers at nonsense://x (" in told


def test_workers_that_always_die(two_workers: Cluster) -> None:
    """Here Dask gives up at the second, else at the fourth."""
    with dask_workers(two_workers.address) as engine:
        told = message_of(ClusterError, lambda: list(engine.run(die, [1])))
    assert told.startswith("Several Dask workers died while running the same task, the last one at tcp://")


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
            told = message_of(ClusterError, lambda: list(results))
    assert told.startswith(f"The connection to the Dask scheduler at {cluster.address} was lost. Run the command again")
