"""Training that is killed at any moment and resumed ends byte for byte like an uninterrupted one."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from contract.command_line import (
    NUM_STEPS,
    STEP_TOKENS,
    SampleRun,
    elmo_zh,
    metrics_lines,
    remove_training,
    require_same_checkpoint,
    settings,
)
from contract.warm_python import COMMAND, WarmPython
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("empty_folder")

NUM_KILLS = 20
TIMES = ("tokens_per_second", "elapsed_seconds")
RECIPES = {
    f"{precision}, {'carried' if carried == 'true' else 'reset'}": (
        f"train.precision={precision}", f"train.carry_state={carried}", "train.dropout=0.3",
    )
    for precision in ("float32", "bfloat16")
    for carried in ("false", "true")
}  # fmt: skip


@dataclass
class Job:
    """A command in a process of its own."""

    starter: "subprocess.Popen[str]"
    process_id: int

    def send(self, number: int) -> None:
        # Not waited for yet, so its process id cannot be reused.
        os.kill(self.process_id, number)

    def status(self) -> int:
        assert self.starter.stdout is not None
        return int(self.starter.stdout.readline())


Start = Callable[..., Job]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    told = tmp_path_factory.mktemp("told") / "told.txt"
    starter = subprocess.Popen(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("killed_runs.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip

    def start_job(*arguments: str | Path, **trap: Any) -> Job:
        assert starter.stdin is not None
        assert starter.stdout is not None
        job = {"arguments": [str(part) for part in arguments], "told": str(told), **trap}
        starter.stdin.write(json.dumps(job) + "\n")
        starter.stdin.flush()
        return Job(starter, int(starter.stdout.readline()))

    with starter:
        yield start_job
        assert starter.stdin is not None
        starter.stdin.close()


def finish(start: Start, run: Path, *changes: str) -> None:
    assert start("train", "--run", run, *settings(*changes)).status() == 0
    assert start("export", "--run", run).status() == 0


@pytest.fixture(scope="module", params=RECIPES)
def recipe(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return RECIPES[request.param]


@pytest.fixture(scope="module")
def untouched(
    sample_run: SampleRun, start: Start, recipe: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The uninterrupted training, with a checkpoint at every tenth step."""
    run = Path(shutil.copytree(sample_run.path, tmp_path_factory.mktemp("untouched") / "run"))
    remove_training(run)
    finish(start, run, *recipe)
    return run


def without_times(run: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name not in TIMES} for line in metrics_lines(run)]


def datasets(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: found.update({name: np.asarray(item).tobytes()}) if hasattr(item, "shape") else None
        )
    return found


def assert_same(run: Path, reference: Path, *, lines_too: bool = True) -> None:
    require_same_checkpoint(run, reference, NUM_STEPS)
    found, expected = (datasets(path / "model" / "weights.hdf5") for path in (run, reference))
    assert len(expected) > 5
    assert found == expected
    if lines_too:
        assert without_times(run) == without_times(reference)
    assert not list((run / "checkpoints").glob("*.unfinished"))


def last_step(run: Path) -> int:
    """The last step of metrics.jsonl, whose last line may be half written; -1 before the first."""
    path = run / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else -1


@pytest.mark.usefixtures("no_training_picture")
def test_killed_and_resumed(untrained_run: Path, sample_run: SampleRun, warm: WarmPython) -> None:
    """Once by SIGKILL: what the default suite tries of all that follows."""
    process = warm.start(COMMAND, "train", "--run", untrained_run, cwd=untrained_run)
    wait_until(lambda: last_step(untrained_run) >= 13, process)
    os.kill(process.process_id, signal.SIGKILL)
    assert process.wait().status == -9
    for stage in ("train", "export"):
        assert elmo_zh(stage, "--run", untrained_run).status == 0
    assert_same(untrained_run, sample_run.path)


