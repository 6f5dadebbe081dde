"""Check and measure training and embedding on a GPU, in at most eight minutes.

Usage: PYTHONPATH=. python benchmarks/gpu.py --output FOLDER     (make bench-gpu)
       PYTHONPATH=. python benchmarks/gpu.py --output FOLDER --device cpu --small     (try the code without a GPU)

Needs torch 2.11 or later, numpy, h5py and safetensors, and no installation of this program. It runs the checks of
`pytest -m gpu` against a processor; trains FULL (cell 4096, projection 512) and SMALL (1024 and 256), the sizes of
benchmarks/speed.py, and configs/original.toml with 50,000 words, on random words; embeds; compares the bytes of two
trainings and of a resumed one; and takes data/sample through all stages. Each step is a process of its own with a time
limit, the most informative first. A step that fails is reported, and the others still run.

Writes FOLDER/gpu.json and FOLDER/gpu.txt, anew after each step. Exit status: 0 if every step passed, 1 if one failed or
there was no time for it, 2 without a GPU.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
for path in (ROOT / "tests", ROOT / "benchmarks", ROOT):
    sys.path.insert(0, str(path))

BUDGET_SECONDS = 465.0
GOALS = "Goals on one H200: training FULL 300,000 tokens/s, SMALL 1,500,000; embedding FULL 1,000,000."
# A step is not begun with less time left than this: starting Python and CUDA takes most of it.
_LEAST_SECONDS = 8.0
_LOG_CHARACTERS = 6000


def run_child(arguments: argparse.Namespace, name: str, work: Path, seconds: float) -> dict[str, Any]:
    """Run one step in a process of its own, and return its figures."""
    from gpu_steps import STEPS

    result, log = work / "result.json", work / "log.txt"
    result.unlink(missing_ok=True)
    command = [
        sys.executable, "-X", "faulthandler", __file__, "--output", str(arguments.output), "--device", arguments.device,
        "--seconds", str(arguments.seconds), "--step", name, "--work", str(work), *(["--small"] * arguments.small),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    if STEPS[name].is_deterministic:
        environment["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    return await_child(command, environment, result, log, seconds)


def await_child(
    command: Sequence[str], environment: Mapping[str, str], result: Path, log: Path, seconds: float
) -> dict[str, Any]:
    """Return the figures that a process has written, also if it crashed or was ended at its time limit."""
    started_at, problem = time.monotonic(), ""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            if status := process.wait(seconds):
                problem = f"the process ended with status {status}"
        except subprocess.TimeoutExpired:
            problem = f"ended after {seconds:.0f} seconds, its time limit"
        finally:
            _end(process)
    figures: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    if problem or "status" not in figures:
        figures["status"] = "failed"
        figures.setdefault("problems", []).append(problem or "the process wrote no result")
    if figures["status"] == "failed":
        figures["log"] = log.read_text(encoding="utf-8", errors="replace")[-_LOG_CHARACTERS:]
    return {**figures, "elapsed_seconds": round(time.monotonic() - started_at, 1)}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it started; one that hangs in the driver is left behind."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            return


def run_here(arguments: argparse.Namespace) -> None:
    """Run one step in this process and write its figures, those of a step that is still running as well."""
    import torch
    from gpu_rates import Conditions
    from gpu_steps import run_step

    from elmo_zh.allocator import keep_freed_memory

    keep_freed_memory()
    figures: dict[str, Any] = {}

    def report(**found: Any) -> None:
        figures.update(found)
        unfinished = arguments.work / "result.unfinished"
        unfinished.write_text(json.dumps(figures, default=str), encoding="utf-8")
        unfinished.replace(arguments.work / "result.json")

    conditions = Conditions(
        device=torch.device(arguments.device), is_tiny=arguments.small, seconds=arguments.seconds,
        folder=arguments.work, report=report,
    )  # fmt: skip
    report(**run_step(arguments.step, conditions))


def describe_machine(device: str) -> dict[str, Any]:
    """Return machine, driver and versions, for the record."""
    import torch
    from gpu_steps import describe_device

    from elmo_zh.version import __version__

    return {
        "elmo_zh": __version__,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": _version_of("triton"),
        "driver": _driver() if device == "cuda" else "",
        "device": describe_device(torch.device(device)),
    }


def _version_of(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({error})"


def render(record: Mapping[str, Any]) -> str:
    """Return the record as text: the machine, then one line a step."""
    machine = record["machine"]
    lines = [
        f"elmo-zh {machine['elmo_zh']} on {machine['device']['name']}, {record['started_at']}",
        f"driver: {machine['driver']}; torch {machine['torch']}, Triton {machine['triton']},"
        f" Python {machine['python']}; {machine['cores']} cores",
        GOALS,
        "",
    ]
    for name, figures in record["steps"].items():
        peak = figures.get("device_peak_bytes") or 0
        shown = "; ".join(" ".join(str(problem).split())[:300] for problem in figures.get("problems", []))
        text = shown if figures["status"] == "failed" else figures.get("summary", "")
        memory = f", {peak / 1e9:.1f} GB on the device" if peak else ""
        lines.append(f"{figures['status']:8} {figures['elapsed_seconds']:5.0f} s  {name:38} {text}{memory}")
    return "\n".join([*lines, ""])


def write(record: Mapping[str, Any], folder: Path) -> None:
    """Write both files; each is whole at any time."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("gpu.json", json.dumps(record, indent=1, default=str) + "\n"), ("gpu.txt", render(record))):
        unfinished = folder / f"{name}.unfinished"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(folder / name)


def run_all(arguments: argparse.Namespace) -> int:
    """Run all steps and return the exit status."""
    from gpu_steps import STEPS

    started_at, steps = time.monotonic(), {}
    record = {
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "budget_seconds": arguments.budget_seconds,
        "machine": describe_machine(arguments.device),
        "steps": steps,
    }
    print(render(record), end="", flush=True)
    with tempfile.TemporaryDirectory(prefix="elmo-zh-gpu-", ignore_cleanup_errors=True) as work:
        for name in (name for name in STEPS if arguments.only in name):
            left = arguments.budget_seconds - (time.monotonic() - started_at)
            if left < _LEAST_SECONDS:
                steps[name] = {"status": "not run", "problems": [], "summary": "no time left", "elapsed_seconds": 0.0}
            else:
                limit = STEPS[name].limit_seconds * (10 if arguments.device == "cpu" else 1)
                steps[name] = run_child(arguments, name, Path(work), min(left, limit))
            record["elapsed_seconds"] = round(time.monotonic() - started_at, 1)
            write(record, arguments.output)
            print(render(record).splitlines()[-1], flush=True)
    return int(any(figures["status"] != "passed" for figures in steps.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder of gpu.json and gpu.txt")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu tries the code (default: cuda)")
    parser.add_argument("--small", action="store_true", help="tiny models, to try the code")
    parser.add_argument("--only", default="", help="run only steps whose name contains this text")
    parser.add_argument("--seconds", type=float, default=1.5, help="seconds of each measurement (default: 1.5)")
    parser.add_argument(
        "--budget-seconds", type=float, default=BUDGET_SECONDS,
        help=f"seconds for all steps together (default: {BUDGET_SECONDS:.0f})",
    )  # fmt: skip
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        run_here(arguments)
        return 0
    import torch

    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("No CUDA device was found. To try the code without one: --device cpu --small", file=sys.stderr)
        return 2
    return run_all(arguments)


if __name__ == "__main__":
    sys.exit(main())
