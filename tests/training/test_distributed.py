"""Two processes train a model like one process does, and stop together whatever happens to one of them."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from contract.command_line import (
    SampleRun,
    checkpoint_steps,
    elmo_zh,
    metrics_lines,
    remove_training,
    settings,
    succeed,
    training_lines,
)
from messages import message_of
from safetensors.numpy import load_file
from waiting import wait_until

from elmo_zh.errors import RunError
from elmo_zh.training import Launch, read_launch
from elmo_zh.training import train_run as training_stage

# Two ranks with 3 streams of 7 tokens each.
NUM_STEPS, STEP_TOKENS = 23, 42
SETTINGS = (
    "train.precision=float32",
    "train.batch_size=6",
    "train.dropout=0",
    f"train.max_tokens={NUM_STEPS * STEP_TOKENS}",
    f"train.evaluate_every_tokens={11 * STEP_TOKENS}",
    f"train.checkpoint_every_tokens={5 * STEP_TOKENS}",
)
CHARACTERS = (
    "model.mode=character",
    "model.character_slots=13",
    "model.character_dim=5",
    "model.character_filters=[[1,2],[3,3],[7,19]]",
)
PLAIN = "tokens, state carried"
CASES = {
    PLAIN: ("train.carry_state=true",),
    "tokens, every word scored": ("train.softmax=full",),
    "characters, state carried": (*CHARACTERS, "train.carry_state=true"),
    "characters, every word scored": (*CHARACTERS, "train.softmax=full"),
    "tied": ("model.tie_softmax=true", "train.optimizer=adagrad"),
}
# What happens to one of two ranks in the plain case.
JOBS: dict[str, dict[str, Any]] = {
    "terminated": {"rank": 1, "what": "SIGTERM", "step": 13},
    "full disk": {"rank": 0, "what": "full disk", "step": 5},
    "killed": {"rank": 1, "what": "SIGKILL", "step": 17},
}
FIGURES = (
    "train_loss", "grad_norm", "heldout_perplexity", "heldout_forward_perplexity", "heldout_backward_perplexity",
    "heldout_bits_per_character",
)  # fmt: skip

Ended = list[tuple[int, str]]


def free_ports(number: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < number:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports.append(port)
    return ports


def run_as_two(jobs: Sequence[Mapping[str, Any]]) -> list[Ended]:
    """Return each rank's exit status and stderr in each job; nothing for a rank that was killed."""
    jobs = [{**job, "port": port} for job, port in zip(jobs, free_ports(len(jobs)), strict=True)]
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    with TemporaryDirectory() as folder:
        told_there = Path(folder, "told")
        command = [sys.executable, Path(__file__).with_name("ranks.py"), json.dumps(jobs), told_there]
        with subprocess.Popen(command, env=environment, start_new_session=True) as process:
            try:
                process.wait()
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        told = [Path(f"{told_there}-{rank}").read_text(encoding="utf-8").splitlines() for rank in range(2)]
    return [[tuple(json.loads(lines[number])) for lines in told if number < len(lines)] for number in range(len(jobs))]


@pytest.fixture(scope="module", autouse=True)
def _no_picture() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_stage, "can_draw", lambda: False)
        yield


# Returns the run of a case, made when it is first asked for.
Runs = Callable[[str], Path]


@pytest.fixture(scope="module")
def untrained(sample_run: SampleRun, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The sample run with the settings of each case, before training."""
    folder = tmp_path_factory.mktemp("untrained")

    @cache
    def make(name: str) -> Path:
        run = Path(shutil.copytree(sample_run.path, folder / name))
        remove_training(run)
        assert elmo_zh("encode", "--run", run, *settings(*SETTINGS, *CASES[name])).status == 0
        return run

    return make


@pytest.fixture(scope="module")
def alone(untrained: Runs, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The run of each case, trained by one process."""
    folder = tmp_path_factory.mktemp("alone")

    @cache
    def make(name: str) -> Path:
        run = Path(shutil.copytree(untrained(name), folder / name))
        succeed("train", "--run", run)
        return run

    return make


def job_of(run: Path, changes: Sequence[str] = (), **mishap: Any) -> dict[str, Any]:
    return {"arguments": ["train", "--run", str(run), *settings(*changes)], **mishap}


def train_as_two(names: Sequence[str], untrained: Runs, folder: Path) -> dict[str, tuple[Path, Ended]]:
    """Train cases and mishaps with two processes: return each one's run, and how each process ended.

    One pair of processes does it all, because starting processes takes longer than everything that they do.
    """
    copied = [name for name in names if name != "repeated"]
    runs = {name: Path(shutil.copytree(untrained(name if name in CASES else PLAIN), folder / name)) for name in copied}
    if "repeated" in names:
        runs["repeated"] = runs[PLAIN]
    jobs = [job_of(runs[name], **JOBS.get(name, {})) for name in names]
    return {name: (runs[name], ended) for name, ended in zip(names, run_as_two(jobs), strict=True)}


@pytest.fixture(scope="module")
def together(untrained: Runs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Ended]]:
    """The plain case, and what the default suite tries besides; the job that kills a process comes last."""
    return train_as_two([PLAIN, "repeated", "terminated", "killed"], untrained, tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="module")
def more_together(untrained: Runs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Ended]]:
    """The other cases and mishaps."""
    names = [*(name for name in CASES if name != PLAIN), "full disk"]
    return train_as_two(names, untrained, tmp_path_factory.mktemp("more"))


