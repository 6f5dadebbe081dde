"""Do other programs compute from our files the vectors that we compute? See docs/interop.md; run by `make interop`.

The other programs run in environments of their own under .interop/, made at the first time.
"""
# ruff: noqa: T201  # a program that tells what it finds

import argparse
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
from exchange import CHECKS, IN_ONE_BATCH, ONE_BY_ONE, load_reading, load_sentences

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NUM_SENTENCES = 100
TOLERANCE = 1e-5
# On the CPU in float32: a GPU may round the factors of its products to fewer bits.
SURROUNDINGS = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}


class InteropError(Exception):
    """What stops a comparison, in one line."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Another program that reads our files."""

    program: str
    # read_with_FILES.py is its script; FILES.txt and FILES.no-deps.txt list what to install.
    files: str
    layout: str
    python: str = "python"
    is_required: bool = True


READERS = (
    Reader(program="AllenNLP", files="allennlp", layout="bundle"),
    Reader(program="simple_elmo", files="simple_elmo", layout="simple_elmo"),
    Reader(program="pytorch-fast-elmo", files="fast_elmo", layout="bundle", python="python37", is_required=False),
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What all programs read, and what we make of it."""

    folder: Path
    sentences: list[list[str]]
    vectors: dict[str, list[np.ndarray]]  # for each check those of each sentence, float32 of shape (L + 1, T, 2P)


@dataclass(frozen=True)
class Finding:
    program: str
    check: str
    verdict: str
    difference: float
    is_good: bool


def main() -> int:
    """Compare with all readers; return the exit status."""
    arguments = parser_of(__doc__).parse_args()
    try:
        run = Path(arguments.run) if arguments.run else train()
        with TemporaryDirectory(prefix="elmo-zh-interop-") as folder:
            sample = prepare(run, Path(folder))
            findings = [
                finding for reader in READERS for finding in check(reader, getattr(arguments, reader.python), sample)
            ]
    except InteropError as error:
        print(error, file=sys.stderr)
        return 1
    print_table(findings, len(sample.sentences))
    effect = largest_difference(sample.vectors[IN_ONE_BATCH], sample.vectors[ONE_BY_ONE])
    print(f"Allowed: {TOLERANCE:g}. For comparison, carrying the state moves our own vectors by up to {effect:.2g}.")
    return 0 if all(finding.is_good for finding in findings) else 1


def parser_of(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--run", help="a run in character mode; default: train runs/interop on the sample")
    parser.add_argument("--python", default=sys.executable, help="Python of the readers' environments")
    parser.add_argument("--python37", default="python3.7", help="Python 3.7, which pytorch-fast-elmo needs")
    return parser


def call(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=SURROUNDINGS)
    except OSError as error:
        raise InteropError(f"{command[0]}: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        lines = f"{error.stdout}\n{error.stderr}".strip().splitlines() or [f"exit status {error.returncode}"]
        telling = [line for line in lines if "error" in line.lower()] or lines[:1]
        raise InteropError(telling[-1].strip()) from None


def elmo_zh(*arguments: str | Path) -> None:
    call(sys.executable, "-m", "elmo_zh", *arguments)


def train() -> Path:
    """Return a run in character mode on the sample, trained unless it is there."""
    run = Path("runs/interop")
    print(f"Training {run} on the sample; about two minutes the first time.", flush=True)
    elmo_zh("pipeline", "data/sample", "--run", run, "--config", "configs/tiny-char.toml")
    return run


def prepare(run: Path, folder: Path) -> Sample:
    bundle, text = folder / "bundle", folder / "text.txt"
    elmo_zh("export", "--run", run, "--output", bundle)
    elmo_zh("export", "--run", run, "--output", folder / "simple_elmo", "--layout", "simple_elmo")
    heldout = ROOT / run / "segmented" / "heldout-00000.txt"
    lines = heldout.read_bytes().splitlines(keepends=True)[:NUM_SENTENCES] if heldout.exists() else []
    if not lines:
        raise InteropError(f"Error: {heldout} holds no sentences. Give a run with held-out text.")
    text.write_bytes(b"".join(lines))
    sentences = load_sentences(text)
    options = {IN_ONE_BATCH: (), ONE_BY_ONE: ("--stateful",)}
    vectors = {name: embed(bundle, text, len(sentences), *options[name]) for name in CHECKS}
    return Sample(folder=folder, sentences=sentences, vectors=vectors)


def embed(bundle: Path, text: Path, num_sentences: int, *options: str) -> list[np.ndarray]:
    """Return the vectors of `elmo-zh embed`, those of each line float32 of shape (L + 1, T, 2P)."""
    output = bundle.with_name("ours.hdf5")
    files = (text, "--model", bundle, "--output", output, "--force")
    elmo_zh("embed", *files, "--segmented", "--device", "cpu", *options)
    with h5py.File(output, "r") as file:
        return [file[str(line)][()] for line in range(num_sentences)]


def check(reader: Reader, python: str, sample: Sample) -> Iterator[Finding]:
    try:
        interpreter = install(reader, python)
    except InteropError as error:
        print(f"{reader.program} could not be installed with {python}: {error}", flush=True)
        yield Finding(reader.program, "", "not installed", math.nan, is_good=not reader.is_required)
        return
    print(f"Reading the model with {reader.program}.", flush=True)
    output = sample.folder / f"{reader.files}.npz"
    script = HERE / f"read_with_{reader.files}.py"
    try:
        call(interpreter, script, sample.folder / reader.layout, sample.folder / "text.txt", output)
    except InteropError as error:
        print(f"{reader.program} failed: {error}", flush=True)
        yield Finding(reader.program, "", "FAILED", math.nan, is_good=False)
        return
    reading = load_reading(output, len(sample.sentences))
    for name in CHECKS:
        difference = largest_difference(sample.vectors[name], reading.vectors[name])
        is_good = difference <= TOLERANCE
        yield Finding(reading.versions, name, "ok" if is_good else "FAILED", difference, is_good)


def install(reader: Reader, python: str) -> Path:
    """Return the Python of a reader's environment, which is made anew where it is missing or its lists have changed."""
    environment = ROOT / ".interop" / reader.files
    interpreter, record = environment / "bin" / "python", environment / "installed.txt"
    wanted, alone = HERE / f"{reader.files}.txt", HERE / f"{reader.files}.no-deps.txt"
    content = wanted.read_text() + (alone.read_text() if alone.exists() else "")
    if record.exists() and record.read_text() == content:
        return interpreter
    print(f"Setting up {environment.relative_to(ROOT)}, once; this takes some minutes.", flush=True)
    call(python, "-m", "venv", "--clear", environment)
    pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    call(*pip, "-r", wanted)
    if alone.exists():
        call(*pip, "--no-deps", "--no-build-isolation", "-r", alone)
    record.write_text(content)
    return interpreter


def largest_difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """Return the largest absolute difference of all numbers: inf where shapes differ, NaN where a number is NaN."""
    if [vectors.shape for vectors in ours] != [vectors.shape for vectors in theirs]:
        return math.inf
    return float(np.max([np.abs(mine - other).max() for mine, other in zip(ours, theirs, strict=True)]))


def print_table(findings: list[Finding], num_sentences: int) -> None:
    rows = [("program", "check", "sentences", "largest difference", "")]
    for found in findings:
        figures = (str(num_sentences), f"{found.difference:.1e}") if found.check else ("", "")
        rows.append((found.program, found.check, *figures, found.verdict))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
