"""Training that is ended at any moment and resumed ends byte for byte like an uninterrupted one."""

import json
import os
import select
import signal
from pathlib import Path
from typing import Any

import pytest
from contract.command_line import (
    NUM_STEPS,
    SampleRun,
    checkpoint_steps,
    elmo_zh,
    metrics_lines,
    require_same_checkpoint,
    settings,
)
from contract.warm_python import COMMAND, WarmPython
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("no_training_picture")

TIMES = ("tokens_per_second", "elapsed_seconds")


def finish(run: Path, *changes: str) -> None:
    assert elmo_zh("train", "--run", run, *settings(*changes)).status == 0
    assert elmo_zh("export", "--run", run).status == 0


def without_times(run: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name not in TIMES} for line in metrics_lines(run)]


def assert_same(run: Path, reference: Path) -> None:
    require_same_checkpoint(run, reference, NUM_STEPS)
    found, expected = ((path / "model" / "weights.hdf5").read_bytes() for path in (run, reference))
    assert found == expected
    assert without_times(run) == without_times(reference)
    assert not list((run / "checkpoints").glob("*.unfinished"))


def last_step(run: Path) -> int:
    """The last step of metrics.jsonl, whose last line may be half written; -1 before the first."""
    path = run / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else -1


def test_killed_and_resumed(untrained_run: Path, sample_run: SampleRun, warm: WarmPython) -> None:
    """By SIGKILL at any moment; tests/faults tries each write by itself."""
    process = warm.start(COMMAND, "train", "--run", untrained_run, cwd=untrained_run)
    wait_until(lambda: last_step(untrained_run) >= 13, process)
    os.kill(process.process_id, signal.SIGKILL)
    assert process.wait().status == -9
    finish(untrained_run)
    assert_same(untrained_run, sample_run.path)


# The process begins a session, and the first terminal that it opens becomes that of the session.
ON_TERMINAL = f"""
import os, sys
os.setsid()
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
os.close(terminal)
{COMMAND}
"""


def test_a_closed_terminal_ends_training_with_a_checkpoint(
    untrained_run: Path, sample_run: SampleRun, warm: WarmPython
) -> None:
    pty = pytest.importorskip("pty", reason="this system has no terminals of this kind")
    terminal, other_end = pty.openpty()
    process = warm.start(ON_TERMINAL, os.ttyname(other_end), "train", "--run", untrained_run, cwd=untrained_run)
    # While nobody has the other end open, reading fails; the program may not have opened it yet.
    while last_step(untrained_run) < 13:
        assert process.poll() is None
        # Else its terminal would be full.
        if select.select([terminal], [], [], 0.01)[0]:
            os.read(terminal, 4096)
    os.close(other_end)
    os.close(terminal)
    assert process.wait().status == 129
    last = checkpoint_steps(untrained_run)[-1]
    assert 13 <= last < NUM_STEPS
    state = json.loads((untrained_run / "checkpoints" / f"step-{last:08d}" / "state.json").read_text(encoding="utf-8"))
    assert state["interrupted"] is True
    assert metrics_lines(untrained_run)[-1]["step"] == last
    assert elmo_zh("train", "--run", untrained_run).status == 0
    require_same_checkpoint(untrained_run, sample_run.path, NUM_STEPS)


def test_a_training_out_of_time_has_final_figures_and_goes_on(untrained_run: Path, sample_run: SampleRun) -> None:
    """Each command has time for one step."""
    for step in (1, 2):
        told = elmo_zh("train", "--run", untrained_run, "--json", *settings("train.max_minutes=1e-9"))
        result = json.loads(told.stdout)
        assert (told.status, result["steps"], result["heldout"]["step"]) == (0, step, step)
        assert elmo_zh("export", "--run", untrained_run).status == 0
    finish(untrained_run, "train.max_minutes=0")
    assert_same(untrained_run, sample_run.path)
