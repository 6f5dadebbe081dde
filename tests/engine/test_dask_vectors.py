"""Jobs on the workers of a Dask cluster: the bytes that this machine makes, whatever dies."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from contract.command_line import contents_alone, elmo_zh
from contract.test_jobs import JOBS, LINES, Given
from drawn_bundles import SHAPES, write_model
from engine.dask_cluster import Cluster
from messages import message_of

from elmo_zh.config import TextConfig
from elmo_zh.engine import dask_workers as module
from elmo_zh.engine.dask_workers import dask_workers
from elmo_zh.errors import BundleError
from elmo_zh.run.job import run_job
from elmo_zh.run.reporter import SilentReporter

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'distributed>=2026.1'")


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


@pytest.mark.parametrize("name", ["score", "embed", "index", "vocab", "encode"])
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


def test_a_model_that_workers_cannot_find(two_workers: Cluster, given: Given, tmp_path: Path) -> None:
    job = JOBS["embed"](given, tmp_path / "out")
    given.bundle.rename(tmp_path / "moved")
    with dask_workers(two_workers.address) as engine:
        told = message_of(BundleError, lambda: run_job(job, force=False, reporter=SilentReporter(), engine=engine))
    assert str(given.bundle) in told


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("embed", "--stateful"), 2, "Leave out --engine."),
        (("score",), 2, "--output FILE"),
        (("index", "--output", "x"), 1, "[dask]'"),
    ],
)
def test_what_cannot_be_done(
    given: Given,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    monkeypatch.chdir(given.text.parent)
    find_spec = module.importlib.util.find_spec
    monkeypatch.setattr(
        module.importlib.util, "find_spec", lambda name: None if name == "distributed" else find_spec(name)
    )
    command, *options = arguments
    dask = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
    answer = elmo_zh(command, given.text, "--segmented", "--model", given.bundle, *options, *dask)
    assert answer.only_error(status).endswith(message)
    assert sorted(path.name for path in given.text.parent.iterdir()) == ["model", "text.txt"]
