"""benchmarks/gpu.py, as far as a processor can run it: every step but the checks, what fails, and the files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from contract.command_line import ROOT
from gpu_checks import checks

# What the benchmark has to do without.
MISSING = ("click", "jieba", "gensim", "matplotlib", "pytest", "hypothesis", "tqdm", "dask")
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({MISSING!r}))"


def run_gpu(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run it as the documentation says, without the packages that it has to do without."""
    blocking = folder / "blocking"
    blocking.mkdir()
    (blocking / "sitecustomize.py").write_text(BLOCK)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(blocking), str(ROOT)]), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--output", str(folder / "record"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


def test_every_step_runs_with_few_packages(tmp_path: Path) -> None:
    # The checks run one by one below.
    answer = run_gpu("--device", "cpu", "--small", "--seconds", "0", "--only", "m", folder=tmp_path)
    record = json.loads((tmp_path / "record" / "gpu.json").read_text())
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert record["machine"]["torch"] == torch.__version__
    text = (tmp_path / "record" / "gpu.txt").read_text().splitlines()
    assert text[1:] == answer.stdout.splitlines()
    assert all(line.startswith("passed ") for line in text[1:])
    assert "commands" in record["steps"]


def test_a_step_that_fails_is_reported(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    code = """
import sys
sys.argv = ["gpu.py", "--device", "cpu", "--small", "--seconds", "0", "--only", "products", "--output", "record"]
import gpu
def fail(conditions, precision):
    raise RuntimeError("CUDA error: no such thing")
gpu.STEPS["time products float32"] = lambda conditions: fail(conditions, "float32")
sys.exit(gpu.main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT)])}
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert answer.returncode == 1, answer.stderr
    steps = json.loads((tmp_path / "record" / "gpu.json").read_text())["steps"]
    assert [step["status"] for step in steps.values()] == ["passed", "failed"]
    assert "RuntimeError: CUDA error: no such thing" in steps["time products float32"]["summary"]
    assert "Traceback" in steps["time products float32"]["log"]


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    answer = run_gpu(folder=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "No CUDA device was found. To try the code without one: --device cpu --small\n"


# The checks, one by one: with -m gpu on a GPU, else through the code for GPUs on a processor


# A processor always trains twice the same.
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if name.startswith("same bytes") else []) for name in checks("cpu")
]


@pytest.mark.parametrize("name", NAMES)
def test_on_a_processor(name: str) -> None:
    checks("cpu")[name]()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("name", checks("cuda"))
def test_on_a_gpu(name: str) -> None:
    checks("cuda")[name]()