def assert_same_figures(run: Path, reference: Path) -> None:
    found, expected = metrics_lines(run), metrics_lines(reference)
    assert [line["step"] for line in training_lines(run)] == list(range(1, NUM_STEPS + 1))
    for line, other in zip(found, expected, strict=True):
        assert (line["step"], line["tokens"], line.keys()) == (other["step"], other["tokens"], other.keys())
        of_line, of_other = ({name: each[name] for name in FIGURES if name in each} for each in (line, other))
        assert of_line == pytest.approx(of_other, rel=1e-5)


def test_two_ranks_train_as_one(alone: Runs, together: dict[str, tuple[Path, Ended]]) -> None:
    assert_trained_as_one(PLAIN, alone, together)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case != PLAIN])
def test_two_ranks_train_as_one_in_other_ways(
    case: str, alone: Runs, more_together: dict[str, tuple[Path, Ended]]
) -> None:
    assert_trained_as_one(case, alone, more_together)


def assert_trained_as_one(case: str, alone: Runs, together: dict[str, tuple[Path, Ended]]) -> None:
    run, ended = together[case]
    assert [status for status, _ in ended] == [0, 0], ended
    assert ended[1][1] == ""
    assert_same_figures(run, alone(case))
    # The saved position and the carried state are those of all streams.
    last = f"checkpoints/step-{NUM_STEPS:08d}"
    states = [json.loads((path / last / "state.json").read_text(encoding="utf-8")) for path in (run, alone(case))]
    assert states[0]["streams"] == states[1]["streams"]
    found, expected = (load_file(path / last / "optimizer.safetensors") for path in (run, alone(case)))
    assert found.keys() == expected.keys()
    assert found["state.1.cell"].shape == (2, 6, 13)
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-3, atol=1e-5, err_msg=name)


def test_a_finished_training_is_not_repeated(together: dict[str, tuple[Path, Ended]]) -> None:
    assert together["repeated"][1] == [(0, "train: nothing has changed, skipped.\n"), (0, "")]


def test_a_signal_to_one_rank_stops_both_and_one_process_goes_on(
    alone: Runs, together: dict[str, tuple[Path, Ended]]
) -> None:
    run, ended = together["terminated"]
    assert [(status, told.count("Interrupted. Run")) for status, told in ended] == [(143, 1), (143, 0)]
    assert checkpoint_steps(run)[-1] == 14
    assert "Resuming from step 14 of 23." in elmo_zh("train", "--run", run).stderr.splitlines()
    assert_same_figures(run, alone(PLAIN))


@pytest.mark.slow
def test_an_error_of_rank_0_ends_the_other_without_a_word(more_together: dict[str, tuple[Path, Ended]]) -> None:
    _, ended = more_together["full disk"]
    assert [status for status, _ in ended] == [1, 1]
    errors = [line for line in ended[0][1].splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert "the disk is full" in errors[0]
    assert ended[1][1] == ""


def test_a_dead_peer_is_told_in_one_line(together: dict[str, tuple[Path, Ended]]) -> None:
    run, ended = together["killed"]
    ((status, stderr),) = ended
    assert status == 1
    error = stderr.splitlines()[-1]
    assert error.startswith("Error: Lost the other training processes (")
    assert "Traceback" not in stderr
    assert checkpoint_steps(run)[-1] == 15


def second_worker(parent: int) -> int:
    for path in Path("/proc").glob("[0-9]*"):
        try:
            status, variables = (path / "status").read_text(), (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"\nPPid:\t{parent}\n" in status and b"RANK=1" in variables:
            return int(path.name)
    raise AssertionError(f"no rank 1 below {parent}")


@pytest.mark.slow
def test_torchrun_ends_when_a_rank_is_killed_and_one_process_goes_on(
    untrained: Runs, alone: Runs, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(untrained(PLAIN), tmp_path / "run"))
    # Frequent checkpoints slow the steps down enough to hit one, and do not change the result.
    often = ("--set", f"train.checkpoint_every_tokens={STEP_TOKENS}")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "--"]
    with subprocess.Popen(
        [*command, "elmo_zh", "train", "--run", run, *often], stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        wait_until(lambda: training_lines(run), process)
        os.kill(second_worker(process.pid), signal.SIGKILL)
        _, stderr = process.communicate()
    assert process.returncode == 1
    (error,) = [line for line in stderr.splitlines() if line.startswith("Error: ")]
    assert error.startswith("Error: Lost the other training processes (")
    assert stderr.count("Traceback") == stderr.count("ChildFailedError:")  # torchrun's own
    assert len(training_lines(run)) < NUM_STEPS
    assert elmo_zh("train", "--run", run).status == 0
    assert_same_figures(run, alone(PLAIN))


WHOLE = {"RANK": "5", "WORLD_SIZE": "7", "LOCAL_RANK": "2", "MASTER_ADDR": "one", "MASTER_PORT": "29500"}


def test_a_place_in_the_environment() -> None:
    assert read_launch({}) == read_launch({"WORLD_SIZE": "1", "RANK": "0"}) == Launch()
    assert read_launch(WHOLE) == Launch(rank=5, size=7, local_rank=2)


def test_an_environment_that_makes_no_sense() -> None:
    told = message_of(RunError, lambda: read_launch({**WHOLE, "LOCAL_RANK": "two", "MASTER_PORT": ""}))
    assert told == "WORLD_SIZE=7 needs LOCAL_RANK=N, MASTER_PORT=N (torchrun)."
