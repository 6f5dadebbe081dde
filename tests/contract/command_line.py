"""Type elmo-zh commands as users do: in this process where speed matters, in one of their own where signals do."""

import io
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from elmo_zh.cli import main
from elmo_zh.run.outputs import MARK

ROOT = Path(__file__).parents[2]
STAGES = ("segment", "vocab", "word2vec", "encode", "train", "export")
OF_MODELS = (
    "embed", "evaluate", "score", "substitutes", "index", "neighbours", "senses", "drift", "explore",
    "convert", "info",
)  # fmt: skip
OF_TEXTS = ("concordance", "frequencies", "collocates", "keywords", "words")
OF_CORPORA = ("plan",)
COMMANDS = ("pipeline", *STAGES, *OF_MODELS, *OF_TEXTS, *OF_CORPORA)
# Groups of commands, each with its own.
GROUPS = {"task": ("fit", "predict", "score", "compare", "probe")}

# Distinct primes, so that a swapped axis fails. 2,100 tokens are 100 steps of 3 x 7.
NUM_STEPS, STEP_TOKENS = 100, 21
CELL, PROJECTION, LAYERS = 13, 7, 2
SETTINGS = f"""
[text]
num_workers = 1

[word2vec]
epochs = 2

[model]
cell_dim = {CELL}
projection_dim = {PROJECTION}
num_layers = {LAYERS}

[train]
max_tokens = {NUM_STEPS * STEP_TOKENS}
batch_size = 3
unroll_steps = 7
num_negatives = 29
num_threads = 1
device = "cpu"
precision = "float32"  # auto would choose by the rate that it measures
log_every_steps = 1
evaluate_every_tokens = {20 * STEP_TOKENS}
checkpoint_every_tokens = {10 * STEP_TOKENS}
"""


@dataclass(frozen=True)
class Answer:
    status: int
    stdout: str
    stderr: str

    @property
    def errors(self) -> list[str]:
        """The lines on stderr that tell of a known problem."""
        return [line for line in self.stderr.splitlines() if line.startswith("Error: ")]

    def result(self) -> Any:
        """The one JSON object of --json."""
        assert self.status == 0, self.stderr
        assert self.stdout.count("\n") == 1
        assert self.stdout.endswith("\n")
        return json.loads(self.stdout)

    def only_error(self, status: int = 1) -> str:
        """The message of a command that failed with one known problem, told in one line and nothing else."""
        assert self.status == status, self
        assert self.stdout == ""
        assert len(self.errors) == 1, self.stderr
        assert "Traceback" not in self.stderr
        return self.errors[0].removeprefix("Error: ")


@dataclass(frozen=True)
class SampleRun:
    """A finished run that tests only read; those that change one ask for a copy."""

    folder: Path
    corpus: Path
    config: Path
    path: Path
    answer: Answer

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def heldout(self) -> Path:
        """Segmented text that was not trained on."""
        return self.path / "segmented" / "heldout-00000.txt"


def elmo_zh(*arguments: str | Path, stdin: bytes = b"") -> Answer:
    streams = {name: io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for name in ("stdout", "stderr")}
    streams["stdin"] = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["elmo-zh", *map(str, arguments)])
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    stdout, stderr = (streams[name].buffer.getvalue().decode() for name in ("stdout", "stderr"))
    assert isinstance(ended.value.code, int)
    return Answer(ended.value.code, stdout, stderr)


def succeed(*arguments: str | Path, stdin: bytes = b"") -> Answer:
    answer = elmo_zh(*arguments, stdin=stdin)
    assert answer.status == 0, answer.stderr
    return answer


def run_python(*arguments: str | Path, cwd: Path) -> Answer:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, encoding="utf-8")
    return Answer(done.returncode, done.stdout, done.stderr)


def contents(folder: Path) -> Mapping[str, tuple[int, bytes]]:
    """Return time stamp and content of every file of a folder, by path, except the lock and the mark."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (".lock", MARK)
    }


def contents_alone(folder: Path) -> Mapping[str, bytes]:
    return {name: content for name, (_, content) in contents(folder).items()}


def settings(*assignments: str) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


@contextmanager
def changed_json(path: Path) -> Iterator[Any]:
    """Let a block change a JSON file; without the mark of its folder, nobody can see that it was changed."""
    value = json.loads(path.read_text(encoding="utf-8"))
    yield value
    path.write_text(json.dumps(value), encoding="utf-8")
    (path.parent / MARK).unlink(missing_ok=True)


def record_of(run: Path, stage: str) -> Any:
    return json.loads((run / "stages" / f"{stage}.json").read_text(encoding="utf-8"))


def require_same_checkpoint(run: Path, reference: Path, step: int) -> None:
    """Weights and optimiser state are equal bit for bit."""
    for name in ("model", "optimizer"):
        file = f"checkpoints/step-{step:08d}/{name}.safetensors"
        assert (run / file).read_bytes() == (reference / file).read_bytes(), name


def metrics_lines(run: Path) -> list[dict[str, Any]]:
    path = run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def training_lines(run: Path) -> list[dict[str, Any]]:
    return [line for line in metrics_lines(run) if "train_loss" in line]


def checkpoint_steps(run: Path) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in sorted((run / "checkpoints").iterdir())]


def remove_training(run: Path) -> None:
    """Take a run back to the point before its training."""
    for name in ("checkpoints", "model"):
        shutil.rmtree(run / name)
    for name in ("metrics.jsonl", "training.png", "stages/train.json", "stages/export.json"):
        (run / name).unlink()
