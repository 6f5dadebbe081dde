"""benchmarks/gpu.py, as far as a processor can run it: every step, what fails, and the files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from contract.command_line import ROOT

GPU = ROOT / "benchmarks" / "gpu.py"
# What the benchmark has to do without.
MISSING = ("click", "jieba", "gensim", "matplotlib", "pytest", "hypothesis", "tqdm", "dask")
BLOCK = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {MISSING!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    torch_settings = torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32 = torch_settings
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all steps, since `resume` needs what `same bytes` has left."""
    return tmp_path_factory.mktemp("steps")


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.filterwarnings("ignore")
def test_every_step_runs(folder: Path) -> None:
    from gpu_rates import Conditions
    from gpu_steps import STEPS, run_step

    for name in STEPS:
        # The checks run one by one in test_gpu_checks.py.
        if name.startswith(("check ", "profile ")):
            continue
        reported: dict[str, object] = {}
        conditions = Conditions(
            device=torch.device("cpu"), is_tiny=True, seconds=0.0, folder=folder, report=reported.update
        )
        figures = run_step(name, conditions)
        assert (figures["status"], figures.get("problems", [])) == ("passed", []), (name, figures.get("traceback"))
        assert figures["summary"]
        json.dumps({**reported, **figures})


@pytest.mark.usefixtures("benchmarks")
def test_a_step_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_rates import Conditions
    from gpu_steps import STEPS, Step, run_checks, run_step

    def fail(_: object = None) -> None:
        raise RuntimeError("CUDA error: no such thing\nmore about it")

    reported: dict[str, object] = {}
    conditions = Conditions(
        device=torch.device("cpu"), is_tiny=True, seconds=0.0, folder=tmp_path, report=reported.update
    )
    monkeypatch.setitem(STEPS, "failing", Step(fail, 1.0))  # type: ignore[arg-type]
    figures = run_step("failing", conditions)
    assert (figures["status"], figures["problems"]) == ("failed", ["RuntimeError: CUDA error: no such thing"])
    assert "more about it" in figures["traceback"]
    found = run_checks(conditions, {"bad": fail, "good": lambda: None})
    assert found["summary"] == "1 of 2 checks passed"
    assert found["checks"]["good"] == "passed"
    assert "Traceback" in found["checks"]["bad"]
    assert found["problems"] == ["bad: more about it"]


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize(
    ("code", "limit_seconds", "problem"),
    [
        ("import os, sys; print('last words', flush=True); os.abort()", 600, "the process ended with status -6"),
        ("print('last words', flush=True); import time; time.sleep(600)", 1, "ended after 1 seconds, its time limit"),
        ("print('last words')", 600, "the process wrote no result"),
    ],
)
def test_a_process_that_crashes_or_hangs_is_reported(
    tmp_path: Path, code: str, limit_seconds: float, problem: str
) -> None:
    from gpu import await_child

    command = [sys.executable, "-c", code]
    figures = await_child(command, os.environ, tmp_path / "result.json", tmp_path / "log.txt", limit_seconds)
    assert (figures["status"], figures["problems"]) == ("failed", [problem])
    # What it had reported is kept.
    (tmp_path / "result.json").write_text('{"tokens_per_second": 5.0, "status": "passed"}')
    figures = await_child(command, os.environ, tmp_path / "result.json", tmp_path / "log.txt", limit_seconds)
    assert figures["tokens_per_second"] == 5.0
    assert figures["status"] == ("passed" if "no result" in problem else "failed")


def run_gpu(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run it as the README says, without the packages that it has to do without."""
    blocking = folder / "blocking"
    blocking.mkdir()
    (blocking / "sitecustomize.py").write_text(BLOCK)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(blocking), str(ROOT)]), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(GPU), "--output", str(folder / "record"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)


def test_files_are_written_with_few_packages(tmp_path: Path) -> None:
    answer = run_gpu("--device", "cpu", "--small", "--seconds", "0", "--only", "resume", folder=tmp_path)
    record = json.loads((tmp_path / "record" / "gpu.json").read_text())
    # Alone it has nothing to resume from.
    assert (answer.returncode, record["steps"]["resume"]["status"]) == (1, "failed"), answer.stderr
    assert record["steps"]["resume"]["problems"][0].startswith("FileNotFoundError: ")
    assert record["machine"]["torch"] == torch.__version__
    text = (tmp_path / "record" / "gpu.txt").read_text()
    assert answer.stdout == text
    assert "300,000 tokens/s" in text
    assert len(text.splitlines()) == 5
    assert sorted(path.name for path in (tmp_path / "record").iterdir()) == ["gpu.json", "gpu.txt"]


@pytest.mark.slow
def test_without_time_no_step_runs(tmp_path: Path) -> None:
    answer = run_gpu("--device", "cpu", "--small", "--budget-seconds", "0", folder=tmp_path)
    steps = json.loads((tmp_path / "record" / "gpu.json").read_text())["steps"]
    assert answer.returncode == 1
    assert {figures["status"] for figures in steps.values()} == {"not run"}


def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    answer = run_gpu(folder=tmp_path)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "No CUDA device was found. To try the code without one: --device cpu --small\n"
