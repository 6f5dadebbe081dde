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


def test_every_step_runs_with_few_packages(tmp_path: Path) -> None:
    """As the documentation says, without the packages that it has to do without; the checks run one by one below."""
    (tmp_path / "sitecustomize.py").write_text(BLOCK)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "CUDA_VISIBLE_DEVICES": ""}
    chosen = ("--device", "cpu", "--small", "--seconds", "0", "--only", "m")
    command = [sys.executable, ROOT / "benchmarks" / "gpu.py", "--output", tmp_path / "record", *chosen]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    record = json.loads((tmp_path / "record" / "gpu.json").read_text())
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert record["machine"]["torch"] == torch.__version__
    text = (tmp_path / "record" / "gpu.txt").read_text().splitlines()
    assert text[1:] == answer.stdout.splitlines()
    assert all(line.startswith("passed ") for line in text[1:])
    assert "commands" in record["steps"]


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
