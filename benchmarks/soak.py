"""Embed, score and train in turn while things go wrong; compare what comes out with undisturbed runs, byte for byte.

Usage: python benchmarks/soak.py [--minutes N] [--seed N] [--output FILE.json]

At random times the commands are stopped for a moment (SIGSTOP), killed (SIGKILL) and started again; their disk is
full; the clock jumps by days, forwards and backwards. The disk is a file system in memory, which only root can mount;
without it that disturbance is left out, and the record says so. The clock is that of `time.time` in Python; what C
code reads, and the monotonic clock, which the system never changes, stay as they are.

A disturbed command may end with any exit status, but not with a traceback. It is typed again until it succeeds,
undisturbed from the sixth time on. Then its files are compared with those of a run without disturbances.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
# Small enough that a turn takes a minute on a busy core.
SETTINGS = (
    "vocab.size=500", "word2vec.epochs=2", "model.cell_dim=31", "model.projection_dim=17", "train.max_tokens=24000",
    "train.num_negatives=61", "train.warmup_tokens=1000", "train.checkpoint_every_tokens=2500", "train.num_threads=1",
    "train.evaluate_every_tokens=9000", "text.num_workers=1", "train.precision=float32",
)  # fmt: skip
MOST_DISTURBED = 5
DISK_BYTES = 1 << 28
# What a full disk has left, at most.
MOST_FREE_BYTES = 1 << 19
JUMPING_CLOCK = """
import random, time
_true, _jump = time.time, [0.0]
def _jumping():
    if random.random() < 0.05:
        _jump[0] = random.uniform(-1e7, 1e7)
    return _true() + _jump[0]
