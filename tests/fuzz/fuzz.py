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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
MOST_INPUT_BYTES = 1 << 16
MOST_INPUT_SECONDS = 20
MOST_BYTES = 3 << 30
FINDINGS, INPUTS = Path("fuzz-findings"), Path("fuzz-inputs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="Targets; default all.")
    parser.add_argument("--seconds", type=int, default=3600, help="Time for each target; default 3600.")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory(prefix="elmo-zh-fuzz-") as folder:
            _fuzz(options.targets[0], options.seconds, Path(folder))
    from fuzz_targets import TARGETS

    if unknown := {*options.targets} - {*TARGETS}:
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}. There are: {', '.join(TARGETS)}")
    FINDINGS.mkdir(parents=True, exist_ok=True)

    def run(name: str) -> bool:
        command = [sys.executable, __file__, "--one", name, "--seconds", str(options.seconds)]
        # An input that hangs in C stops libFuzzer or the alarm; this is for a hang of these.
        ended = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds + 300)
        (FINDINGS / f"{name}.log").write_text(ended.stdout + ended.stderr, encoding="utf-8")
        print(f"{name}: exit status {ended.returncode}", flush=True)
        return ended.returncode == 0

    with ThreadPoolExecutor(os.cpu_count()) as jobs:
        are_sound = list(jobs.map(run, options.targets or TARGETS))
    print(
        f"{len(are_sound)} targets, {options.seconds} seconds each, {are_sound.count(False)} with findings: {FINDINGS}/"
    )
    return int(not all(are_sound))


def _fuzz(name: str, seconds: int, folder: Path) -> None:
    import atheris

    with atheris.instrument_imports(include=["elmo_zh"]):
        from fuzz_targets import TARGETS, attempt
    target, seeds, kept = TARGETS[name], folder / "seeds", INPUTS / name
    seeds.mkdir()
    kept.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (seeds / str(number)).write_bytes(data)
    resource.setrlimit(resource.RLIMIT_AS, (2 * MOST_BYTES, 2 * MOST_BYTES))
    options = [
        f"-max_total_time={seconds}", "-seed=1", f"-max_len={MOST_INPUT_BYTES}", f"-timeout={MOST_INPUT_SECONDS}",
        f"-rss_limit_mb={MOST_BYTES >> 20}", f"-artifact_prefix={FINDINGS}/{name}-", "-print_final_stats=1",
    ]  # fmt: skip
    # libFuzzer writes what reaches new branches into the first folder.
    atheris.Setup([sys.argv[0], *options, str(kept), str(seeds)], lambda data: attempt(target, data, folder))
    atheris.Fuzz()


if __name__ == "__main__":
    # Our own modules, those of the tests and the package; for processes of targets too.
    sys.path[:0] = paths = [str(HERE), str(HERE.parent), str(HERE.parents[1])]
    os.environ.update(PYTHONPATH=":".join(paths), OMP_NUM_THREADS="1")
    sys.exit(main())
