"""A terminal that is closed during training: it ends with a checkpoint, and goes on from there."""

import json
import os
import select
from pathlib import Path

import pytest
from contract.command_line import (
    NUM_STEPS,
    SampleRun,
    checkpoint_steps,
    elmo_zh,
    metrics_lines,
    require_same_checkpoint,
)
from contract.warm_python import Running, WarmPython

pty = pytest.importorskip("pty", reason="this system has no terminals of this kind")


# The process begins a session, and the first terminal that it opens becomes that of the session.
ON_TERMINAL = """
import os, sys
from elmo_zh.cli import main

os.setsid()
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
os.close(terminal)
main()
"""


def read_until_step(terminal: int, run: Path, step: int, process: Running) -> None:
    """Read what the program writes on its terminal, which would else be full, until it has made so many steps."""
    while not any(line["step"] >= step for line in whole_lines(run)):
        assert process.poll() is None
        if select.select([terminal], [], [], 0.01)[0]:
            os.read(terminal, 4096)


def whole_lines(run: Path) -> list[dict[str, int]]:
    path = run / "metrics.jsonl"
    return list(map(json.loads, path.read_bytes().split(b"\n")[:-1])) if path.exists() else []


@pytest.mark.usefixtures("empty_folder", "no_training_picture")
def test_a_closed_terminal_ends_training_with_a_checkpoint(
    untrained_run: Path, sample_run: SampleRun, warm: WarmPython
) -> None:
    terminal, other_end = pty.openpty()
    process = warm.start(ON_TERMINAL, os.ttyname(other_end), "train", "--run", untrained_run, cwd=untrained_run)
    # While nobody has the other end open, reading fails; the program may not have opened it yet.
    read_until_step(terminal, untrained_run, 13, process)
    os.close(other_end)
    os.close(terminal)
    assert process.wait().status == 129
    last = checkpoint_steps(untrained_run)[-1]
    assert 13 <= last < NUM_STEPS
    state = json.loads((untrained_run / "checkpoints" / f"step-{last:08d}" / "state.json").read_text(encoding="utf-8"))
    assert state["interrupted"] is True
    assert metrics_lines(untrained_run)[-1]["step"] == last

    answer = elmo_zh("train", "--run", untrained_run)
    assert answer.status == 0, answer.stderr
    require_same_checkpoint(untrained_run, sample_run.path, NUM_STEPS)
