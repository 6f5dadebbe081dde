"""A terminal that is closed during training: it ends with a checkpoint, and goes on from there."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_line import NUM_STEPS, SampleRun, checkpoint_steps, elmo_zh, metrics_lines

pty = pytest.importorskip("pty", reason="this system has no terminals of this kind")


def read_until_step(terminal: int, run: Path, step: int, process: "subprocess.Popen[bytes]") -> None:
    """Read what the program writes on its terminal, which would else be full, until it has made so many steps."""
    while not any(line["step"] >= step for line in whole_lines(run)):
        assert process.poll() is None
        if select.select([terminal], [], [], 0.01)[0]:
            os.read(terminal, 4096)


def whole_lines(run: Path) -> list[dict[str, int]]:
    path = run / "metrics.jsonl"
    return list(map(json.loads, path.read_bytes().split(b"\n")[:-1])) if path.exists() else []


@pytest.mark.usefixtures("empty_folder")
def test_a_closed_terminal_ends_training_with_a_checkpoint(untrained_run: Path, sample_run: SampleRun) -> None:
    terminal, other_end = pty.openpty()
    # The shell begins a session, and the first terminal that it opens becomes that of the session.
    script = 'exec "$@" <"$0" >"$0" 2>&1'
    command = [sys.executable, "-m", "elmo_zh", "train", "--run", str(untrained_run)]
    shell = ["sh", "-c", script, os.ttyname(other_end), *command]
    with subprocess.Popen(shell, start_new_session=True) as process:
        # While nobody has the other end open, reading fails; the program may not have opened it yet.
        read_until_step(terminal, untrained_run, 13, process)
        os.close(other_end)
        os.close(terminal)
        process.wait()
    assert process.returncode == 129
    last = checkpoint_steps(untrained_run)[-1]
    assert 13 <= last < NUM_STEPS
    state = json.loads((untrained_run / "checkpoints" / f"step-{last:08d}" / "state.json").read_text(encoding="utf-8"))
    assert state["interrupted"] is True
    assert metrics_lines(untrained_run)[-1]["step"] == last

    answer = elmo_zh("train", "--run", untrained_run)
    assert answer.status == 0, answer.stderr
    for name in ("model", "optimizer"):
        file = f"checkpoints/step-{NUM_STEPS:08d}/{name}.safetensors"
        assert (untrained_run / file).read_bytes() == (sample_run.path / file).read_bytes()
