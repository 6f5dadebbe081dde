"""Segmenting that is stopped: it ends at once with nothing half-written, and goes on where it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_line import Answer, contents_alone, settings, succeed
from waiting import wait_until

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
FIRST_PART = Path("segmented.parts", "segment", "part-000000000000.json")
SETTINGS = ("text.num_workers=2", "text.drop_duplicates=false", "text.shard_bytes=65536")


def command(corpus: Path, run: Path) -> list[str]:
    return [sys.executable, "-m", "elmo_zh", "segment", str(corpus), "--run", str(run), *settings(*SETTINGS)]


def segmented_here(corpus: Path, run: Path) -> Answer:
    """One worker makes the same files as two."""
    return succeed("segment", corpus, "--run", run, *settings(*SETTINGS, "text.num_workers=1"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "corpus.txt"
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(SAMPLE.glob("*.txt")))
    path.write_text(text * 2, encoding="utf-8")
    return path


def test_control_c_pressed_twice_ends_the_workers_and_the_next_call_goes_on(tmp_path: Path, corpus: Path) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    segmented_here(corpus, whole)
    # A session of its own is a process group of its own, to which a terminal would send the signal.
    with subprocess.Popen(command(corpus, run), stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until((run / FIRST_PART).exists, process)
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert told.endswith("Interrupted. Run the same command again to continue.\n")
    assert not [path for path in run.rglob("*.unfinished") if path.suffixes[-2:-1] != [".parts"] and path.is_dir()]
    assert not (run / "segmented").exists()

    segmented_here(corpus, run)
    assert contents_alone(run / "segmented") == contents_alone(whole / "segmented")
    assert not (run / "segmented.parts").exists()
