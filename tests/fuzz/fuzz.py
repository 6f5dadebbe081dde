"""Fuzz the readers of foreign bytes: `make fuzz`, or python tests/fuzz/fuzz.py [TARGET...] --seconds N.

Each target runs in a process of its own, with limits of memory and of time for an input. With atheris, which
`make fuzz` installs, the inputs follow the branches of our code that they reach. Inputs that reach new branches are
kept, so that the next run continues from them. What a target must not do is kept in the folder of findings.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
# Names are known without importing what is fuzzed, which atheris does itself.
MOST_INPUT_BYTES = 1 << 16
MOST_INPUT_SECONDS = 20
MOST_BYTES = 3 << 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="Targets; default all.")
    parser.add_argument("--seconds", type=int, default=3600, help="Time for each target; default 3600.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="Targets at a time; default one a processor.")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the changes; default 1.")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="Folder of findings.")
    parser.add_argument("--inputs", type=Path, default=Path("fuzz-inputs"), help="Folder of inputs to continue from.")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        with tempfile.TemporaryDirectory(prefix="elmo-zh-fuzz-") as folder:
            _fuzz(given.targets[0], given, Path(folder))
    names = subprocess.run(
        [sys.executable, "-c", "import fuzz_targets; print(*fuzz_targets.TARGETS)"],
        env={"PYTHONPATH": _path()}, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    if unknown := set(given.targets) - set(names):
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}. There are: {', '.join(names)}")
    given.findings.mkdir(parents=True, exist_ok=True)
    targets = given.targets or names
    with ThreadPoolExecutor(given.jobs) as jobs:
        are_sound = jobs.map(partial(_run, given=given), targets)
        failed = [name for name, is_sound in zip(targets, are_sound, strict=True) if not is_sound]
    found = f"findings in {given.findings}/: {', '.join(failed)}" if failed else "no findings"
    print(f"{len(targets)} targets, {given.seconds} seconds each: {found}")
    return 1 if failed else 0


def _run(name: str, given: argparse.Namespace) -> bool:
    options = [
        "--seconds", given.seconds, "--seed", given.seed, "--findings", given.findings, "--inputs", given.inputs,
    ]  # fmt: skip
    command = [sys.executable, __file__, "--one", name, *map(str, options)]
    started = time.monotonic()
    # An input that hangs in C stops libFuzzer or the alarm; this is for a hang of these.
    ended = subprocess.run(
        command, env={"PYTHONPATH": _path(), "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=given.seconds + 300,
    )  # fmt: skip
    (given.findings / f"{name}.log").write_text(ended.stdout + ended.stderr, encoding="utf-8")
    runs = [line for line in (ended.stdout + ended.stderr).splitlines() if line.startswith("Done ")]
    told = runs[-1] if runs else "stopped"
    print(f"{name}: {told}, {time.monotonic() - started:.0f} s, exit status {ended.returncode}", flush=True)
    return ended.returncode == 0


def _path() -> str:
    return ":".join(str(path) for path in (HERE, HERE.parent, HERE.parents[1]))


def _fuzz(name: str, given: argparse.Namespace, folder: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["elmo_zh"]):
        from fuzz_targets import TARGETS, attempt
    target, seeds, kept = TARGETS[name], folder / "seeds", given.inputs / name
    seeds.mkdir()
    kept.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (seeds / str(number)).write_bytes(data)

    def read(data: bytes) -> None:
        attempt(target, data, folder)

    resource.setrlimit(resource.RLIMIT_AS, (2 * MOST_BYTES, 2 * MOST_BYTES))
    options = [
        f"-max_total_time={given.seconds}", f"-seed={given.seed}", f"-max_len={MOST_INPUT_BYTES}",
        f"-timeout={MOST_INPUT_SECONDS}", f"-rss_limit_mb={MOST_BYTES >> 20}",
        f"-artifact_prefix={given.findings}/{name}-", "-print_final_stats=1",
    ]  # fmt: skip
    # libFuzzer writes what reaches new branches into the first folder.
    atheris.Setup([sys.argv[0], *options, str(kept), str(seeds)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