time.time = _jumping
"""


@dataclass
class Soak:
    """The folders and the counts of one soak."""

    folder: Path
    disk: Path | None
    random: np.random.Generator
    disturbed: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def place(self) -> Path:
        """The folder in which commands write."""
        return self.disk or self.folder / "place"


def command(soak: Soak, *arguments: str | Path, jumps: bool = False) -> "subprocess.Popen[str]":
    path = [str(ROOT), *([str(soak.folder / "clock")] if jumps else [])]
    return subprocess.Popen(
        [sys.executable, "-m", "elmo_zh", *map(str, arguments)],
        cwd=soak.place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(soak: Soak, *arguments: str | Path) -> None:
    process = command(soak, *arguments)
    told, _ = process.communicate()
    assert process.returncode == 0, told


def stopped(soak: Soak, process: "subprocess.Popen[str]", seconds: float) -> None:
    for _ in range(int(soak.random.integers(1, 5))):
        time.sleep(float(soak.random.uniform(0.1, seconds)))
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(float(soak.random.uniform(0.1, 2)))
            process.send_signal(signal.SIGCONT)


def killed(soak: Soak, process: "subprocess.Popen[str]", seconds: float) -> None:
    time.sleep(float(soak.random.uniform(0.1, 1.1 * seconds)))
    process.kill()


def undisturbed(_soak: Soak, _process: "subprocess.Popen[str]", _seconds: float) -> None:
    """Nothing happens while it runs: its clock jumps, or its disk is full."""


DISTURBANCES: dict[str, Callable[[Soak, "subprocess.Popen[str]", float], None]] = {
    "SIGSTOP": stopped,
    "SIGKILL": killed,
    "clock": undisturbed,
    "full disk": undisturbed,
}


@contextmanager
def filled(soak: Soak, disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    left = shutil.disk_usage(disk).free - int(soak.random.integers(MOST_FREE_BYTES))
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, left))
    try:
        yield
    finally:
        ballast.unlink()


def disturb(soak: Soak, kind: str, arguments: tuple[str | Path, ...], seconds: float) -> int:
    """Run a command once and disturb it; return its exit status."""

    def attempt() -> tuple[int, str]:
        process = command(soak, *arguments, jumps=kind == "clock")
        DISTURBANCES[kind](soak, process, seconds)
        told, _ = process.communicate()
        return process.returncode, told

    if kind == "full disk":
        assert soak.disk is not None
        with filled(soak, soak.disk):
            status, told = attempt()
    else:
        status, told = attempt()
    soak.disturbed[kind] += 1
    soak.statuses[f"{kind}: {status}"] += 1
    if "Traceback" in told:
        soak.problems.append(f"{kind}, {arguments[0]}: {told[-1500:]}")
    return status


def finish(soak: Soak, job: "Job", seconds: float) -> None:
    """Type a command until it succeeds, disturbed at first."""
    kinds = [kind for kind in DISTURBANCES if kind != "full disk" or soak.disk is not None]
    for _ in range(MOST_DISTURBED):
        if disturb(soak, str(soak.random.choice(kinds)), job.arguments, seconds) == 0 or job.is_done():
            return
    run(soak, *job.arguments)


def contents(paths: list[Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in paths}


@dataclass(frozen=True)
class Job:
    """A command that is repeated: what it starts from, what is typed, which of its files are compared."""

    start: Callable[[], None]
    arguments: tuple[str | Path, ...]
    outputs: Callable[[], list[Path]]
    # Whether the output is there, though the command was killed after that.
    is_done: Callable[[], bool] = lambda: False


def jobs(soak: Soak) -> dict[str, Job]:
    text, run_dir, original = soak.folder / "text.txt", soak.place / "run", soak.folder / "encoded"
    model = soak.folder / "model"

    def remove(*names: str) -> None:
        for name in names:
            for path in soak.place.glob(f"{name}*"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def start_training() -> None:
        remove("run")
        shutil.copytree(original, run_dir)

    def trained() -> list[Path]:
        last = max((run_dir / "checkpoints").iterdir())
        return [*sorted(last.glob("*.safetensors")), *sorted(run_dir.glob("*.tsv"))]

    return {
        "embed": Job(
            lambda: remove("vectors"),
            ("embed", text, "--model", model, "--output", "vectors.hdf5"),
            lambda: [soak.place / "vectors.hdf5"],
            (soak.place / "vectors.hdf5").exists,
        ),
        "score": Job(
            lambda: remove("scores"),
            ("score", text, "--model", model, "--output", "scores.tsv"),
            lambda: [soak.place / "scores.tsv"],
            (soak.place / "scores.tsv").exists,
        ),
        "train": Job(start_training, ("train", "--run", run_dir), trained),
    }


def prepare(soak: Soak) -> None:
    """Make the model, the encoded text that training starts from, and the text to embed, undisturbed."""
    sample = sorted((ROOT / "data" / "sample").glob("*.txt"))
    clock = soak.folder / "clock"
    clock.mkdir()
    (clock / "sitecustomize.py").write_text(JUMPING_CLOCK, encoding="utf-8")
    soak.place.mkdir(exist_ok=True)
    made = soak.folder / "encoded"
    changes = [word for setting in SETTINGS for word in ("--set", setting)]
    run(soak, "segment", *sample[:4], "--run", made, *changes)
    for stage in ("vocab", "word2vec", "encode"):
        run(soak, stage, "--run", made)
    shutil.copytree(made, soak.folder / "run")
    run(soak, "train", "--run", soak.folder / "run")
    run(soak, "export", "--run", soak.folder / "run", "--output", soak.folder / "model")
    lines = [line for path in sample[4:] for line in path.read_text("utf-8").splitlines()]
    (soak.folder / "text.txt").write_text("\n".join(lines) + "\n", "utf-8")


def measure(soak: Soak, minutes: float) -> dict[str, object]:
    prepare(soak)
    expected, seconds = {}, {}
    for name, job in jobs(soak).items():
        job.start()
        started = time.monotonic()
        run(soak, *job.arguments)
        seconds[name] = time.monotonic() - started
        expected[name] = contents(job.outputs())
    started = time.monotonic()
    for name, job in cycle(jobs(soak).items()):
        if time.monotonic() - started >= 60 * minutes:
            break
        job.start()
        finish(soak, job, seconds[name])
        soak.turns[name] += 1
        if contents(job.outputs()) != expected[name]:
            soak.problems.append(f"{name}: other bytes than undisturbed")
        print(f"{time.monotonic() - started:.0f} s, {name}, {dict(soak.disturbed)}", file=sys.stderr, flush=True)
    left = [str(path) for path in soak.place.iterdir() if path.name.endswith((".unfinished", ".parts", "ballast"))]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "minutes": round((time.monotonic() - started) / 60, 1),
        "turns": dict(soak.turns),
        "disturbances": dict(soak.disturbed),
        "left out": [] if soak.disk else ["full disk: no file system could be mounted"],
        "exit statuses": dict(sorted(soak.statuses.items())),
        "files left over": left,
        "problems": soak.problems,
    }


@contextmanager
def mounted(folder: Path) -> Iterator[Path | None]:
    """Yield a small file system in memory; None where this user cannot mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="elmo-zh-soak-") as folder, mounted(Path(folder, "disk")) as disk:
        record = measure(Soak(Path(folder), disk, np.random.default_rng(given.seed)), given.minutes)
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    print(text)
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    return 1 if record["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
