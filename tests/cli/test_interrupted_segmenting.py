"""Ctrl-C while processes are segmenting: it ends at once, with nothing left running and nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def test_control_c_pressed_twice_ends_the_workers_too(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(SAMPLE.glob("*.txt")))
    corpus.write_text(text * 30, encoding="utf-8")
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "elmo_zh",
        "segment",
        str(corpus),
        "--run",
        str(run),
        "--set",
        "text.num_workers=2",
    ]
    # A session of its own is a process group of its own, to which a terminal would send the signal.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not (run / "segmented.unfinished" / "train-00000.txt").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.endswith("Interrupted. Type the same command again to go on.\n")
    assert not [path for path in run.rglob("*") if "unfinished" in path.name]