@pytest.mark.slow
def test_killed_again_and_again(untrained_run: Path, untouched: Path, start: Start, recipe: tuple[str, ...]) -> None:
    """By SIGKILL, alternating with signals that training handles; also while a checkpoint is written."""
    run, chance = untrained_run, random.Random(7)
    signals = [signal.SIGKILL] * NUM_KILLS + [signal.SIGTERM, signal.SIGINT] * 2
    chance.shuffle(signals)
    steps = sorted(chance.randrange(-1, NUM_STEPS - 5) for _ in signals)
    num_killed = 0
    for step, number in zip(steps, signals, strict=True):
        often = f"train.checkpoint_every_tokens={chance.choice((1, 2)) * STEP_TOKENS}"
        job = start("train", "--run", run, *settings(*recipe, often))
        wait_until(lambda run=run, step=step: last_step(run) >= step, None)
        # A step and its checkpoint take some hundredths of a second.
        time.sleep(chance.uniform(0, 0.05))
        job.send(number)
        status = job.status()
        expected = {signal.SIGKILL: {-9}, signal.SIGTERM: {143, -15}, signal.SIGINT: {130}}[number]
        assert status in {*expected, 0}  # 0: it finished first
        num_killed += status == -9
    assert num_killed > NUM_KILLS / 2
    finish(start, run)
    assert_same(run, untouched)


# The first call, and a later one.
PLACES = [
    ("half of the weights or the optimiser", (1, 4)),
    ("checkpoint without its state", (1, 3)),
    ("complete but not in place", (1, 2, 3, 7)),
    ("checkpoint in place", (1, 3)),
    ("before old ones are removed", (2, 3)),
    ("an old one half removed", (1, 3)),
    ("half a line of metrics", (1, 2, 13)),
    ("after a line of metrics", (1, 11, 13)),
    ("metrics cut", (1,)),
]


@pytest.mark.slow
def test_killed_at_every_place_where_files_are_written(
    untrained_run: Path, untouched: Path, start: Start, recipe: tuple[str, ...]
) -> None:
    run, typed = untrained_run, settings(*recipe, f"train.checkpoint_every_tokens={2 * STEP_TOKENS}")
    killed = [
        start("train", "--run", run, *typed, place=place, call=call).status() == -9
        for place, calls in PLACES
        for call in calls
    ]
    assert killed == [True] * len(killed)
    finish(start, run)
    assert_same(run, untouched)


@pytest.mark.slow
def test_killed_after_the_last_step(
    untrained_run: Path, untouched: Path, start: Start, recipe: tuple[str, ...]
) -> None:
    """While all held-out text is scored with the best weights, before the figures are saved."""
    run = untrained_run
    trap = {"place": "before the best one's figures are kept", "call": 1}
    assert start("train", "--run", run, *settings(*recipe), **trap).status() == -9
    finish(start, run, *recipe)
    assert_same(run, untouched)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "lines_too"),
    [
        (("train.checkpoint_every_tokens=1", "train.keep_checkpoints=1"), True),
        ((f"train.checkpoint_every_tokens={7 * STEP_TOKENS}",), True),
        ((f"train.checkpoint_every_tokens={1000 * STEP_TOKENS}",), True),
        ((f"train.evaluate_every_tokens={5 * STEP_TOKENS}", "train.evaluate_sample_tokens=131"), False),
        (("train.log_every_steps=7",), False),
    ],
)
def test_extra_saves_and_evaluations_change_nothing(
    untrained_run: Path,
    untouched: Path,
    start: Start,
    recipe: tuple[str, ...],
    changes: tuple[str, ...],
    lines_too: bool,
) -> None:
    # More evaluations may find another best checkpoint, so the weights of the last one are compared.
    run, last = untrained_run, ("--checkpoint", "last")
    assert start("train", "--run", run, *settings(*recipe, *changes)).status() == 0
    for each in (run, untouched):
        assert start("export", "--run", each, *last, "--force", "--output", each / "model").status() == 0
    assert_same(run, untouched, lines_too=lines_too)
