"""Segmenting that is stopped: it ends at once with nothing half-written, and goes on where it was."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_line import Answer, settings, succeed
from waiting import wait_until

from elmo_zh.run.work_folder import Region, WorkFolder, part_name

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
FIRST_PART = Path("segmented.parts", "segmented", f"{part_name(0)}.json")
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
    run = tmp_path / "run"
    # A session of its own is a process group of its own, to which a terminal would send the signal.
    with subprocess.Popen(command(corpus, run), stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until((run / FIRST_PART).exists, process)
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert told.endswith("Interrupted. Run the same command again to continue.\n")
    assert "Resuming" not in told
    assert not [path for path in run.rglob("*.unfinished") if path.suffixes[-2:-1] != [".parts"] and path.is_dir()]
    assert not (run / "segmented").exists()

    # What was done is not done again: a change in it stays, if its record vouches for it.
    done = (run / FIRST_PART).with_suffix(".txt")
    text = done.read_text(encoding="utf-8")
    done.write_text(re.sub("[一-鿿]", "甲", text), encoding="utf-8")
    work = WorkFolder(done.parent)
    files = map(Region.whole, sorted(path for path in done.parent.glob("*0.*") if path.suffix != ".json"))
    work.finish(done.stem, work.whole_figures(done.stem), files)
    continued = segmented_here(corpus, run)
    (resuming,) = re.findall(r"^Resuming with .*", continued.stderr, re.MULTILINE)
    assert re.fullmatch(r"Resuming with [1-9]\d* of \d+ shards segmented\.", resuming)
    train = (run / "segmented" / "train-00000.txt").read_text(encoding="utf-8")
    assert set(re.findall("[一-鿿]", train)) == {"甲"}
    assert not (run / "segmented.parts").exists()
